"""Training steps, updates and predictions in JAX.

A jitted call is a step, or a loop of several; chains are a dimension of vmap, or run one after the other: whichever is faster. State is donated.
"""
import os
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as missing:
    absent(f"JAX is not installed: {missing}")

PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


def use(r):
    """Selects the request's device, "cpu" or "cuda", and its precision. Returns a key of the device's fastest generator."""
    jax.clear_caches()
    try:
        jax.config.update("jax_default_device", jax.devices("gpu" if r["device"] == "cuda" else r["device"])[0])
    except RuntimeError as none:
        absent(f"JAX finds no {r['device']}: {none}")
    jax.config.update("jax_default_matmul_precision", PRECISIONS[r.get("precision") or "fp32"])
    return jax.random.key(1, impl="unsafe_rbg" if r["device"] == "cuda" else "threefry2x32")


def initial(name, key):
    parameters = list(parameters_of(plan(name)))
    return [mean + deviation * jax.random.normal(k, shape) for k, (shape, deviation, mean) in zip(jax.random.split(key, len(parameters)), parameters)]


def pooled(x):
    """Max-pooling by 2x2; the gradient of reduce_window would be slower."""
    return jnp.maximum(jnp.maximum(x[:, :, ::2, ::2], x[:, :, ::2, 1::2]), jnp.maximum(x[:, :, 1::2, ::2], x[:, :, 1::2, 1::2]))


def convolution(x, p, filters, channels, size, stride, padding):
    w, b = next(p), next(p)
    return lax.conv_general_dilated(x, w, (stride, stride), [(padding, padding)] * 2) + b[:, None, None]


def response_norm(x, p, channels):
    """Filter response normalisation and its threshold."""
    gamma, beta, tau = (next(p)[:, None, None] for _ in range(3))
    return jnp.maximum(x * (gamma * lax.rsqrt(jnp.mean(x * x, (2, 3), keepdims=True) + 1e-6)) + beta, tau)


def standardise(x, p, channels):
    """Standardises each image by its mean and standard deviation, then scales and shifts each channel."""
    gamma, beta = next(p)[:, None, None], next(p)[:, None, None]
    return (x - jnp.mean(x, (1, 2, 3), keepdims=True)) * lax.rsqrt(jnp.var(x, (1, 2, 3), keepdims=True) + 1e-5) * gamma + beta


LAYERS = {
    "convolution": convolution,
    "linear": lambda x, p, inputs, outputs: x @ next(p) + next(p),
    "response_norm": response_norm,
    "standardise": standardise,
    "pool": lambda x, p: pooled(x),
    "average": lambda x, p: jnp.mean(x, (2, 3)),
    "flatten": lambda x, p: x.reshape(x.shape[0], -1),
    "relu": lambda x, p: jax.nn.relu(x),
    "silu": lambda x, p: jax.nn.silu(x),
}


def logits(name, parameters, x):
    return through(plan(name), LAYERS, iter(parameters), x)


def normalised(images, dtype):
    return (images.astype(jnp.float32) * (1 / (255 * DEVIATION)) - MEAN / DEVIATION).astype(dtype)


def langevin_update(sampler, rate, n, decay, parameters, gradients, second, key):
    """Returns the parameters and the second moments after a step."""
    if sampler == "sgd":
        return [p - rate * d for p, d in zip(parameters, gradients)], second
    gradients = [d + decay * p for p, d in zip(parameters, gradients)]
    scale = [1.0] * len(gradients)
    if sampler == "psgld":
        second = [0.99 * v + 0.01 * d * d for v, d in zip(second, gradients)]
        scale = [1 / (1e-5 + jnp.sqrt(v)) for v in second]
    new = [p - rate * s * d + jnp.sqrt(2 * rate * s / n) * jax.random.normal(k, p.shape)
           for p, d, s, k in zip(parameters, gradients, scale, jax.random.split(key, len(gradients)))]
    return new, second


