"""Opens the statistics of draws that HMC or NUTS records with ArviZ, and compares its BFMI with ours."""

import json
import sys
import warnings

warnings.simplefilter("ignore")
import matplotlib

matplotlib.use("Agg")
import arviz as az
import xarray as xr
import zarr

path, expected = sys.argv[1], json.loads(sys.argv[2])
first = az.__version__.startswith("0.")  # of the two interfaces that ArviZ has had
if first and int(zarr.__version__.split(".")[0]) >= 3:  # from_zarr of ArviZ 0.x is for older versions
    data = az.InferenceData.from_datatree(xr.open_datatree(path, engine="zarr"))
else:
    data = az.from_zarr(path)
stats = data.sample_stats
if "accepted" in stats:
    assert stats["accepted"].dtype == bool and stats["accepted"].shape == stats["lp"].shape, stats
if "diverging" in stats:
    assert stats["diverging"].dtype == bool and stats["diverging"].shape == stats["lp"].shape, stats
    assert (stats["n_steps"] >= 1).all(), stats["n_steps"]
assert ((stats["acceptance_rate"] >= 0) & (stats["acceptance_rate"] <= 1)).all(), stats["acceptance_rate"]
assert (stats["energy"] > -stats["lp"]).all(), stats
bfmi = az.bfmi(data) if first else az.bfmi(data)["energy"].values
for ours, theirs in zip(expected["bfmi"], bfmi, strict=True):
    assert abs(ours / theirs - 1) < 1e-6, (ours, theirs)
az.plot_energy(data)
az.summary(data, var_names=["linear2.bias"])
print("acceptance", float(stats["acceptance_rate"].mean()), "BFMI", bfmi, "by ArviZ", az.__version__)
