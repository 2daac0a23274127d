"""Training steps and predictions in JAX: jit of a loop over whole steps, parameters donated; chains are a dimension of vmap."""
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


def use(device):
    """Computes on a device, "cpu" or "cuda"."""
    try:
        jax.config.update("jax_default_device", jax.devices("gpu" if device == "cuda" else device)[0])
    except RuntimeError as none:
        absent(f"JAX finds no {device}: {none}")


def initial(name, key):
    convolutions, _, layers = plan(name)
    shapes = [s for layer in (*convolutions, *layers) for s in (layer, (layer[0] if len(layer) > 2 else layer[1],))]
    return [0.05 * jax.random.normal(k, s) for k, s in zip(jax.random.split(key, len(shapes)), shapes)]


def logits(name, parameters, x):
    convolutions, padding, layers = plan(name)
    p = iter(parameters)
    for _ in convolutions:
        w, b = next(p), next(p)
        x = lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2) + b[:, None, None]
        x = jax.nn.relu(lax.reduce_window(x, x.dtype.type(-jnp.inf), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))
    x = x.reshape(x.shape[0], -1)
    for i in range(len(layers)):
        x = (jax.nn.relu(x) if i else x) @ next(p) + next(p)
    return x


class Training:
    def __init__(self, r):
        use(r["device"])
        jax.config.update("jax_default_matmul_precision", PRECISIONS[r.get("precision", "fp32")])
        half = jnp.bfloat16 if r.get("precision") == "bf16" else jnp.float32
        name, batch, chains, n = r["network"], r["batch"], r.get("chains", 1), 10 * r["batch"]
        rate, decay = r["rate"], 1 / (r["prior"] ** 2 * n)
        key = jax.random.key(1)
        self.images = images = jax.random.uniform(key, (n, 1, SIDE, SIDE))
        labels = jnp.arange(n) % CLASSES

        def loss(parameters, x, y):
            z = logits(name, [p.astype(half) for p in parameters], x.astype(half)).astype(jnp.float32)
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(z), y[:, None], 1))

        def step(state):
            parameters, second, key = state
            key, pick, draw = jax.random.split(key, 3)
            index = jax.random.randint(pick, (batch,), 0, n)
            g = jax.grad(loss)(parameters, images[index], labels[index])
            if r["sampler"] == "sgd":
                return [p - rate * d for p, d in zip(parameters, g)], second, key
            g = [d + decay * p for p, d in zip(parameters, g)]
            scale = [1.0] * len(g)
            if r["sampler"] == "psgld":
                second = [0.99 * v + 0.01 * d * d for v, d in zip(second, g)]
                scale = [1 / (1e-5 + jnp.sqrt(v)) for v in second]
            keys = jax.random.split(draw, len(g))
            new = [p - rate * s * d + jnp.sqrt(2 * rate * s / n) * jax.random.normal(k, p.shape)
                   for p, d, s, k in zip(parameters, g, scale, keys)]
            return new, second, key

        def start(key):
            parameters = initial(name, key)
            return parameters, [jnp.zeros_like(p) for p in parameters], key

        self.state = start(key)
        if chains > 1:
            step, self.state = jax.vmap(step), jax.vmap(start)(jax.random.split(key, chains))
        self.begun = [jnp.copy(p) for p in self.state[0]]
        self.run = jax.jit(lambda state, steps: lax.fori_loop(0, steps, lambda _, s: step(s), state), donate_argnums=0)

    def steps(self, n):
        begin = time.perf_counter()
        self.state = jax.block_until_ready(self.run(self.state, n))
        return time.perf_counter() - begin

    def displacement(self):
        sums = sum(float(jnp.sum((p - b) ** 2)) for p, b in zip(self.state[0], self.begun))
        return sums / sum(p.size for p in self.begun)


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        self.batch = r["batch"]
        self.predict = jax.jit(lambda p, x: jax.nn.softmax(logits(r["network"], p, x)))

    def steps(self, n):
        begin = time.perf_counter()
        for i in range(n):
            at = i % 10 * self.batch
            y = self.predict(self.state[0], self.images[at:at + self.batch])
        jax.block_until_ready(y)
        return time.perf_counter() - begin


serve({"train": Training, "predict": Prediction}, jax.__version__)
