"""Saving and loading: few large tensors, many small ones, a training program's checkpoint."""

import copy
import io
import os
import pickle
import tempfile
from contextlib import contextmanager

import torch
from torch import nn

from ..case import Case


def large(sizes):
    return {f"layer{i}.weight": torch.randn(sizes(2048, 4), sizes(1024, 4)) for i in range(4)}


def small(sizes):
    return {f"layer{i}.bias": torch.randn(16) for i in range(sizes(1000, 5))}


def checkpoint(sizes):
    """What a training program keeps."""
    model = nn.Sequential(*[nn.Linear(sizes(256, 4), sizes(256, 4)) for _ in range(sizes(20, 2))])
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(2, sizes(256, 4))).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}


@contextmanager
def saving(content, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")
        yield lambda: torch.save(content, path, **options)


@contextmanager
def loading(content, **options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file.pt")
        torch.save(content, path)
        yield lambda: torch.load(path, **options)


def through_memory(content):
    def run():
        buffer = io.BytesIO()
        torch.save(content, buffer)
        buffer.seek(0)
        return torch.load(buffer)

    return run


def pickled(content):
    return lambda: pickle.loads(pickle.dumps(content, protocol=5))


def copied(content):
    return lambda: copy.deepcopy(content)


def cases(sizes):
    for name, make in (("32 MB", large), ("1000 small tensors", small), ("checkpoint", checkpoint)):
        yield Case(f"save/{name}", lambda make=make: saving(make(sizes)))
        yield Case(f"load/{name}", lambda make=make: loading(make(sizes)))
        yield Case(
            f"load/{name}, weights_only=False", lambda make=make: loading(make(sizes), weights_only=False)
        )
        yield Case(f"load/{name}, mmap", lambda make=make: loading(make(sizes), mmap=True))
        yield Case(f"both/{name}, in memory", lambda make=make: through_memory(make(sizes)))
        yield Case(f"both/{name}, pickle", lambda make=make: pickled(make(sizes)))
        yield Case(f"both/{name}, deepcopy", lambda make=make: copied(make(sizes)))
