"""The iterators of data pipes: one at a time, counted, and resumed where a snapshot was restored."""

import enum
import functools
import inspect

from rushlight import _C


class _SnapshotState(enum.Enum):
    """How far a pipe is: never read, put to a place from which the next pass goes on, or being read."""

    NotStarted = 0
    Restored = 1
    Iterating = 2


def _resumed(pipe):
    """The iterator that a restored pipe goes on with, once; None otherwise."""
    iterator, pipe._fast_forward_iterator = pipe._fast_forward_iterator, None
    if iterator is not None:
        pipe._snapshot_state = _SnapshotState.Iterating
    return iterator


def _arguments_of(pipe):
    names = inspect.signature(type(pipe)).parameters
    shown = {name: vars(pipe)[name] for name in names if name in vars(pipe)}
    return ", ".join(
        f"{name}={value.__name__ if inspect.isfunction(value) else value!r}" for name, value in shown.items()
    )


_END = object()


def _next(pipe, iterator):
    """The next element, or `_END`; a range of its own in profiles, by the name of the pipe."""
    if not _C._profiler_enabled():
        return next(iterator, _END)
    from rushlight.autograd.profiler import record_function

    with record_function(_name_in_profiles(pipe)):
        return next(iterator, _END)


def _name_in_profiles(pipe):
    if not hasattr(pipe, "_profile_name"):
        kind = type(pipe).__name__.removesuffix("IterDataPipe")
        pipe._profile_name = f"{kind}({_arguments_of(pipe)})"
    return pipe._profile_name


def _check_newest(pipe, number):
    if pipe._is_current(number):
        return
    raise RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the same "
        f"IterDataPipe: {type(pipe).__name__}({_arguments_of(pipe)})\n"
        "This may be caused by multiple references to the same IterDataPipe. We recommend using `.fork()` if "
        "that is necessary (single iterator per IterDataPipe constraint)."
    )


class _PipeIterator:
    """The iterator of a pipe whose ``__iter__`` is no generator."""

    def __init__(self, iterator, pipe, number):
        self.iterator, self.pipe, self.number = iterator, pipe, number

    def __iter__(self):
        return self

    def __next__(self):
        _check_newest(self.pipe, self.number)
        value = _next(self.pipe, self.iterator)
        if value is _END:
            raise StopIteration
        self.pipe._number_of_samples_yielded += 1
        return value

    def __getattr__(self, name):
        return getattr(self.iterator, name)


def with_one_iterator(method):
    """``__iter__`` that resets the pipe first, and ends the iterators made before."""
    if not inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def start(self):
            resumed = _resumed(self)
            if resumed is not None:
                return resumed
            iterator = method(self)
            return _PipeIterator(iterator, self, self._begin())

        return start

    @functools.wraps(method)
    def generate(self):
        resumed = _resumed(self)
        if resumed is not None:
            yield from resumed
            return
        number = self._begin()
        values = method(self)
        try:
            while (value := _next(self, values)) is not _END:
                self._number_of_samples_yielded += 1
                yield value
                _check_newest(self, number)
        except Exception as e:
            _name_pipe(e, self)
            raise

    return generate


def _name_pipe(error, pipe):
    """Says in the error's text which step of a pipeline failed: the innermost one."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if "thrown by __iter__ of" in text or "single iterator per IterDataPipe constraint" in text:
        return
    note = f"\nThis exception is thrown by __iter__ of {type(pipe).__name__}({_arguments_of(pipe)})"
    if not error.args:
        error.args = (note,)
    elif isinstance(error.args[0], str):
        error.args = (text + note, *error.args[1:])
