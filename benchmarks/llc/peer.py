"""Estimates local learning coefficients with devinterp, for benchmarks/llc: a line of JSON for each request and answer."""
import json
import sys
import tempfile
import time
import warnings

import numpy as np
import torch
from datasets import Dataset
from torch import nn
from torch.nn import functional as F

from devinterp.slt.llc import compute_llc
from devinterp.slt.sampling import sample

warnings.simplefilter("ignore")


class Network(nn.Module):
    """Applies the layers of a case, whose parameters have Pollen's names and layouts."""

    def __init__(self, layers, arrays):
        super().__init__()
        self.layers = layers
        self.weights = nn.ParameterDict({name.replace(".", "_"): nn.Parameter(torch.tensor(v)) for name, v in arrays.items()})

    def forward(self, x):
        of = lambda layer, what: self.weights.get(f"{layer['name']}_{what}")
        for layer in self.layers:
            match layer["op"]:
                case "conv2d":
                    x = F.conv2d(x, of(layer, "weight"), of(layer, "bias"))
                case "linear":
                    x = F.linear(x, of(layer, "weight"), of(layer, "bias"))
                case "product":
                    x = x @ self.weights[layer["name"]]
                case "maxpool":
                    x = F.max_pool2d(x, 2)
                case "relu":
                    x = F.relu(x)
                case "flatten":
                    x = x.flatten(1)
        return x


LOSSES = {
    "squares": lambda z, y: 0.5 * (z - y).square().sum(1),
    "logistic": lambda z, y: F.binary_cross_entropy_with_logits(z, y, reduction="none")[:, 0],
    "labels": lambda z, y: F.cross_entropy(z, y, reduction="none"),
}


def answer(r):
    torch.set_num_threads(r["threads"])
    arrays = dict(np.load(r["path"]))
    x, y = torch.tensor(arrays.pop("x")), torch.tensor(arrays.pop("y"))
    if y.dtype == torch.int32:
        y = y.long()
    network, loss = Network(r["layers"], arrays), LOSSES[r["loss"]]

    def losses(model, ids):
        """devinterp samples sequences of tokens: the first token is the number of an example."""
        return loss(model(x[ids[:, 0]]), y[ids[:, 0]])[:, None]

    data = Dataset.from_dict({"input_ids": [[i, 0] for i in range(len(x))]}).with_format("torch")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        out = sample(network, data, {}, lr=r["epsilon"], n_beta=r["nbeta"], localization=r["gamma"], num_chains=r["chains"],
                     num_draws=r["steps"] - r["burnIn"], num_burnin_steps=r["burnIn"], batch_size=r["batch"], loss_fn=losses,
                     num_init_loss_batches=len(x) // r["batch"], device="cpu", output_path=f"{folder}/samples.zarr", init_seed=r["seed"])
        result = compute_llc(out)
        seconds = time.perf_counter() - start
        trace = result["loss_trace"].values[:, r["burnIn"]:]
        return {"seconds": seconds, "lambda": float(result["llc_mean"]),
                "chains": (r["nbeta"] * (trace.mean(1) - float(result["init_loss"]))).tolist()}


for line in sys.stdin:
    stdout, sys.stdout = sys.stdout, sys.stderr  # devinterp shows its progress
    result = answer(json.loads(line))
    sys.stdout = stdout
    print(json.dumps(result), flush=True)
