"""Draws of many chains by HMC for a linear head on features, in BlackJAX and NumPyro. Chains are a dimension of vmap, and a jitted call is a draw of each.

The step size and the mass matrix are fixed, and the features and labels those of Pollen's side.
"""

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
except ImportError as missing:
    absent(f"JAX is not installed: {missing}")


class Heads:
    def __init__(self, r):
        images, features, classes, leapfrogs = r["sizes"]
        x = jnp.asarray(np.sin(0.7 * np.arange(images * features, dtype=np.float64)).astype(np.float32).reshape(images, features))
        y = jnp.arange(images) % classes
        precision = 1 / r["prior"] ** 2

        def potential(head):
            logits = x @ head["weight"] + head["bias"]
            loss = -jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))
            return loss + 0.5 * precision * sum(jnp.sum(v * v) for v in head.values())

        key = jax.random.key(1)
        at = {"weight": 0.03 * jax.random.normal(key, (r["chains"], features, classes)), "bias": jnp.zeros((r["chains"], classes))}
        draw, self.state = {"blackjax": self.blackjax, "numpyro": self.numpyro}[r["mode"]](potential, at, r["rate"], leapfrogs, features, classes)
        self.draw, self.key, self.chains = jax.jit(draw, donate_argnums=0), key, r["chains"]

    def blackjax(self, potential, at, step_size, leapfrogs, features, classes):
        try:
            import blackjax
        except ImportError as missing:
            absent(f"BlackJAX is not installed: {missing}")
        hmc = blackjax.hmc(lambda head: -potential(head), step_size, jnp.ones((features + 1) * classes), leapfrogs)

        def draw(states, key):
            return jax.vmap(lambda k, s: hmc.step(k, s)[0])(jax.random.split(key, self.chains), states)

        return draw, jax.jit(jax.vmap(hmc.init))(at)

    def numpyro(self, potential, at, step_size, leapfrogs, features, classes):
        try:
            from numpyro.infer import HMC
        except ImportError as missing:
            absent(f"NumPyro is not installed: {missing}")
        hmc = HMC(potential_fn=potential, step_size=step_size, num_steps=leapfrogs, adapt_step_size=False, adapt_mass_matrix=False)
        states = hmc.init(jax.random.split(jax.random.key(2), len(at["bias"])), 0, at, (), {})

        def draw(states, key):
            return hmc.sample(states, (), {})  # of all chains, since their keys are an array

        return draw, states

    def steps(self, n):
        begin = time.perf_counter()
        for _ in range(n):
            self.key, key = jax.random.split(self.key)
            self.state = self.draw(self.state, key)
        jax.block_until_ready(self.state)
        return time.perf_counter() - begin


serve({"heads": Heads}, jax.__version__)
