"""Networks and training loops for the suite `models`, and what they have in common.

A builder takes `sizes` and `precision`, which opens the context of forward passes, and gives a Workload.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

import torch

Precision = Callable[[], AbstractContextManager]


class Workload(NamedTuple):
    model: torch.nn.Module
    train: Callable[[], object]  # one step, optimizer included
    infer: Callable[[], object]


_wrappers: list[Callable] = []


@contextmanager
def wrapping(wrapper: Callable) -> Iterator[None]:
    """Networks that are built in here train in a wrapper, as DistributedDataParallel is one."""
    _wrappers.append(wrapper)
    try:
        yield
    finally:
        _wrappers.pop()


_compilers: list[Callable] = []


@contextmanager
def compiling(compiler: Callable) -> Iterator[None]:
    """Networks that are built in here run through a compiler, together with their losses."""
    _compilers.append(compiler)
    try:
        yield
    finally:
        _compilers.pop()


def supervised(model, optimizer, inputs, loss, precision: Precision) -> Workload:
    """The usual loop; `loss` takes the model's output."""
    for wrapper in _wrappers:
        model = wrapper(model)

    def forward_and_loss(*inputs):
        return loss(model(*inputs))

    forward = model
    for compiler in _compilers:
        forward, forward_and_loss = compiler(model), compiler(forward_and_loss)

    def train():
        optimizer.zero_grad()
        with precision():
            value = forward_and_loss(*inputs)
        value.backward()
        optimizer.step()
        return value.item()

    def infer():
        with precision():
            return forward(*inputs)

    return Workload(model, train, infer)


def momentum(model):
    return torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-3)
