"""Networks and training loops for the suite `models`, and what they have in common.

A builder takes `sizes` and `precision`, which opens the context of forward passes, and gives a Workload.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

import torch

Precision = Callable[[], AbstractContextManager]


class Workload(NamedTuple):
    model: torch.nn.Module
    train: Callable[[], object]  # one step, optimizer included
    infer: Callable[[], object]


def supervised(model, optimizer, inputs, loss, precision: Precision) -> Workload:
    """The usual loop; `loss` takes the model's output."""

    def train():
        optimizer.zero_grad()
        with precision():
            value = loss(model(*inputs))
        value.backward()
        optimizer.step()
        return value.item()

    def infer():
        with precision():
            return model(*inputs)

    return Workload(model, train, infer)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)
