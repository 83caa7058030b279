"""What other libraries do in `benchmarks/peers`, as PyTorch programs."""

import torch
import torch.nn.functional as F
from torch import nn

from ..case import Case
from ..models import Workload, momentum, supervised
from ..models.sequence import GPT, token_loss
from ..peers import shapes
from ..peers.arrays import SIZES, numbers, statements


def single(model, optimizer, inputs, loss) -> Workload:
    """A model as the others have it: compiled, in single precision."""
    return supervised(torch.compile(model), optimizer, (inputs,), loss, torch.enable_grad)


def mlp(sizes):
    shape = shapes.mlp(sizes)
    layers = []
    for inputs, outputs in zip(shape.widths, shape.widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    x, y = torch.randn(shape.batch, shape.widths[0]), torch.randint(0, shape.widths[-1], (shape.batch,))
    return single(model, momentum(model), x, lambda out: F.cross_entropy(out, y))


def gpt(sizes):
    shape = shapes.gpt(sizes)
    model = GPT(shape.words, shape.length, shape.width, shape.heads, shape.layers)
    text, following = (torch.randint(0, shape.words, (shape.batch, shape.length)) for _ in range(2))
    return single(model, torch.optim.AdamW(model.parameters(), lr=3e-4), text, token_loss(following))


def convolutions(sizes):
    shape = shapes.convolutions(sizes)
    first, second = shape.channels
    model = nn.Sequential(
        nn.Conv2d(1, first, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(first, second, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(second * (shape.side // 4) ** 2, 10),
    )
    x = torch.randn(shape.batch, 1, shape.side, shape.side)
    y = torch.randint(0, 10, (shape.batch,))
    return single(model, momentum(model), x, lambda out: F.cross_entropy(out, y))


def inference(workload):
    workload.model.eval()

    def run():
        with torch.no_grad():
            return workload.infer()

    return run


DIGITS = shapes.Digits()


def digits():
    from rushlight.demo.digits import load  # the same images in the same order

    images, labels = load().tensors
    images, held_out = images.flatten(1), DIGITS.held_out
    return (images[held_out:], labels[held_out:]), (images[:held_out], labels[:held_out])


def epoch(model, optimizer, images, labels):
    for batch in torch.randperm(len(images)).split(DIGITS.batch):
        optimizer.zero_grad()
        F.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()


def perceptron(sizes):
    (images, labels), _ = digits()

    def fit():
        model = nn.Sequential(nn.Linear(64, DIGITS.hidden), nn.ReLU(), nn.Linear(DIGITS.hidden, 10))
        optimizer = torch.optim.SGD(model.parameters(), DIGITS.rate, momentum=0.9, weight_decay=1e-4)
        for _ in range(sizes(DIGITS.epochs, 1)):
            epoch(model, optimizer, images, labels)
        return model

    return fit


def to_goal(sizes):
    (images, labels), (held_images, held_labels) = digits()

    def fit():
        model = nn.Linear(64, 10)
        optimizer = torch.optim.SGD(model.parameters(), 0.5)
        for _ in range(sizes(100, 1)):
            epoch(model, optimizer, images, labels)
            with torch.no_grad():
                right = (model(held_images).argmax(1) == held_labels).float().mean().item()
            if right >= DIGITS.goal:
                break
        return model

    return fit


def names(size: str, tiny: bool) -> dict[str, object]:
    arrays = {name: torch.from_numpy(array) for name, array in numbers(size, tiny).items()}
    return {**arrays, "torch": torch, "n": SIZES["1e3" if tiny else size][0]}


def cases(sizes):
    for name, build in (("MLP", mlp), ("GPT", gpt), ("convolutions", convolutions)):
        yield Case(f"{name}/training", lambda build=build: build(sizes).train)
        yield Case(f"{name}/inference", lambda build=build: inference(build(sizes)))
    yield Case("digits, perceptron/5 epochs", lambda: perceptron(sizes))
    yield Case("digits, linear/to 95% held out", lambda: to_goal(sizes))
    yield from statements(sizes, 1, names)
