"""Events that a program reports about itself, handlers that send them elsewhere, and statistics over time."""

import enum
import threading
import time
from datetime import datetime

__all__ = [
    "STAT_EVENT",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]

STAT_EVENT = "torch.monitor.Stat"
data_value_t = int | float | bool | str


class Event:
    """Something that happened: a name shared by all of its kind, when, and data of numbers and strings."""

    def __init__(self, name, timestamp, data):
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, data_value_t):
                raise TypeError(f"Event: data holds strings and numbers by name, but {key!r} is {value!r}")
        self.name, self.timestamp, self.data = name, timestamp, dict(data)


class EventHandlerHandle:
    """What `unregister_event_handler` needs."""

    def __init__(self, callback):
        self._callback = callback


_handlers: list = []


def register_event_handler(callback):
    """Have `callback(event)` called for every event; it should not take long."""
    handle = EventHandlerHandle(callback)
    _handlers.append(handle)
    return handle


def unregister_event_handler(handler):
    """Undo `register_event_handler`, which returned `handler`."""
    if handler in _handlers:
        _handlers.remove(handler)


def log_event(event):
    """Hand an event to all handlers."""
    for handler in tuple(_handlers):
        handler._callback(event)


class Aggregation(enum.Enum):
    """What a `Stat` computes from the values of a window."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


VALUE, MEAN, COUNT, SUM, MAX, MIN = Aggregation

_COMPUTE = {
    VALUE: lambda values: values[-1] if values else 0.0,
    MEAN: lambda values: sum(values) / len(values) if values else 0.0,
    COUNT: lambda values: float(len(values)),
    SUM: lambda values: float(sum(values)),
    MAX: lambda values: max(values, default=0.0),
    MIN: lambda values: min(values, default=0.0),
}


class Stat:
    """Statistics of the values that are added, logged as an event once every `window_size`.

    A window takes `max_samples` values and no more. The rest is logged when the object goes."""

    def __init__(self, name, aggregations, window_size, max_samples=2**63 - 1):
        self.name = name
        self._aggregations = dict.fromkeys(aggregations)
        self._window, self._most = window_size.total_seconds(), max_samples
        self._lock = threading.Lock()
        self._last = self._aggregate([])
        self._open()

    def _open(self):
        self._values, self._full, self._end = [], False, time.monotonic() + self._window

    def _aggregate(self, values):
        return {a: _COMPUTE[a](values) for a in self._aggregations}

    def _close(self):
        """Remember and log what the window holds."""
        if self._values:
            self._last = self._aggregate(self._values)
            data = {f"{self.name}.{a.name.lower()}": value for a, value in self._last.items()}
            log_event(Event(STAT_EVENT, datetime.now(), data))
        self._values = []

    @property
    def count(self):
        """How many values the present window holds."""
        return len(self._values)

    def add(self, v):
        with self._lock:
            if time.monotonic() >= self._end:
                self._close()
                self._open()
            if self._full:
                return
            self._values.append(float(v))
            if len(self._values) >= self._most:
                self._close()
                self._full = True

    def get(self):
        """The statistics of the window that was logged last."""
        return dict(self._last)

    def __del__(self):
        if getattr(self, "_values", None):
            self._close()


class TensorboardEventHandler:
    """Writes the events of a `Stat` to a SummaryWriter as scalars."""

    def __init__(self, writer):
        self._writer = writer

    def __call__(self, event):
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())


class _WaitCounter:
    """Counts how often and how long a program waits at one place: ``with counter.guard(): ...``."""

    _lock, _totals = threading.Lock(), {}  # by name: counters of one name add up

    def __init__(self, key):
        self._key = key

    @property
    def calls(self):
        return self._totals.get(self._key, (0, 0.0))[0]

    @property
    def seconds(self):
        return self._totals.get(self._key, (0, 0.0))[1]

    def guard(self):
        """The block in which the program waits."""
        return _WaitGuard(self)


class _WaitGuard:
    def __init__(self, counter):
        self._counter = counter

    def __enter__(self):
        self._begin = time.perf_counter()
        return self

    def __exit__(self, *error):
        waited, counter = time.perf_counter() - self._begin, self._counter
        with counter._lock:
            calls, seconds = counter._totals.get(counter._key, (0, 0.0))
            counter._totals[counter._key] = calls + 1, seconds + waited
