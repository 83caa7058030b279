"""Datasets of the loader tests, in a module that worker processes can import, for either library."""

import faulthandler
import os
import random
import signal
import time

import rushlight
from rushlight.utils.data import Dataset, IterableDataset, get_worker_info


class Squares(Dataset):
    def __init__(self, n, delay=0.0):
        self.n, self.delay = n, delay

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        time.sleep(self.delay)
        return i * i


class Augmented(Squares):
    """Samples that depend on every global generator."""

    def __getitem__(self, i):
        import numpy

        return i, random.random(), numpy.random.rand(), rushlight.rand(2)


class Failing(Squares):
    """Does something bad at one index: `how` is called with it."""

    def __init__(self, n, at, how):
        super().__init__(n)
        self.at, self.how = at, how

    def __getitem__(self, i):
        if i == self.at:
            self.how()
        return i


class Stream(IterableDataset):
    """Each worker's share of 0 ... n-1, with a random number beside."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        start, step = (info.id, info.num_workers) if info else (0, 1)
        for i in range(start, self.n, step):
            yield i, random.random()


class Uneven(IterableDataset):
    """Worker k gives k + 1 times three samples."""

    def __iter__(self):
        k = get_worker_info().id
        return iter(range(100 * k, 100 * k + 3 * (k + 1)))


class Reports(Dataset):
    """What a worker knows about itself."""

    def __len__(self):
        return 4

    def __getitem__(self, i):
        info = get_worker_info()
        return info.id, info.num_workers, info.seed, rushlight.get_num_threads(), type(info.dataset).__name__


class Unpicklable(Squares):
    def __getitem__(self, i):
        return lambda: i


class Texts(Squares):
    def __getitem__(self, i):
        return {"text": "x" * 100_000, "n": i}


def identity(batch):
    return batch


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def segfault():
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)


def leave():
    os._exit(3)


def look_up():
    return {}["missing"]


def hang():
    time.sleep(1000)


class NeedsTwo(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raise_strange():
    raise NeedsTwo(1, 2)


def print_no_trace(worker_id):
    """A worker that a test kills need not say where it was."""
    faulthandler.disable()


def init_nothing(worker_id):
    raise ValueError(f"worker {worker_id} does not start")


class Initialized(Squares):
    marks: list = []

    def __getitem__(self, i):
        return type(self).marks[0]


def mark(worker_id):
    Initialized.marks.append(worker_id)
