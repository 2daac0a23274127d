"""Training steps, predictions, updates and convolutions in PyTorch.

Modes: eager; channels-last (eager, on that memory format); graph (on a GPU: eager steps captured as CUDA graphs); compile (torch.compile: on a
GPU of the whole step, captured as CUDA graphs; on a CPU of the loss with its gradients and of the update); tune (compile with max-autotune, on a GPU).

Several chains are a dimension of torch.func.vmap, or, with convolutions, run one after the other, since grouped convolutions are slow: whichever is faster.
In the modes for GPUs the memory format is also the faster one.
"""
import contextlib
import math
import time

try:
    import torch
    from torch.nn import functional as F
except ImportError as missing:
    absent(f"PyTorch is not installed: {missing}")


STREAMS = 8  # number of streams on which chains run concurrently


def use(r):
    """Selects the request's device, "cpu" or "cuda", its threads and precision."""
    if r["device"] == "cuda":
        if not torch.cuda.is_available():
            absent("PyTorch finds no GPU")
        torch.cuda.empty_cache()
    if r.get("threads"):  # set by the benchmarks on CPUs only
        torch.set_num_threads(r["threads"])
    torch._dynamo.reset()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = r.get("precision", "fp32") != "fp32"
    torch.backends.cudnn.benchmark = True


def initial(name):
    """Returns a network's parameters in the layers' order; the weights of linear layers are (outputs, inputs)."""
    return [mean + deviation * torch.randn(shape[::-1] if len(shape) == 2 else shape) for shape, deviation, mean in parameters_of(plan(name))]


def convolution(x, p, filters, channels, size, stride, padding):
    return F.conv2d(x, next(p), next(p), stride=stride, padding=padding)


def response_norm(x, p, channels):
    """Filter response normalisation and its threshold."""
    gamma, beta, tau = (next(p).view(-1, 1, 1) for _ in range(3))
    return torch.maximum(torch.addcmul(beta, x, gamma * torch.rsqrt(x.square().mean((2, 3), keepdim=True) + 1e-6)), tau)


LAYERS = {
    "convolution": convolution,
    "linear": lambda x, p, inputs, outputs: F.linear(x, next(p), next(p)),
    "response_norm": response_norm,
    "standardise": lambda x, p, channels: F.group_norm(x, 1, next(p), next(p)),
    "pool": lambda x, p: F.max_pool2d(x, 2),
    "average": lambda x, p: x.mean((2, 3)),
    "flatten": lambda x, p: x.flatten(1),
    "relu": lambda x, p: F.relu(x),
    "silu": lambda x, p: F.silu(x),
}


def logits(name, parameters, x):
    return through(plan(name), LAYERS, iter(parameters), x)


def laid(p, last):
    """Returns a copy of a parameter; filters may have their channels last in memory."""
    return p.clone(memory_format=torch.channels_last if last and p.dim() == 4 else torch.contiguous_format)


def timed(step, many, device):
    """Returns a function that times n steps; many, if given, makes TOGETHER steps at once."""
    def steps(n):
        together = n // TOGETHER if many else 0
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(together):
            many()
        for _ in range(n - TOGETHER * together):
            step()
        if device == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - begin

    return steps


def captured(step, device):
    """Captures steps as CUDA graphs, several in one if they are short; on a CPU returns the step itself."""
    if device == "cpu":
        return timed(step, None, device)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)

    def graph(n, **options):
        made = torch.cuda.CUDAGraph()
        with torch.cuda.graph(made, **options):
            for _ in range(n):
                step()
        return made

    one = graph(1)
    steps = timed(one.replay, None, device)
    steps(1)
    if steps(10) < 10 * 200e-6:  # with longer steps the host keeps ahead of the GPU
        steps = timed(one.replay, graph(TOGETHER, pool=one.pool()).replay, device)
    steps.uses = step  # keeps the tensors alive, which a graph does not
    return steps


@contextlib.contextmanager
def forked(sides):
    """Makes streams wait for the current one, and it for them. Yields a function that returns the context for the c-th of several works."""
    main = torch.cuda.current_stream() if sides else None
    for side in sides:
        side.wait_stream(main)
    yield lambda c: torch.cuda.stream(sides[c % len(sides)]) if sides else contextlib.nullcontext()
    for side in sides:
        main.wait_stream(side)


def compiled(function, tuned):
    """Returns the function compiled without the compiler's own CUDA graphs: captured() makes those. Tuning tries all products, but no coordinate
    descent, which takes minutes more."""
    if not tuned:
        return torch.compile(function)
    options = {"max_autotune": True, "coordinate_descent_tuning": False, "max_autotune_conv_backends": "ATEN", "max_autotune_report_choices_stats": False}
    return torch.compile(function, options={name: v for name, v in options.items() if name in torch._inductor.list_options()})


def normals(like, fused):
    """Draws a normal for each element; for all tensors at once unless a compiler fuses the drawing with their use."""
    if fused or len(like) == 1:
        return [torch.randn_like(p) for p in like]
    drawn = torch.randn(sum(p.numel() for p in like), device=like[0].device).split([p.numel() for p in like])
    return [z.as_strided(p.shape, p.stride()) for z, p in zip(drawn, like)]


