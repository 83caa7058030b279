"""Steps that change the order."""

import random

import rushlight
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.sampler import Sampler, SequentialSampler

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """What a sampler makes of the source."""

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        if not issubclass(sampler, Sampler):
            raise AssertionError(f"SamplerIterDataPipe expects a Sampler class, got {sampler}")
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {} if sampler_kwargs is None else sampler_kwargs
        self.sampler = sampler(*self.sampler_args, data_source=datapipe, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return self._source_length(self.sampler)[0]


class _Seeded(IterDataPipe):
    """A step that draws from a generator of its own, seeded anew for each pass: by the loader, so that all
    workers agree, or from the default generator."""

    def __init__(self):
        self._enabled = True
        self._seed = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle=True):
        self._enabled = shuffle
        return self

    def set_seed(self, seed):
        self._seed = seed
        return self

    def reset(self):
        if not self._enabled:
            return
        if self._seed is None:
            self._seed = int(rushlight.empty((), dtype=rushlight.int64).random_().item())
        self._rng.seed(self._seed)
        self._seed = None


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(_Seeded):
    """A random order, as far as a buffer of that size can give one (functional name: ``shuffle``).

    Args:
        datapipe: the samples.
        buffer_size: how many samples to draw from.
        unbatch_level: how many levels of batches to take apart before.

    Example:
        >>> list(IterableWrapper(range(3)).shuffle())
        [2, 0, 1]
    """

    def __init__(self, datapipe, *, buffer_size=10000, unbatch_level=0):
        super().__init__()
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
        self._buffer: list = []

    def reset(self):
        super().reset()
        self._buffer = []

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        buffer = self._buffer  # kept, so that a pickle in the middle of a pass has it
        for value in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(value)
                continue
            i = self._rng.randint(0, len(buffer) - 1)
            value, buffer[i] = buffer[i], value
            yield value
        while buffer:
            yield buffer.pop(self._rng.randint(0, len(buffer) - 1))

    def __len__(self):
        return self._source_length(self.datapipe)[0]
