"""Opens the statistics of draws that a sampler on all data records with ArviZ."""

import sys
import warnings

warnings.simplefilter("ignore")
import arviz as az
import xarray as xr
import zarr

path = sys.argv[1]
if int(zarr.__version__.split(".")[0]) < 3:  # the version that from_zarr of ArviZ 0.x is for
    data = az.from_zarr(path)
else:
    data = az.InferenceData.from_datatree(xr.open_datatree(path, engine="zarr"))
stats = data.sample_stats
assert stats["diverging"].dtype == bool and stats["diverging"].shape == stats["lp"].shape, stats
assert ((stats["acceptance_rate"] >= 0) & (stats["acceptance_rate"] <= 1)).all(), stats["acceptance_rate"]
assert (stats["n_steps"] >= 1).all(), stats["n_steps"]
az.summary(data, var_names=["linear2.bias"])
print("acceptance", float(stats["acceptance_rate"].mean()))