class Stepping:
    """The steps(n) of a function step(state, data), which returns the next state; it starts with a copy of state."""

    def __init__(self, step, state, data, looped):
        self.state, self.data = jax.tree.map(jnp.copy, state), data
        self.one, self.many = jax.jit(step, donate_argnums=0), None
        if looped:  # a fixed number of steps, so that no condition is computed on the device
            many = jax.jit(lambda state, data: lax.fori_loop(0, TOGETHER, lambda _, s: step(s, data), state), donate_argnums=0)
            self.many = many.lower(self.state, data).compile()

    def __call__(self, n):
        together = n // TOGETHER if self.many else 0
        begin = time.perf_counter()
        for _ in range(together):
            self.state = self.many(self.state, self.data)
        for _ in range(n - TOGETHER * together):
            self.state = self.one(self.state, self.data)
        jax.block_until_ready(self.state)
        return time.perf_counter() - begin


def quickest(steps, state, data):
    """Returns the fastest of some functions, called for each step or for several."""
    best = fastest([lambda step=step: Stepping(step, state, data, False) for step in steps])
    if best(1) > ROUND / TOGETHER:
        return best
    return fastest([lambda: best, lambda: Stepping(best.one, state, data, True)])


class Training:
    def __init__(self, r):
        key = use(r)
        half = jnp.bfloat16 if r.get("precision") == "bf16" else jnp.float32
        name, batch, chains, n = r["network"], r["batch"], r.get("chains", 1), 10 * r["batch"]
        (channels, side), rate, decay = images_of(name), r["rate"], 1 / (r["prior"] ** 2 * n)
        self.images = jax.random.randint(key, (n, channels, side, side), 0, 256).astype(jnp.uint8)

        def loss(parameters, x, y):
            z = logits(name, [p.astype(half) for p in parameters], normalised(x, half)).astype(jnp.float32)
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

        def step(state, data):
            (parameters, second, key), (images, labels) = state, data
            key, pick, draw = jax.random.split(key, 3)
            index = jax.random.randint(pick, (batch,), 0, n)
            gradients = jax.grad(loss)(parameters, images[index], labels[index])
            return *langevin_update(r["sampler"], rate, n, decay, parameters, gradients, second, draw), key

        def start(key):
            parameters = initial(name, key)
            return parameters, [jnp.zeros_like(p) for p in parameters] if r["sampler"] == "psgld" else [], key

        steps, state = [step], start(key)
        if chains > 1:
            state = jax.vmap(start)(jax.random.split(key, chains))
            steps = [jax.vmap(step, (0, None))]
            if has_convolutions(name):  # grouped convolutions are slow
                steps.insert(0, lambda state, data: lax.map(lambda s: step(s, data), state))
        self.steps = quickest(steps, state, (self.images, jnp.arange(n) % CLASSES))
        self.begun = [jnp.copy(p) for p in self.steps.state[0]]

    def displacement(self):
        sums = sum(float(jnp.sum((p - b) ** 2)) for p, b in zip(self.steps.state[0], self.begun))
        return sums / sum(p.size for p in self.begun)


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        parameters, batch = self.steps.state[0], r["batch"]
        predict = jax.jit(lambda p, x: jax.nn.softmax(logits(r["network"], p, normalised(x, jnp.float32))))

        def steps(n):
            begin = time.perf_counter()
            for i in range(n):
                at = i % 10 * batch
                y = predict(parameters, self.images[at:at + batch])
            jax.block_until_ready(y)
            return time.perf_counter() - begin

        self.steps = steps


class Update:
    def __init__(self, r):
        key, zeros = use(r), jnp.zeros(r["parameters"])

        def step(state, data):
            (parameters, second, key), gradients = state, data
            key, draw = jax.random.split(key)
            return *langevin_update("psgld", 1e-3, 60000, 1e-3, parameters, gradients, second, draw), key

        self.steps = quickest([step], ([zeros], [zeros], key), [zeros])


serve({"train": Training, "predict": Prediction, "update": Update}, jax.__version__)
