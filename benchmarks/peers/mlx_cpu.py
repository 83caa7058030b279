"""MLX on its CPU device, with compiled steps."""

import importlib.metadata
from functools import partial

import mlx.core as mx
import mlx.nn as nn
import mlx.optimizers as optimizers

from ..case import Case
from . import shapes

version = importlib.metadata.version("mlx")
mx.set_default_device(mx.cpu)


class Program:
    def __init__(self, model, optimizer, inputs, targets):
        self.model, self.inputs, self.targets = model, inputs, targets
        self.state = [model.state, optimizer.state]
        gradient = nn.value_and_grad(
            model, lambda inputs, targets: nn.losses.cross_entropy(model(inputs), targets, reduction="mean")
        )

        @partial(mx.compile, inputs=self.state, outputs=self.state)
        def step(inputs, targets):
            loss, gradients = gradient(inputs, targets)
            optimizer.update(model, gradients)
            return loss

        self.step, self.forward = step, mx.compile(model, inputs=[model.state])
        mx.eval(model.parameters(), inputs, targets)

    def train(self):
        loss = self.step(self.inputs, self.targets)
        mx.eval(self.state, loss)
        return loss.item()

    def infer(self):
        out = self.forward(self.inputs)
        mx.eval(out)
        return out


def momentum():
    return optimizers.SGD(0.01, momentum=0.9, weight_decay=1e-4)


def mlp(sizes):
    shape = shapes.mlp(sizes)
    layers = []
    for inputs, outputs in zip(shape.widths, shape.widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    x = mx.random.normal((shape.batch, shape.widths[0]))
    y = mx.random.randint(0, shape.widths[-1], (shape.batch,))
    return Program(nn.Sequential(*layers[:-1]), momentum(), x, y)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attention(self, x):
        batch, length, width = x.shape
        split = self.project(x).reshape(batch, length, 3, self.heads, -1).transpose(2, 0, 3, 1, 4)
        scale = (width // self.heads) ** -0.5
        y = mx.fast.scaled_dot_product_attention(*split, scale=scale, mask="causal")
        return self.out(y.transpose(0, 2, 1, 3).reshape(x.shape))

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.word = nn.Embedding(shape.words, shape.width)
        self.position = nn.Embedding(shape.length, shape.width)
        self.blocks = [Block(shape.width, shape.heads) for _ in range(shape.layers)]
        self.norm = nn.LayerNorm(shape.width)

    def __call__(self, words):
        x = self.word(words) + self.position(mx.arange(words.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.word.as_linear(self.norm(x))


def gpt(sizes):
    shape = shapes.gpt(sizes)
    text, following = (mx.random.randint(0, shape.words, (shape.batch, shape.length)) for _ in range(2))
    return Program(GPT(shape), optimizers.AdamW(3e-4, bias_correction=True), text, following)


class Convolutions(nn.Module):
    def __init__(self, shape):
        super().__init__()
        first, second = shape.channels
        self.first = nn.Conv2d(1, first, 3, padding=1)
        self.second = nn.Conv2d(first, second, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(second * (shape.side // 4) ** 2, 10)

    def __call__(self, x):
        x = self.pool(nn.relu(self.first(x)))
        x = self.pool(nn.relu(self.second(x)))
        return self.out(x.reshape(x.shape[0], -1))


def convolutions(sizes):
    shape = shapes.convolutions(sizes)
    x = mx.random.normal((shape.batch, shape.side, shape.side, 1))
    y = mx.random.randint(0, 10, (shape.batch,))
    return Program(Convolutions(shape), momentum(), x, y)


def cases(sizes):
    for name, build in (("MLP", mlp), ("GPT", gpt), ("convolutions", convolutions)):
        yield Case(f"{name}/training", lambda build=build: build(sizes).train)
        yield Case(f"{name}/inference", lambda build=build: build(sizes).infer)