def langevin_update(sampler, rate, n, decay, parameters, gradients, second, fused):
    if sampler == "sgd":
        torch._foreach_add_(parameters, gradients, alpha=-rate)
        return
    gradients = torch._foreach_add(gradients, parameters, alpha=decay)
    noise = normals(parameters, fused)
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
    """Times steps on a device."""

    def __init__(self, r):
        use(r)
        self.device, self.tuned = r["device"], r["mode"] == "tune"
        self.mode = "compile" if self.tuned else r["mode"]

    def prepared(self, step):
        """Returns steps in a mode for GPUs."""
        return timed(step, None, self.device) if self.mode == "eager" else captured(step, self.device)


class Training(Work):
    def __init__(self, r):
        super().__init__(r)
        self.r, self.batch, self.n, self.chains = r, r["batch"], 10 * r["batch"], r.get("chains", 1)
        self.half = torch.bfloat16 if r.get("precision") == "bf16" else torch.float32
        channels, side = images_of(r["network"])
        self.images = torch.randint(256, (self.n, channels, side, side), dtype=torch.uint8, device=self.device)
        self.labels = torch.arange(self.n, device=self.device) % CLASSES
        self.shift = torch.tensor([-MEAN / DEVIATION], dtype=self.half, device=self.device)
        self.initial = [p.to(self.device) for p in initial(r["network"])]
        self.steps = self.of_a_cpu() if r.get("threads") else fastest(self.ways())
        if self.device == "cuda":  # leave memory to other processes
            gc.collect()
            torch.cuda.empty_cache()
        self.begun = [p.detach().clone() for p in self.steps.parameters]

    def normalised(self, images):
        return torch.add(self.shift, images, alpha=1 / (255 * DEVIATION))

    def minibatch(self, index):
        return self.normalised(self.images[index]), self.labels[index]

    def loss(self, parameters, x, y):
        parameters = [p.to(self.half) for p in parameters]  # no copy if it has that type already
        return F.cross_entropy(logits(self.r["network"], parameters, x).float(), y)

    def second(self, parameters):
        return [torch.zeros_like(p) for p in parameters] if self.r["sampler"] == "psgld" else []

    @torch.no_grad()
    def update(self, parameters, gradients, second):
        r, decay = self.r, 1 / (self.r["prior"] ** 2 * self.n)
        langevin_update(r["sampler"], r["rate"], self.n, decay, parameters, list(gradients), second, self.mode == "compile")

    def ways(self):
        """Returns whole steps, which can be captured. Minibatches are drawn with replacement."""
        convolutions = has_convolutions(self.r["network"])
        ways = []
        if self.mode == "compile":
            if self.chains > 1 and convolutions:
                ways.append(lambda: self.in_turn(False))
        elif self.chains == 1 or convolutions:
            ways += [lambda: self.flat(True)] * convolutions + [lambda: self.flat(False)]
            if self.mode == "graph" and self.chains > 1 and self.device == "cuda":
                ways.append(lambda: self.flat(True, STREAMS))
        if self.chains > 1 or self.mode == "compile":
            ways.append(self.mapped)
        return ways

    def flat(self, last, streams=0):
        """Returns a step of one chain after the other, or of STREAMS chains at once. All parameters lie in one tensor, so that one kernel rounds them to
        bf16, and one kernel computes each part of the update. Filters may have their channels last."""
        def stored(t):  # a tensor's elements in memory order
            return t.permute(0, 2, 3, 1) if last and t.dim() == 4 else t

        def views(flat):  # views of one chain's numbers
            parts = flat.split([p.numel() for p in self.initial])
            return [part.view(stored(p).shape).permute(0, 3, 1, 2) if last and p.dim() == 4 else part.view(p.shape) for part, p in zip(parts, self.initial)]

        one = torch.cat([stored(p).reshape(-1) for p in self.initial])
        every = one.repeat(self.chains, 1)
        rounded = every if self.half is torch.float32 else every.to(self.half)
        chains = [views(chain) for chain in rounded]
        for chain in chains:
            for p in chain:
                p.requires_grad_()
        second = self.second([every])
        sides = [torch.cuda.Stream() for _ in range(min(streams, self.chains))]

        def step():
            if rounded is not every:
                with torch.no_grad():
                    rounded.copy_(every)
            x, y = self.minibatch(torch.randint(self.n, (self.chains, self.batch), device=self.device))
            with forked(sides) as on:
                gradients = []
                for c, chain in enumerate(chains):
                    with on(c):
                        gradients += torch.autograd.grad(self.loss(chain, x[c], y[c]), chain)
            self.update([every], [torch.cat([stored(g).reshape(-1) for g in gradients]).float().view_as(every)], second)

        steps = self.prepared(step)
        steps.parameters = views(every[0]) if self.chains == 1 else [every]
        return steps

    def mapped(self):
        """Returns a step of all chains by one function."""
        many = (self.chains,) if self.chains > 1 else ()
        gradient = torch.func.grad(self.loss)
        if many:
            gradient = torch.func.vmap(gradient)
        parameters = [p.expand(*many, *p.shape).clone() for p in self.initial]
        second = self.second(parameters)

        def step():
            x, y = self.minibatch(torch.randint(self.n, (*many, self.batch), device=self.device))
            self.update(parameters, gradient(parameters, x, y), second)

        steps = self.prepared(compiled(step, self.tuned) if self.mode == "compile" else step)
        steps.parameters = parameters
        return steps

    def in_turn(self, last):
        """Returns a compiled step of one chain after the other. Filters may have their channels last."""
        chains = [[laid(p, last) for p in self.initial] for _ in range(self.chains)]
        second, gradient = [self.second(chain) for chain in chains], torch.func.grad(self.loss)
        one = compiled(lambda chain, v, x, y: self.update(chain, gradient(chain, x, y), v), self.tuned)

        def step():
            x, y = self.minibatch(torch.randint(self.n, (self.chains, self.batch), device=self.device))
            for c, chain in enumerate(chains):
                one(chain, second[c], x[c], y[c])

        steps = self.prepared(step)
        steps.parameters = [p for chain in chains for p in chain]
        return steps

    def of_a_cpu(self):
        """Returns a step of one chain in the mode's memory format. Minibatches are consecutive parts of a permutation."""
        parameters = [laid(p, self.mode == "channels-last").requires_grad_() for p in self.initial]
        second, loss, update, minibatch = self.second(parameters), self.loss, self.update, self.minibatch
        if self.mode == "compile":
            loss, update, minibatch = torch.compile(loss), torch.compile(update), torch.compile(minibatch)
        order, at = None, self.n

        def step():
            nonlocal order, at
            if at + self.batch > self.n:
                order, at = torch.randperm(self.n), 0
            x, y = minibatch(order[at:at + self.batch])
            at += self.batch
            update(parameters, torch.autograd.grad(loss(parameters, x, y), parameters), second)

        steps = timed(step, None, self.device)
        steps.parameters = parameters
        return steps

    @torch.no_grad()
    def displacement(self):
        sums = sum(float(((p - b) ** 2).sum()) for p, b in zip(self.steps.parameters, self.begun))
        return sums / sum(p.numel() for p in self.begun)


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        parameters, at = self.steps.parameters, 0

        def probabilities(images):
            return F.softmax(logits(r["network"], parameters, self.normalised(images)), 1)

        if r["mode"] == "compile":
            probabilities = torch.compile(probabilities)

        @torch.inference_mode()
        def step():
            nonlocal at
            begin = at % self.n
            at += self.batch
            probabilities(self.images[begin:begin + self.batch])

        self.steps = timed(step, None, self.device)


