"""Opens an exported directory with ArviZ and xarray, and compares their diagnostics with Pollen's."""

import json
import sys
import warnings

import matplotlib

matplotlib.use("Agg")
warnings.simplefilter("ignore")
import arviz as az
import numpy as np
import xarray as xr
import zarr

path, expected = sys.argv[1], json.loads(sys.argv[2])
first = az.__version__.startswith("0.")  # of the two interfaces that ArviZ has had
tree = xr.open_datatree(path, engine="zarr")
if first and int(zarr.__version__.split(".")[0]) >= 3:  # from_zarr of ArviZ 0.x is for older versions
    data = az.InferenceData.from_datatree(tree)
else:
    data = az.from_zarr(path)
assert set(tree.children) == {"posterior", "sample_stats", "posterior_predictive", "log_likelihood", "observed_data"}, tree
assert set(data.groups() if first else data.children) == set(tree.children), data
assert json.loads(tree.posterior.attrs["manifest"])["format"] == 1 and tree.posterior.attrs["method"].startswith("sgld")

weight = data.posterior["linear1.weight"].values[:, :, 0, 3].astype(np.float64)
got = {"rhat": az.rhat(weight), "bulk": az.ess(weight, method="bulk"), "tail": az.ess(weight, method="tail", prob=(0.05, 0.95))}
for name, want in expected.items():
    assert abs(got[name] - want) <= 1e-6 * max(1, abs(want)), (name, got[name], want)

likelihood = data.log_likelihood["label"].values
probabilities = data.posterior_predictive["probabilities"].values
labels = data.observed_data["label"].values
assert np.issubdtype(labels.dtype, np.integer)
picked = np.log(probabilities[:, :, np.arange(len(labels)), labels])
assert np.abs(likelihood - picked).max() < 1e-6
loo = az.loo(data)
az.plot_trace(data, var_names=["linear2.bias"])
az.plot_rank(data, var_names=["linear2.bias"])
drawn = data.posterior_predictive["label"].values
assert np.issubdtype(drawn.dtype, np.integer) and drawn.shape == likelihood.shape
shares = np.stack([(drawn == k).mean(axis=(0, 1, 2)) for k in range(probabilities.shape[-1])])
errors = np.sqrt(probabilities.mean(axis=(0, 1, 2)) / drawn.size)
assert (np.abs(shares - probabilities.mean(axis=(0, 1, 2))) < 5 * errors).all(), shares
if first:
    az.plot_ppc(data, num_pp_samples=4)
else:
    az.plot_rank_dist(data, var_names=["linear2.weight", "linear2.bias"])
    az.plot_ppc_dist(data, var_names=["label"], num_samples=4)
elpd = loo.elpd_loo if first else loo.elpd
assert np.isfinite(elpd)
assert data.sample_stats["loss"].shape == weight.shape and np.isfinite(data.sample_stats["loss"]).all()
print("R-hat %(rhat).6f, bulk ESS %(bulk).4f, tail ESS %(tail).4f" % got, "elpd %.2f by ArviZ %s" % (elpd, az.__version__))
