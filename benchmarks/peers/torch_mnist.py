"""The same training steps and predictions in PyTorch, on the CPU.

Reads a line of JSON that says what to do, then lines with a number of steps; answers each with the seconds they took.
Modes: eager, channels-last (eager, on that memory format), compile (torch.compile, of the loss with its gradients and of the update).
"""
import json
import math
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(json.dumps({"absent": f"PyTorch is not installed: {missing}"}), flush=True)
    sys.exit(0)

PLANS = {  # filters and padding of the 5x5 convolutions, hidden widths, whether pooling comes before ReLU
    "lenet-small": ((10, 20), 0, (50,)),
    "lenet": ((20, 50), 0, (500,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
    "mlp-400-400": ((), 0, (400, 400)),
}


def network(name):
    filters, padding, hidden = PLANS[name]
    layers, channels, side = [], 1, 28
    for f in filters:
        # ReLU and max-pooling commute; the cheaper order, pooling first, is for everybody.
        layers += [nn.Conv2d(channels, f, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()]
        channels, side = f, (side + 2 * padding - 4) // 2
    layers.append(nn.Flatten())
    width = channels * side * side
    for h in hidden:
        layers += [nn.Linear(width, h), nn.ReLU()]
        width = h
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Training:
    def __init__(self, r):
        torch.set_num_threads(r["threads"])
        torch.manual_seed(1)
        self.batch, self.sampler, self.rate = r["batch"], r["sampler"], r["rate"]
        self.examples = 10 * self.batch
        self.decay = 1 / (r["prior"] ** 2 * self.examples)
        self.images = torch.rand(self.examples, 1, 28, 28)
        self.labels = torch.arange(self.examples) % 10
        self.model = network(r["network"])
        if r["mode"] == "channels-last":
            self.model = self.model.to(memory_format=torch.channels_last)
            self.images = self.images.to(memory_format=torch.channels_last)
        self.parameters = list(self.model.parameters())
        self.second = [torch.zeros_like(p) for p in self.parameters]
        self.loss, self.update = self.compute_loss, self.compute_update
        if r["mode"] == "compile":
            self.loss, self.update = torch.compile(self.loss), torch.compile(self.update)
        self.at = 0

    def next(self):
        if self.at + self.batch > self.examples or self.at == 0:
            self.order, self.at = torch.randperm(self.examples), 0
        index = self.order[self.at:self.at + self.batch]
        self.at += self.batch
        return self.images[index], self.labels[index]

    def compute_loss(self, x, y):
        return F.cross_entropy(self.model(x), y)

    @torch.no_grad()
    def compute_update(self, parameters, gradients):
        if self.sampler == "sgd":
            torch._foreach_add_(parameters, gradients, alpha=-self.rate)
            return
        gradients = torch._foreach_add(gradients, parameters, alpha=self.decay)
        noise = [torch.randn_like(p) for p in parameters]
        scale = math.sqrt(2 * self.rate / self.examples)
        if self.sampler == "psgld":
            torch._foreach_mul_(self.second, 0.99)
            torch._foreach_addcmul_(self.second, gradients, gradients, 0.01)
            roots = torch._foreach_sqrt(self.second)
            torch._foreach_add_(roots, 1e-5)
            gradients = torch._foreach_div(gradients, roots)
            noise = torch._foreach_div(noise, torch._foreach_sqrt(roots))
        torch._foreach_add_(parameters, gradients, alpha=-self.rate)
        torch._foreach_add_(parameters, noise, alpha=scale)

    def step(self):
        loss = self.loss(*self.next())
        gradients = torch.autograd.grad(loss, self.parameters)
        self.update(self.parameters, list(gradients))


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        self.probabilities = lambda x: F.softmax(self.model(x), 1)
        if r["mode"] == "compile":
            self.probabilities = torch.compile(self.probabilities)

    @torch.inference_mode()
    def step(self):
        at = self.at % self.examples
        self.at += self.batch
        self.probabilities(self.images[at:at + self.batch])


def main():
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if work is None:
                work = (Prediction if request["sampler"] == "predict" else Training)(request)
                print(json.dumps({"seconds": 0}), flush=True)
                continue
            start = time.perf_counter()
            for _ in range(request["steps"]):
                work.step()
            print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
        except Exception as error:  # the other side prints it and goes on without this one
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}), flush=True)


main()
