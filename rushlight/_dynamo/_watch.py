"""Fake tensors whose sizes notice what a program asks of them."""

import rushlight as torch
from rushlight import _C
from rushlight._subclasses.fake_tensor import FakeTensor

from ._sizes import Ranges, TracedSize

__all__ = ["Watch"]

__capture__ = "skip"  # Note [Capture marks]

_sizes = _C.TensorBase.shape.__get__


class Watch:
    """One capture at `values` that says for which sizes the program does what it did.

    ``shapes`` are those of all values of the graph, by their nodes' names: numbers, and polynomials.
    """

    def __init__(self, shapes, values):
        self.shapes = shapes
        self.ranges = Ranges(values)
        self.recorder = None
        self.active = False

    def connect(self, recorder):
        """Make the tensors of a recorder watched ones."""
        self.recorder, fakes = recorder, recorder.fakes
        self.ranges.observer = recorder.observer

        def from_meta(meta, device, constant=None):
            made = _Watched(fakes, meta, device, constant)
            made.watch = self
            return made

        fakes.from_meta = from_meta

    def __enter__(self):
        self.active = True

    def __exit__(self, *exc):
        self.active = False

    def sizes_of(self, tensor):
        """A tensor's sizes as the program gets them: numbers that notice what becomes of them."""
        observer, recorder = self.ranges.observer, self.recorder
        if not self.active or observer.paused or recorder.muted:
            return _sizes(tensor)
        observer.paused = True
        try:
            known = recorder.nodes.get(id(tensor))
            shape = self.shapes.get(known[1].name) if known is not None else None
            if shape is None:
                self.ranges.stop("the program asks for the sizes of a tensor that is no value of its graph")
            return torch.Size(TracedSize.of(size, self.ranges) for size in shape)
        finally:
            observer.paused = False


def _plain(ask, name):
    """A fact that is a plain number, unless it changes with the sizes."""

    def fact(self, *args):
        if any(isinstance(size, TracedSize) for size in self.shape):
            self.watch.ranges.stop(f"the program asks for the {name} of a tensor whose sizes change")
        return ask(self, *args)

    return fact


class _Watched(FakeTensor):
    watch: Watch

    @property
    def shape(self):
        return self.watch.sizes_of(self)

    def size(self, dim=None):
        sizes = self.watch.sizes_of(self)
        return sizes if dim is None else sizes[dim]

    def numel(self):
        total = 1
        for size in self.watch.sizes_of(self):
            total = total * size
        return total

    nelement = numel

    __len__ = _plain(torch.Tensor.__len__, "length")
    stride = _plain(torch.Tensor.stride, "strides")

    @property
    def nbytes(self):
        return self.numel() * self.element_size()
