"""Training steps, predictions, updates and convolutions in PyTorch.

Chains are a dimension of torch.func.vmap, each with its own parameters and minibatches; one chain goes without it.
Modes: eager; channels-last (eager, on that memory format); graph (on a GPU: the eager step captured as a CUDA graph); compile (torch.compile: on a
GPU of the whole step, with max-autotune, captured as a CUDA graph; on a CPU of the loss with its gradients and of the update).
"""
import math
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    absent(f"PyTorch is not installed: {missing}")


def use(r):
    """Computes on the request's device, "cpu" or "cuda", with its threads and precision."""
    if r["device"] == "cuda":
        if not torch.cuda.is_available():
            absent("PyTorch finds no GPU")
        torch.cuda.empty_cache()
    if r.get("threads"):  # of the benchmarks of CPUs alone
        torch.set_num_threads(r["threads"])
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = r.get("precision", "fp32") != "fp32"
    torch.backends.cudnn.benchmark = True


def network(name):
    convolutions, padding, dense = plan(name)
    layers = []
    for filters, channels, *kernel in convolutions:
        # ReLU and max-pooling commute; the cheaper order, pooling first, is for everybody.
        layers += [nn.Conv2d(channels, filters, kernel, padding=padding), nn.MaxPool2d(2), nn.ReLU()]
    layers.append(nn.Flatten())
    for i, (inputs, outputs) in enumerate(dense):
        layers += [nn.ReLU()] * min(i, 1) + [nn.Linear(inputs, outputs)]
    return nn.Sequential(*layers)


def captured(step, device):
    """The step as a CUDA graph, after it has warmed up on a side stream; on a CPU the step itself, once tried."""
    if device == "cpu":
        step()
        return step
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


def prepared(step, mode, device):
    """The step in a mode of GPUs."""
    if mode == "compile":
        step = torch.compile(step, mode="max-autotune-no-cudagraphs")
    return captured(step, device) if mode in ("graph", "compile") else step


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


class Work:
    """step is what is timed, on device."""

    def __init__(self, r):
        use(r)
        self.device = r["device"]

    def steps(self, n):
        if self.device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(n):
            self.step()
        if self.device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin


class Training(Work):
    def __init__(self, r):
        super().__init__(r)
        self.batch, self.n = r["batch"], 10 * r["batch"]
        layout = torch.channels_last if r["mode"] == "channels-last" else torch.contiguous_format
        self.images = torch.rand(self.n, 1, SIDE, SIDE, device=self.device).to(memory_format=layout)
        self.labels = torch.arange(self.n, device=self.device) % CLASSES
        self.model = network(r["network"]).to(self.device).to(memory_format=layout)
        self.parameters = list(self.model.parameters())
        self.many = r.get("chains", 1) > 1
        (self.modules if r.get("threads") else self.functional)(r)
        self.begun = [p.detach().clone() for p in self.parameters]

    def update(self, r):
        decay, second = 1 / (r["prior"] ** 2 * self.n), [torch.zeros_like(p) for p in self.parameters]

        @torch.no_grad()
        def update(gradients):
            langevin_update(r["sampler"], r["rate"], self.n, decay, self.parameters, gradients, second)

        return update

    def functional(self, r):
        """Whole steps of functions, which can be compiled, captured and mapped over chains. Minibatches are drawn with replacement."""
        names, chains = [name for name, _ in self.model.named_parameters()], r["chains"]
        self.parameters = [p.detach().clone() for p in self.parameters]
        if self.many:
            self.parameters = [p.expand(chains, *p.shape).clone() for p in self.parameters]
        update = self.update(r)

        def loss(values, x, y):
            with torch.autocast(self.device, dtype=torch.bfloat16, enabled=r["precision"] == "bf16"):
                z = torch.func.functional_call(self.model, dict(zip(names, values)), (x,))
            return F.cross_entropy(z.float(), y)

        gradient = torch.func.grad(loss)
        if self.many:
            gradient = torch.func.vmap(gradient)

        def step():
            index = torch.randint(self.n, (chains, self.batch) if self.many else (self.batch,), device=self.device)
            update(list(gradient(self.parameters, self.images[index], self.labels[index])))

        self.step = prepared(step, r["mode"], self.device)

    def modules(self, r):
        """Steps of modules, the fastest on a CPU. Minibatches are those of a permutation."""
        update = self.update(r)

        def loss(x, y):
            return F.cross_entropy(self.model(x), y)

        if r["mode"] == "compile":
            loss, update = torch.compile(loss), torch.compile(update)
        self.at = 0

        def step():
            if self.at + self.batch > self.n or self.at == 0:
                self.order, self.at = torch.randperm(self.n), 0
            index = self.order[self.at:self.at + self.batch]
            self.at += self.batch
            update(list(torch.autograd.grad(loss(self.images[index], self.labels[index]), self.parameters)))

        self.step = step

    @torch.no_grad()
    def displacement(self):
        sums = sum(float(((p - b) ** 2).sum()) for p, b in zip(self.parameters, self.begun))
        return sums / sum(p.numel() for p in self.begun)


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        self.probabilities, self.at = lambda x: F.softmax(self.model(x), 1), 0
        if r["mode"] == "compile":
            self.probabilities = torch.compile(self.probabilities)

    @torch.inference_mode()
    def step(self):
        at = self.at % self.n
        self.at += self.batch
        self.probabilities(self.images[at:at + self.batch])


class Update(Work):
    def __init__(self, r):
        super().__init__(r)
        parameters, gradients, second = ([torch.zeros(r["parameters"], device=self.device)] for _ in range(3))

        def step():
            langevin_update("psgld", 1e-3, 60000, 1e-3, parameters, gradients, second)

        self.step = prepared(step, r["mode"], self.device)


class Copy(Work):
    def __init__(self, r):
        super().__init__(r)
        a, b = (torch.zeros(r["parameters"], device=self.device) for _ in range(2))
        self.step = captured(lambda: a.copy_(b), self.device)


class Convolution(Work):
    """The 64 to 64 channels 5x5 convolution of mnist-64-64-256 or one of its gradients: the best of two layouts."""

    def __init__(self, r):
        super().__init__(r)
        dtype = torch.bfloat16 if r["precision"] == "bf16" else torch.float32
        mask = {"forward": None, "input": [True, False, False], "filter": [False, True, False]}[r["direction"]]
        steps = []
        for layout in (torch.contiguous_format, torch.channels_last):
            x = torch.randn(r["batch"], 64, 14, 14, device=self.device, dtype=dtype).to(memory_format=layout)
            w = torch.randn(64, 64, 5, 5, device=self.device, dtype=dtype).to(memory_format=layout)
            dy = torch.randn_like(x)
            options = ([1, 1], [2, 2], [1, 1], False, [0, 0], 1)
            if mask is None:
                step = lambda x=x, w=w: F.conv2d(x, w, padding=2)
            else:
                step = lambda x=x, w=w, dy=dy: torch.ops.aten.convolution_backward(dy, x, w, None, *options, mask)
            steps.append(captured(step, self.device))
        times = []
        for self.step in steps:
            times.append(self.steps(20))
        self.step = steps[times.index(min(times))]


serve({"train": Training, "predict": Prediction, "update": Update, "copy": Copy, "convolution": Convolution}, torch.__version__)