class Update(Work):
    def __init__(self, r):
        super().__init__(r)
        parameters, gradients, second = ([torch.zeros(r["parameters"], device=self.device)] for _ in range(3))

        def step():
            langevin_update("psgld", 1e-3, 60000, 1e-3, parameters, gradients, second, True)

        self.steps = self.prepared(compiled(step, self.tuned) if self.mode == "compile" else step)


class Copy(Work):
    def __init__(self, r):
        super().__init__(r)
        a, b = (torch.zeros(r["parameters"], device=self.device) for _ in range(2))
        self.steps = captured(lambda: a.copy_(b), self.device)


class Convolution(Work):
    """A convolution of square images or one of its gradients: the best of two layouts."""

    def __init__(self, r):
        super().__init__(r)
        dtype = torch.bfloat16 if r["precision"] == "bf16" else torch.float32
        mask = {"forward": None, "input": [True, False, False], "filter": [False, True, False]}[r["direction"]]
        filters, channels, side, size, border = r["sizes"]
        options = ([1, 1], [border, border], [1, 1], False, [0, 0], 1)

        def way(layout):
            x = torch.randn(r["batch"], channels, side, side, device=self.device, dtype=dtype).to(memory_format=layout)
            w = torch.randn(filters, channels, size, size, device=self.device, dtype=dtype).to(memory_format=layout)
            dy = torch.randn_like(F.conv2d(x, w, padding=border))
            if mask is None:
                return captured(lambda: F.conv2d(x, w, padding=border), self.device)
            return captured(lambda: torch.ops.aten.convolution_backward(dy, x, w, None, *options, mask), self.device)

        self.steps = fastest([lambda layout=layout: way(layout) for layout in (torch.contiguous_format, torch.channels_last)])


class Product(Work):
    """A product of matrices (M, K) and (K, N), the second of which may be stored transposed."""

    def __init__(self, r):
        super().__init__(r)
        m, n, k = r["sizes"]
        a, out = torch.randn(m, k, device=self.device), torch.empty(m, n, device=self.device)
        b = torch.randn(n, k, device=self.device).t() if r.get("transposed") else torch.randn(k, n, device=self.device)
        self.steps = captured(lambda: torch.mm(a, b, out=out), self.device)


serve({"train": Training, "predict": Prediction, "update": Update, "copy": Copy, "convolution": Convolution, "product": Product}, torch.__version__)
