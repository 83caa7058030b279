"""JAX: whole steps under `jit`, their arguments given up to the results."""

from functools import partial

import jax
import jax.numpy as np

from ..case import Case
from . import shapes

version = jax.__version__


def dense(key, inputs, outputs):
    scale = inputs**-0.5
    return {
        "weight": jax.random.uniform(key, (inputs, outputs), minval=-scale, maxval=scale),
        "bias": np.zeros(outputs),
    }


def apply(layer, x):
    return x @ layer["weight"] + layer["bias"]


def cross_entropy(logits, targets):
    chosen = np.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1)
    return -chosen.mean()


def momentum(parameters):
    return jax.tree.map(np.zeros_like, parameters)


def momentum_step(parameters, state, gradients, rate=0.01):
    gradients = jax.tree.map(lambda g, p: g + 1e-4 * p, gradients, parameters)
    state = jax.tree.map(lambda v, g: 0.9 * v + g, state, gradients)
    return jax.tree.map(lambda p, v: p - rate * v, parameters, state), state


def adamw(parameters):
    zeros = jax.tree.map(np.zeros_like, parameters)
    return zeros, zeros, np.zeros(())


def adamw_step(parameters, state, gradients, rate=3e-4, decay=0.01):
    first, second, step = state
    step = step + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
    scale, bound = 1 - 0.9**step, 1 - 0.999**step

    def update(p, m, v):
        return p * (1 - rate * decay) - rate * (m / scale) / (np.sqrt(v / bound) + 1e-8)

    return jax.tree.map(update, parameters, first, second), (first, second, step)


class Program:
    """A model's parameters with a compiled step and a compiled forward pass."""

    def __init__(self, parameters, forward, inputs, targets, start, step):
        # Copies: the step gives its arguments up, and some optimizers start with one array under two names.
        self.parameters = parameters
        self.state = jax.tree.map(np.array, start(parameters))
        self.inputs, self.targets = inputs, targets
        self.forward = jax.jit(forward)

        @partial(jax.jit, donate_argnums=(0, 1))
        def training(parameters, state, inputs, targets):
            loss = lambda p: cross_entropy(forward(p, inputs), targets)
            value, gradients = jax.value_and_grad(loss)(parameters)
            return *step(parameters, state, gradients), value

        self.training = training

    def train(self):
        self.parameters, self.state, loss = self.training(
            self.parameters, self.state, self.inputs, self.targets
        )
        return float(loss)

    def infer(self):
        return self.forward(self.parameters, self.inputs).block_until_ready()


def mlp(sizes):
    shape = shapes.mlp(sizes)
    keys = jax.random.split(jax.random.key(0), len(shape.widths) + 1)
    layers = [dense(*entry) for entry in zip(keys, shape.widths, shape.widths[1:])]

    def forward(layers, x):
        for layer in layers[:-1]:
            x = jax.nn.relu(apply(layer, x))
        return apply(layers[-1], x)

    x = jax.random.normal(keys[-1], (shape.batch, shape.widths[0]))
    y = jax.random.randint(keys[-2], (shape.batch,), 0, shape.widths[-1])
    return Program(layers, forward, x, y, momentum, momentum_step)


def normalize(layer, x):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * layer["weight"] + layer["bias"]


def gpt(sizes):
    shape = shapes.gpt(sizes)
    width, keys = shape.width, iter(jax.random.split(jax.random.key(0), 100))
    norm = lambda: {"weight": np.ones(width), "bias": np.zeros(width)}
    parameters = {
        "word": 0.02 * jax.random.normal(next(keys), (shape.words, width)),
        "position": 0.02 * jax.random.normal(next(keys), (shape.length, width)),
        "norm": norm(),
        "blocks": [
            {
                "norm1": norm(),
                "project": dense(next(keys), width, 3 * width),
                "out": dense(next(keys), width, width),
                "norm2": norm(),
                "up": dense(next(keys), width, 4 * width),
                "down": dense(next(keys), 4 * width, width),
            }
            for _ in range(shape.layers)
        ],
    }

    def attention(block, x):
        split = apply(block["project"], x).reshape(*x.shape[:2], 3, shape.heads, -1)
        q, k, v = split[:, :, 0], split[:, :, 1], split[:, :, 2]
        y = jax.nn.dot_product_attention(q, k, v, is_causal=True)
        return apply(block["out"], y.reshape(x.shape))

    def forward(p, words):
        x = p["word"][words] + p["position"]
        for block in p["blocks"]:
            x = x + attention(block, normalize(block["norm1"], x))
            hidden = jax.nn.gelu(apply(block["up"], normalize(block["norm2"], x)), approximate=False)
            x = x + apply(block["down"], hidden)
        return normalize(p["norm"], x) @ p["word"].T

    text, following = (
        jax.random.randint(next(keys), (shape.batch, shape.length), 0, shape.words) for _ in range(2)
    )
    return Program(parameters, forward, text, following, adamw, adamw_step)


def convolutions(sizes):
    shape = shapes.convolutions(sizes)
    first, second = shape.channels
    keys = iter(jax.random.split(jax.random.key(0), 8))

    def filters(inputs, outputs):
        weight = dense(next(keys), inputs * 9, outputs)
        return {"weight": weight["weight"].reshape(3, 3, inputs, outputs), "bias": weight["bias"]}

    parameters = {
        "first": filters(1, first),
        "second": filters(first, second),
        "out": dense(next(keys), second * (shape.side // 4) ** 2, 10),
    }

    def convolve(layer, x):
        x = jax.lax.conv_general_dilated(
            x, layer["weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x + layer["bias"])
        return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    def forward(p, x):
        x = convolve(p["second"], convolve(p["first"], x))
        return apply(p["out"], x.reshape(x.shape[0], -1))

    x = jax.random.normal(next(keys), (shape.batch, shape.side, shape.side, 1))
    y = jax.random.randint(next(keys), (shape.batch,), 0, 10)
    return Program(parameters, forward, x, y, momentum, momentum_step)


def cases(sizes):
    for name, build in (("MLP", mlp), ("GPT", gpt), ("convolutions", convolutions)):
        yield Case(f"{name}/training", lambda build=build: build(sizes).train)
        yield Case(f"{name}/inference", lambda build=build: build(sizes).infer)
