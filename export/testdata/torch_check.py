"""Loads an exported safetensors file as docs/export.md shows, and compares the probabilities."""

import sys

import numpy as np
import torch
from collections import OrderedDict
from safetensors import safe_open
from torch import nn

path, reference = sys.argv[1], np.load(sys.argv[2])
images = torch.from_numpy(reference["images"])
features, classes = 20 * ((images.shape[-1] - 4) // 2 - 4) // 2 * (((images.shape[-1] - 4) // 2 - 4) // 2), reference["mean"].shape[1]

with safe_open(path, "pt") as f:
    numbers = lambda key: torch.tensor([float(x) for x in f.metadata()[key].split()])
    posterior = {name: f.get_tensor(name) for name in f.keys()}
    weights, mean, std = numbers("sample_weights"), numbers("mean"), numbers("std")
network = nn.Sequential(OrderedDict(
    conv1=nn.Conv2d(1, 10, 5), pool1=nn.MaxPool2d(2), relu1=nn.ReLU(),
    conv2=nn.Conv2d(10, 20, 5), pool2=nn.MaxPool2d(2), relu2=nn.ReLU(), flatten=nn.Flatten(),
    linear1=nn.Linear(features, 50), relu3=nn.ReLU(), linear2=nn.Linear(50, classes)))
x = (images / 255 - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)
logits = torch.vmap(lambda sample: torch.func.functional_call(network, sample, x))(posterior)
probabilities = (weights / weights.sum()).view(-1, 1, 1).mul(logits.softmax(-1)).sum(0)

error = np.abs(probabilities.detach().numpy() - reference["mean"]).max()
assert error < 1e-5, error
each = np.abs(logits.softmax(-1).detach().numpy() - reference["probabilities"]).max()
assert each < 1e-5, each
network.load_state_dict({name: values[0] for name, values in posterior.items()})
one = np.abs(network(x).detach().numpy() - logits[0].detach().numpy()).max()
assert one < 1e-4, one
print(f"probabilities: {error:.1e}; of each sample: {each:.1e}")
