"""Training steps, updates and convolutions in PyTorch, on one GPU.

Reads lines of JSON: one that has "work" says what to do from then on, one that has "steps" how often; answers each with the seconds it took.
Chains are a dimension of torch.func.vmap, each with its own parameters and minibatches; one chain goes without it.
Modes: eager, graph (the eager step captured as a CUDA graph), compile (torch.compile with max-autotune, captured as a CUDA graph).
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

PLANS = {  # filters of the 5x5 convolutions and their padding, hidden widths
    "lenet-small": ((10, 20), 0, (50,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
    "mlp-100": ((), 0, (100,)),
}


def network(name):
    filters, padding, hidden = PLANS[name]
    layers, channels, side = [], 1, 28
    for f in filters:
        layers += [nn.Conv2d(channels, f, 5, padding=padding), nn.MaxPool2d(2), nn.ReLU()]
        channels, side = f, (side + 2 * padding - 4) // 2
    layers.append(nn.Flatten())
    width = channels * side * side
    for h in hidden:
        layers += [nn.Linear(width, h), nn.ReLU()]
        width = h
    return nn.Sequential(*layers, nn.Linear(width, 10))


def set_precision(name):
    torch.backends.cuda.matmul.allow_tf32 = name != "fp32"
    torch.backends.cudnn.allow_tf32 = name != "fp32"
    torch.backends.cudnn.benchmark = True


def captured(step):
    """The step as a CUDA graph, after it has warmed up on a side stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def langevin_update(sampler, rate, n, decay, parameters, gradients, second):
    if sampler == "sgd":
        torch._foreach_add_(parameters, gradients, alpha=-rate)
        return
    gradients = torch._foreach_add(gradients, parameters, alpha=decay)
    noise = [torch.randn_like(p) for p in parameters]
    if sampler == "psgld":
        torch._foreach_mul_(second, 0.99)
        torch._foreach_addcmul_(second, gradients, gradients, 0.01)
        roots = torch._foreach_sqrt(second)
        torch._foreach_add_(roots, 1e-5)
        gradients = torch._foreach_div(gradients, roots)
        noise = torch._foreach_div(noise, torch._foreach_sqrt(roots))
    torch._foreach_add_(parameters, gradients, alpha=-rate)
    torch._foreach_add_(parameters, noise, alpha=math.sqrt(2 * rate / n))


class Training:
    def __init__(self, r):
        set_precision(r["precision"])
        torch.manual_seed(1)
        chains, batch, n = r["chains"], r["batch"], 10 * r["batch"]
        decay = 1 / (r["prior"] ** 2 * n)
        images = torch.rand(n, 1, 28, 28, device="cuda")
        labels = torch.arange(n, device="cuda") % 10
        model = network(r["network"]).cuda()
        names = [name for name, _ in model.named_parameters()]
        parameters = [p.detach().clone() for p in model.parameters()]
        if chains > 1:
            parameters = [p.expand(chains, *p.shape).clone() for p in parameters]
        second = [torch.zeros_like(p) for p in parameters]

        def loss(values, x, y):
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=r["precision"] == "bf16"):
                z = torch.func.functional_call(model, dict(zip(names, values)), (x,))
            return F.cross_entropy(z.float(), y)

        gradient = torch.func.grad(loss)
        if chains > 1:
            gradient = torch.func.vmap(gradient)

        def step():
            index = torch.randint(n, (chains, batch) if chains > 1 else (batch,), device="cuda")
            gradients = list(gradient(parameters, images[index], labels[index]))
            with torch.no_grad():
                langevin_update(r["sampler"], r["rate"], n, decay, parameters, gradients, second)

        self.step = step
        if r["mode"] == "compile":
            self.step = torch.compile(step, mode="max-autotune-no-cudagraphs")
        if r["mode"] != "eager":
            self.step = captured(self.step)


class Update:
    def __init__(self, r):
        n = r["parameters"]
        parameters, gradients, second = ([torch.zeros(n, device="cuda")] for _ in range(3))

        def step():
            langevin_update("psgld", 1e-3, 60000, 1e-3, parameters, gradients, second)

        self.step = step
        if r["mode"] == "compile":
            self.step = torch.compile(step, mode="max-autotune-no-cudagraphs")
        if r["mode"] != "eager":
            self.step = captured(self.step)


class Copy:
    def __init__(self, r):
        a, b = (torch.zeros(r["parameters"], device="cuda") for _ in range(2))
        self.step = captured(lambda: a.copy_(b))


class Convolution:
    """The 64 to 64 channels 5x5 convolution of mnist-64-64-256 or one of its gradients: cuDNN's best, of two layouts."""

    def __init__(self, r):
        set_precision(r["precision"])
        dtype = torch.bfloat16 if r["precision"] == "bf16" else torch.float32
        mask = {"forward": None, "input": [True, False, False], "filter": [False, True, False]}[r["direction"]]
        steps = []
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(r["batch"], 64, 14, 14, device="cuda", dtype=dtype).to(memory_format=layout)
            w = torch.randn(64, 64, 5, 5, device="cuda", dtype=dtype).to(memory_format=layout)
            dy = torch.randn_like(x)
            options = ([1, 1], [2, 2], [1, 1], False, [0, 0], 1)
            if mask is None:
                step = lambda x=x, w=w: F.conv2d(x, w, padding=2)
            else:
                step = lambda x=x, w=w, dy=dy: torch.ops.aten.convolution_backward(dy, x, w, None, *options, mask)
            steps.append(captured(step))
        self.step = min(steps, key=lambda s: measure(s, 20))


def measure(step, count):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


WORKS = {"train": Training, "update": Update, "copy": Copy, "convolution": Convolution}


def main():
    if not torch.cuda.is_available():
        print(json.dumps({"absent": "PyTorch finds no GPU"}), flush=True)
        return
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request.get("work"):
                work = None
                torch.cuda.empty_cache()
                torch._dynamo.reset()
                work = WORKS[request["work"]](request)
                answer = {"seconds": 0}
            else:
                answer = {"seconds": measure(work.step, request["steps"])}
        except Exception as error:  # the other side prints it and goes on without this one
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps({"version": torch.__version__, **answer}), flush=True)


main()
