"""The same training steps and predictions in JAX, on the CPU: jit of a whole step, parameters donated.

Reads a line of JSON that says what to do, then lines with a number of steps; answers each with the seconds they took.
"""
import json
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as missing:
    print(json.dumps({"absent": f"JAX is not installed: {missing}"}), flush=True)
    sys.exit(0)

PLANS = {
    "lenet-small": ((10, 20), 0, (50,)),
    "lenet": ((20, 50), 0, (500,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
    "mlp-400-400": ((), 0, (400, 400)),
}


def initial(name, key):
    filters, padding, hidden = PLANS[name]
    shapes, channels, side = [], 1, 28
    for f in filters:
        shapes += [(f, channels, 5, 5), (f,)]
        channels, side = f, (side + 2 * padding - 4) // 2
    width = channels * side * side
    for h in (*hidden, 10):
        shapes += [(width, h), (h,)]
        width = h
    keys = jax.random.split(key, len(shapes))
    return [0.05 * jax.random.normal(k, s) for k, s in zip(keys, shapes)]


def logits(name, parameters, x):
    filters, padding, hidden = PLANS[name]
    p = iter(parameters)
    for _ in filters:
        w, b = next(p), next(p)
        x = lax.conv_general_dilated(x, w, (1, 1), [(padding, padding)] * 2) + b[:, None, None]
        x = jax.nn.relu(lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))
    x = x.reshape(x.shape[0], -1)
    for _ in hidden:
        x = jax.nn.relu(x @ next(p) + next(p))
    return x @ next(p) + next(p)


class Training:
    def __init__(self, r):
        self.name, self.batch, self.sampler = r["network"], r["batch"], r["sampler"]
        self.examples = 10 * self.batch
        key = jax.random.key(1)
        self.images = jax.random.uniform(key, (self.examples, 1, 28, 28))
        self.labels = jnp.arange(self.examples) % 10
        parameters = initial(self.name, key)
        self.state = (parameters, [jnp.zeros_like(p) for p in parameters], key)
        rate, decay, n = r["rate"], 1 / (r["prior"] ** 2 * self.examples), self.examples

        def loss(parameters, x, y):
            z = jax.nn.log_softmax(logits(self.name, parameters, x))
            return -jnp.mean(jnp.take_along_axis(z, y[:, None], 1))

        def step(state, _):
            parameters, second, key = state
            key, pick, draw = jax.random.split(key, 3)
            index = jax.random.randint(pick, (self.batch,), 0, n)
            g = jax.grad(loss)(parameters, self.images[index], self.labels[index])
            if self.sampler == "sgd":
                return ([p - rate * d for p, d in zip(parameters, g)], second, key), None
            g = [d + decay * p for p, d in zip(parameters, g)]
            scale = [1.0] * len(g)
            if self.sampler == "psgld":
                second = [0.99 * v + 0.01 * d * d for v, d in zip(second, g)]
                scale = [1 / (1e-5 + jnp.sqrt(v)) for v in second]
            keys = jax.random.split(draw, len(g))
            new = [p - rate * s * d + jnp.sqrt(2 * rate * s / n) * jax.random.normal(k, p.shape)
                   for p, d, s, k in zip(parameters, g, scale, keys)]
            return (new, second, key), None

        self.run = jax.jit(lambda state, steps: lax.fori_loop(0, steps, lambda _, s: step(s, None)[0], state), donate_argnums=0)

    def steps(self, n):
        self.state = jax.block_until_ready(self.run(self.state, n))


class Prediction(Training):
    def __init__(self, r):
        super().__init__({**r, "sampler": "sgd"})
        self.predict = jax.jit(lambda p, x: jax.nn.softmax(logits(self.name, p, x)))

    def steps(self, n):
        for i in range(n):
            at = i % 10 * self.batch
            y = self.predict(self.state[0], self.images[at:at + self.batch])
        jax.block_until_ready(y)


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
            work.steps(request["steps"])
            print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
        except Exception as error:  # the other side prints it and goes on without this one
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:500]}), flush=True)


main()
