"""Sizes that all libraries share."""

from typing import NamedTuple


class MLP(NamedTuple):
    batch: int
    widths: tuple[int, ...]


class GPT(NamedTuple):
    batch: int
    length: int
    words: int
    width: int
    heads: int
    layers: int


class Convolutions(NamedTuple):
    batch: int
    side: int
    channels: tuple[int, int]


class Digits(NamedTuple):
    """Training on scikit-learn's handwritten digits, of which the first ones are held out."""

    held_out: int = 360
    hidden: int = 64
    batch: int = 32
    epochs: int = 5
    rate: float = 0.01
    goal: float = 0.95  # of the digits held out


def mlp(sizes) -> MLP:
    return MLP(sizes(128, 4), sizes((784, 512, 512, 10), (6, 5, 5, 10)))


def gpt(sizes) -> GPT:
    return GPT(sizes(4, 2), sizes(128, 8), sizes(8192, 50), sizes(384, 16), sizes(6, 2), sizes(6, 2))


def convolutions(sizes) -> Convolutions:
    return Convolutions(sizes(64, 2), sizes(28, 8), sizes((32, 64), (2, 3)))
