"""Training steps in JAX, on one GPU: jit of a loop over whole steps, parameters donated; chains are a dimension of vmap.

Reads lines of JSON: one that has "work" says what to do from then on, one that has "steps" how often; answers each with the seconds it took.
"""
import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import jax
    import jax.numpy as jnp
    from jax import lax
except ImportError as missing:
    print(json.dumps({"absent": f"JAX is not installed: {missing}"}), flush=True)
    sys.exit(0)

PLANS = {
    "lenet-small": ((10, 20), 0, (50,)),
    "mnist-64-64-256": ((64, 64), 2, (256,)),
    "mlp-100": ((), 0, (100,)),
}
PRECISIONS = {"fp32": "highest", "tf32": "tensorfloat32", "bf16": "default"}


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
        x = jax.nn.relu(lax.reduce_window(x, jnp.array(-jnp.inf, x.dtype), lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"))
    x = x.reshape(x.shape[0], -1)
    for _ in hidden:
        x = jax.nn.relu(x @ next(p) + next(p))
    return x @ next(p) + next(p)


class Training:
    def __init__(self, r):
        jax.config.update("jax_default_matmul_precision", PRECISIONS[r["precision"]])
        half = jnp.bfloat16 if r["precision"] == "bf16" else jnp.float32
        name, batch, chains, n = r["network"], r["batch"], r["chains"], 10 * r["batch"]
        rate, decay = r["rate"], 1 / (r["prior"] ** 2 * n)
        key = jax.random.key(1)
        images = jax.random.uniform(key, (n, 1, 28, 28))
        labels = jnp.arange(n) % 10

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
        self.run = jax.jit(lambda state, steps: lax.fori_loop(0, steps, lambda _, s: step(s), state), donate_argnums=0)

    def steps(self, n):
        self.state = jax.block_until_ready(self.run(self.state, n))


def main():
    try:
        jax.devices("gpu")
    except RuntimeError as none:
        print(json.dumps({"absent": f"JAX finds no GPU: {none}"[:200]}), flush=True)
        return
    work = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            start = time.perf_counter()
            if request.get("work"):
                work = None
                work = Training(request)
                answer = {"seconds": 0}
            else:
                work.steps(request["steps"])
                answer = {"seconds": time.perf_counter() - start}
        except Exception as error:  # the other side prints it and goes on without this one
            answer = {"error": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps({"version": jax.__version__, **answer}), flush=True)


main()
