"""Steps that join streams, or split one."""

import copy as copying
import warnings
from abc import abstractmethod
from collections import deque
from typing import Any

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import StreamWrapper, check_unpickable_fn

__all__ = [
    "ConcaterIterDataPipe",
    "DemultiplexerIterDataPipe",
    "ForkerIterDataPipe",
    "MultiplexerIterDataPipe",
    "ZipperIterDataPipe",
]


def _check_pipes(datapipes):
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


class _Joined(IterDataPipe):
    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Joined):
    """One stream after the other (functional name: ``concat``).

    Args:
        datapipes: the streams.

    Example:
        >>> list(IterableWrapper([0, 1]).concat(IterableWrapper([2])))
        [0, 1, 2]
    """

    def __iter__(self):
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self):
        return sum(self._source_length(*self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(_Joined):
    """Tuples of one sample from each, until one stream ends (functional name: ``zip``).

    Args:
        datapipes: the streams.

    Example:
        >>> list(IterableWrapper([0, 1]).zip(IterableWrapper([2, 3])))
        [(0, 2), (1, 3)]
    """

    def __iter__(self):
        yield from zip(*self.datapipes)

    def __len__(self):
        return min(self._source_length(*self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Joined):
    """One sample from each in turn, until one stream ends (functional name: ``mux``).

    Args:
        datapipes: the streams.

    Example:
        >>> list(IterableWrapper([0, 1]).mux(IterableWrapper([2, 3])))
        [0, 2, 1, 3]
    """

    def __iter__(self):
        for samples in zip(*self.datapipes):
            yield from samples

    def __len__(self):
        return min(self._source_length(*self.datapipes)) * len(self.datapipes)


class _Splitter(IterDataPipe):
    """Reads a stream for several children, each of which reads at its own pace.

    All children read the same pass. A child that starts again starts a new pass, for its siblings too.
    """

    def __init__(self, datapipe, num_instances, buffer_size, name):
        if buffer_size < 0:
            warnings.warn(
                f"Unlimited buffer size is set for `{name}`, please be aware of OOM at random places",
                UserWarning,
                stacklevel=4,
            )
        self.main_datapipe = datapipe
        self.num_instances = num_instances
        self.buffer_size = buffer_size
        self.pass_number = 0
        self._forget()

    def _forget(self):
        self._source: Any = None
        self._buffers = [deque() for _ in range(self.num_instances)]
        self._exhausted = False
        self._finished = [False] * self.num_instances

    def __getstate__(self):
        state = super().__getstate__()
        if isinstance(state, dict):
            state = {
                k: v for k, v in state.items() if k not in ("_source", "_buffers", "_finished", "_exhausted")
            }
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._forget()

    def restart(self):
        if not all(self._finished):
            warnings.warn(
                "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer "
                "and each child DataPipe will read from the start again.",
                UserWarning,
                stacklevel=1,  # one place for all passes: said once
            )
        for buffer in self._buffers:
            StreamWrapper.close_streams(list(buffer))
        self.pass_number += 1
        self._forget()

    def values_for(self, child):
        if self._source is None:
            self._source = iter(self.main_datapipe)
        while True:
            if self._buffers[child]:
                yield self._buffers[child].popleft()
            elif self._exhausted or not self._read(child):
                break
        self._finished[child] = True

    def _read(self, child):
        """Hands one sample, which `child` asks for, to those whom it concerns; False at the end."""
        try:
            value = next(self._source)
        except StopIteration:
            self._exhausted = True
            return False
        self._hand_out(value)
        waiting = self._waiting([buffer for i, buffer in enumerate(self._buffers) if i != child])
        if 0 <= self.buffer_size < waiting:
            raise BufferError(
                f"{type(self).__name__.removeprefix('_')} buffer overflow, buffer size {self.buffer_size} is "
                "insufficient."
            )
        return True

    @abstractmethod
    def _hand_out(self, value):
        """Puts a sample into the buffers of those whom it concerns."""

    @abstractmethod
    def _waiting(self, buffers):
        """How many samples of the other children the limit counts."""


class _ChildDataPipe(IterDataPipe):
    """One of the streams that a stream was split into."""

    def __init__(self, main_datapipe, instance_id):
        self.main_datapipe = main_datapipe
        self.instance_id = instance_id

    def __iter__(self):  # no generator: the pass begins at once
        return self.main_datapipe.values_for(self.instance_id)

    def _begin(self):
        if self._valid_iterator_id == self.main_datapipe.pass_number:
            self.main_datapipe.restart()
        self._valid_iterator_id = self.main_datapipe.pass_number
        self._begin_anew()
        return self._valid_iterator_id

    def _is_current(self, number):
        return number == self._valid_iterator_id == self.main_datapipe.pass_number

    def __len__(self):
        return self.main_datapipe.length_for(self)


def _check_count(num_instances):
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


class _ForkerIterDataPipe(_Splitter):
    def __init__(self, datapipe, num_instances, buffer_size=1000, copy=None):
        copiers = {None: None, "shallow": copying.copy, "deep": copying.deepcopy}
        if copy not in copiers:
            raise ValueError(
                f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`."
            )
        super().__init__(datapipe, num_instances, buffer_size, "fork")
        self.copy_fn = copiers[copy]

    def _hand_out(self, value):
        for buffer in self._buffers:
            buffer.append(value if self.copy_fn is None else self.copy_fn(value))

    def _waiting(self, buffers):
        return max(map(len, buffers))

    def length_for(self, child):
        return child._source_length(self.main_datapipe)[0]


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several streams of all samples (functional name: ``fork``).

    Args:
        datapipe: the samples.
        num_instances: how many streams.
        buffer_size: how many samples one stream may be ahead of another; -1 for any number.
        copy: "shallow" or "deep" to give each stream copies.

    Example:
        >>> list(IterableWrapper([0, 1]).fork(2)[1])
        [0, 1]
    """

    def __new__(cls, datapipe, num_instances, buffer_size=1000, copy=None):
        _check_count(num_instances)
        if num_instances == 1:
            return datapipe
        splitter = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(splitter, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(_Splitter):
    def __init__(self, datapipe, num_instances, classifier_fn, drop_none, buffer_size):
        check_unpickable_fn(classifier_fn)
        super().__init__(datapipe, num_instances, buffer_size, "demux")
        self.classifier_fn = classifier_fn
        self.drop_none = drop_none

    def _hand_out(self, value):
        place = self.classifier_fn(value)
        if place is None and self.drop_none:
            return StreamWrapper.close_streams(value)
        if place is None or not 0 <= place < self.num_instances:
            raise ValueError(
                f"Output of the classification fn should be between 0 and {self.num_instances - 1}. "
                f"{place} is returned."
            )
        self._buffers[place].append(value)
        return None

    def _waiting(self, buffers):
        return sum(map(len, buffers))

    def length_for(self, child):
        raise TypeError(f"{type(child).__name__} instance doesn't have valid length")


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several streams, to each of which a function sends its samples (functional name: ``demux``).

    Args:
        datapipe: the samples.
        num_instances: how many streams.
        classifier_fn: gives the number of a sample's stream.
        drop_none: whether to leave out samples for which it gives None.
        buffer_size: how many samples may wait for other streams; -1 for any number.

    Example:
        >>> list(IterableWrapper(range(4)).demux(2, is_odd)[1])
        [1, 3]
    """

    def __new__(cls, datapipe, num_instances, classifier_fn, drop_none=False, buffer_size=1000):
        _check_count(num_instances)
        splitter = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(splitter, i) for i in range(num_instances)]
