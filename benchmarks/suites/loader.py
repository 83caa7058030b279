"""Feeding: data sets and loaders without and with worker processes, tensors handed to another process."""

from contextlib import contextmanager

import torch
import torch.multiprocessing as multiprocessing
from torch.utils import data

from ..case import Case


class Samples(data.Dataset):
    """Samples that are made when they are asked for, as if decoded."""

    def __init__(self, count, *shape):
        self.count, self.shape = count, shape

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full(self.shape, float(index)), index


class Records(Samples):
    """Samples with names."""

    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return {"image": image, "label": label, "weight": 0.5, "name": f"sample {index}"}


def epoch(loader):
    """An epoch of a loader whose workers live on."""

    def run():
        for _batch in loader:
            pass

    return run


def plain(dataset, batch, **options):
    return epoch(data.DataLoader(dataset, batch, **options))


@contextmanager
def with_workers(dataset, batch, persistent=True, **options):
    loader = data.DataLoader(dataset, batch, num_workers=2, persistent_workers=persistent, **options)
    yield epoch(loader)
    del loader


def in_tensors(count, width):
    return data.TensorDataset(torch.randn(count, width), torch.arange(count))


def echo(questions, answers):
    for tensor in iter(questions.get, None):
        answers.put(tensor.numel())


@contextmanager
def handing_over(numbers, count=1, method="fork"):
    """Fresh tensors through a queue to a process that answers."""
    context = multiprocessing.get_context(method)
    questions, answers = context.Queue(), context.Queue()
    process = context.Process(target=echo, args=(questions, answers), daemon=True)
    process.start()

    def run():
        for _ in range(count):
            questions.put(torch.empty(numbers).fill_(1.0))
        for _ in range(count):
            answers.get(timeout=60)

    try:
        yield run
    finally:
        questions.put(None)
        process.join(10)
        process.kill()


def cases(sizes):
    few = sizes(2048, 8)
    yield Case("no workers/TensorDataset", lambda: plain(in_tensors(few, 32), 32, shuffle=True))
    yield Case("no workers/small samples", lambda: plain(Samples(few, 32), 32))
    yield Case("no workers/dictionaries", lambda: plain(Records(few, 32), 32))
    image = (3, sizes(224, 8), sizes(224, 8))
    images = sizes(128, 8)
    yield Case("no workers/images", lambda: plain(Samples(images, *image), 16))
    yield Case("2 workers/TensorDataset", lambda: with_workers(in_tensors(few, 32), 32))
    yield Case("2 workers/small samples", lambda: with_workers(Samples(few, 32), 32))
    yield Case("2 workers/dictionaries", lambda: with_workers(Records(few, 32), 32))
    yield Case("2 workers/images", lambda: with_workers(Samples(images, *image), 16))
    yield Case("2 workers/start and stop", lambda: with_workers(Samples(4, 8), 2, persistent=False))
    for name, numbers in (("1 KB", 2**8), ("64 KB", 2**14), ("1 MB", 2**18), ("64 MB", 2**24)):
        numbers = sizes(numbers, 16)
        yield Case(f"queue/{name}", lambda numbers=numbers: handing_over(numbers))
    yield Case("queue/100 of 1 KB", lambda: handing_over(2**8, count=sizes(100, 3)))
