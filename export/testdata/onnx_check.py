"""Compares what onnxruntime makes of an exported file with the answers of the run."""

import sys

import numpy as np
import onnx
import onnxruntime

model, reference = sys.argv[1], np.load(sys.argv[2])
onnx.checker.check_model(onnx.load(model), full_check=True)
options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
images = reference["images"]
if session.get_inputs()[0].type == "tensor(float)":
    images = (images / np.float32(255)).astype(np.float32)
names = [o.name for o in session.get_outputs()]
parts = [session.run(names, {"images": images[i : i + 100]}) for i in range(0, len(images), 100)]
got = {name: np.concatenate([p[i] for p in parts]) for i, name in enumerate(names)}
one = dict(zip(names, session.run(names, {"images": images[:1]})))
lines = []
for name in names:
    want = reference[name]
    if want.dtype == bool:
        differ = int((got[name] != want).sum())
        assert differ == 0, f"{name}: {differ} of {want.size} differ"
        lines.append(f"{name}: {want.mean():.3f} true")
        continue
    error = np.abs(got[name] - want).max()
    assert error <= 1e-5, f"{name} differs by {error}"
    assert np.abs(one[name] - want[:1]).max() <= 1e-5, f"{name} of one image differs"
    lines.append(f"{name}: {error:.1e}")
print("; ".join(lines))
