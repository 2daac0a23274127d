"""Scores of pytorch-ood's detectors on the features of exported posterior samples, for benchmarks/detectors.

Reads a request in JSON from standard input. Writes to standard output, in JSON, for each detector and each set of images but
the training images a list "DETECTOR/SET" of scores, averaged over the samples, and the averaged probabilities of each set.
"""
import json
import sys

import numpy as np
import torch
from pytorch_ood.detector import ASH, KNN, RMD, EnergyBased, Mahalanobis, MaxLogit, MaxSoftmax, ViM
from safetensors import safe_open
from torch.nn import functional as F

BATCH = 500


def maps(weights, x):
    """The feature maps of Pollen's cnn before their average."""
    x = F.group_norm(x, 1, weights["groupnorm1.weight"], weights["groupnorm1.bias"])
    for i in range(1, 5):
        x = F.relu(F.max_pool2d(F.conv2d(x, weights[f"conv{i}.weight"], weights[f"conv{i}.bias"], padding=1), 2))
    return F.relu(F.conv2d(x, weights["conv5.weight"], weights["conv5.bias"], padding=1))


def head(weights, x):
    """The logits of feature maps."""
    return F.linear(x.mean((2, 3)), weights["linear1.weight"], weights["linear1.bias"])


def scores(weights, train, labels, sets):
    """The scores of each detector for each set of images, by one sample."""
    fitted = {name: of(weights, train.mean((2, 3)), labels) for name, of in FITTED.items()}
    for images in sets:
        features = images.mean((2, 3))
        logits = head(weights, images)
        found = {
            "MSP": MaxSoftmax.score(logits),
            "maximum logit": MaxLogit.score(logits),
            "energy": EnergyBased.score(logits),
            "ASH": ASH(None, lambda x: head(weights, x), percentile=0.65).predict_feature_maps(images.clone()),
        }
        found.update((name, detector.predict_features(features)) for name, detector in fitted.items())
        yield {name: score.numpy().astype(np.float64) for name, score in found.items()}


FITTED = {
    "Mahalanobis": lambda w, z, y: Mahalanobis(None).fit_features(z, y),
    "relative Mahalanobis": lambda w, z, y: RMD(None).fit_features(z, y),
    "kNN": lambda w, z, y: KNN(None, k=50).fit_features(z, y),
    "ViM": lambda w, z, y: ViM(None, d=64, w=w["linear1.weight"], b=w["linear1.bias"]).fit_features(z, y),
}


@torch.no_grad()
def main():
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    arrays = np.load(request["images"])
    with safe_open(request["samples"], "pt") as f:
        number = lambda key: torch.tensor([float(x) for x in f.metadata()[key].split()])
        mean, std = number("mean").view(-1, 1, 1), number("std").view(-1, 1, 1)
        posterior = {name: f.get_tensor(name) for name in f.keys()}
    names = [name for name in arrays.files if name != "labels"]
    labels = torch.tensor(arrays["labels"]).long()
    totals = {}
    for s in request["of"]:
        weights = {name: values[s] for name, values in posterior.items()}
        inputs = {name: torch.tensor(arrays[name]) for name in names}
        features = {name: torch.cat([maps(weights, (b.float() / 255 - mean) / std) for b in x.split(BATCH)]) for name, x in inputs.items()}
        others = [name for name in names if name != "train"]
        for name, found in zip(others, scores(weights, features["train"], labels, [features[n] for n in others])):
            found["probabilities"] = head(weights, features[name]).softmax(1).numpy().astype(np.float64)
            for detector, score in found.items():
                key = f"{detector}/{name}"
                totals[key] = totals.get(key, 0) + score / len(request["of"])
    json.dump({key: np.asarray(value).ravel().tolist() for key, value in totals.items()}, sys.stdout)


main()
