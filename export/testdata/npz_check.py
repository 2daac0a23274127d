"""Reads an exported archive with NumPy."""

import sys

import numpy as np

f = np.load(sys.argv[1])
mean = np.average(f["probabilities"], axis=0, weights=f["weights"])
assert np.abs(mean - f["mean"]).max() < 1e-6
entropy = -(f["mean"] * np.log(np.maximum(f["mean"], 1e-300))).sum(1)
assert np.abs(entropy - f["entropy"]).max() < 1e-9
assert list(f["classes"]) == ["across", "along", "checked"], f["classes"]
assert f["prediction_set"].dtype == bool and f["labels"].dtype == np.int64
print({name: f[name].shape for name in f.files})
