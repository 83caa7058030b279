"""Counters that scripts write to: ``add_stat_value`` in a script, `set_logger` around it."""

import abc
import enum
import threading
import time

__all__ = [
    "AggregationType",
    "LockingLogger",
    "NoopLogger",
    "add_stat_value",
    "get_logger",
    "set_logger",
    "time_point",
]


class AggregationType(enum.Enum):
    """How the values of a counter are put together."""

    SUM = 0
    AVG = 1


class LoggerBase(abc.ABC):
    """What `set_logger` takes."""

    @abc.abstractmethod
    def add_stat_value(self, stat_name, val):
        """Take a value of a counter."""


class NoopLogger(LoggerBase):
    """Drops all values: the logger at the start."""

    def add_stat_value(self, stat_name, val):
        """Nothing is kept."""


class LockingLogger(LoggerBase):
    """Keeps sums or averages by name; many threads may add."""

    def __init__(self):
        self._lock, self._values, self._kinds = threading.Lock(), {}, {}

    def add_stat_value(self, stat_name, val):
        with self._lock:
            total, count = self._values.get(stat_name, (0, 0))
            self._values[stat_name] = total + int(val), count + 1

    def set_aggregation_type(self, stat_name, aggregation):
        self._kinds[stat_name] = aggregation

    def get_counter_val(self, name):
        """The sum or average of what was added; 0 if nothing was."""
        total, count = self._values.get(name, (0, 0))
        average = self._kinds.get(name, AggregationType.SUM) is AggregationType.AVG
        return total // count if average and count else total


_current: LoggerBase = NoopLogger()


def get_logger():
    """The logger that values go to."""
    return _current


def set_logger(logger):
    """Send values to this logger; returns the one before."""
    global _current
    before, _current = _current, logger
    return before


def add_stat_value(stat_name, val):
    """Add a value to a counter of the current logger."""
    _current.add_stat_value(stat_name, val)


def time_point():
    """A moment in nanoseconds; the difference of two is a duration."""
    return time.perf_counter_ns()
