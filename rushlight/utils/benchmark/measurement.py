"""Times of one statement, and what can be said of them."""

import dataclasses
import math
import statistics
import textwrap
from collections import defaultdict
from contextlib import contextmanager

import rushlight

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MOST_FIGURES = 4
_CLOCK = 25e-9  # seconds: no interval of confidence is smaller
# The interquartile range, as a part of the median, from which a measurement is doubtful.
_DOUBTFUL, _VERY_DOUBTFUL = 0.1, 0.25

_UNITS = {
    "ns": ("nanosecond", 1e-9),
    "us": ("microsecond", 1e-6),
    "ms": ("millisecond", 1e-3),
    "s": ("second", 1.0),
}


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The label and the part of it, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt
        return (
            "stmt:"
            + (f" ({self.sub_label})" if self.sub_label else "")
            + "\n"
            + textwrap.indent(self.stmt, "  ")
        )

    def setup_str(self):
        if self.setup == "pass" or not self.setup:
            return ""
        return (
            "setup:\n" + textwrap.indent(self.setup, "  ") if "\n" in self.setup else f"setup: {self.setup}"
        )

    def summarize(self):
        parts = [self.title, self.description or "", self.setup_str()]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts if part)


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times in seconds, each of ``number_per_run`` runs of a statement."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    def __getattr__(self, name):
        if name != "task_spec" and hasattr(TaskSpec, name) or name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self):
        """Seconds of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self):
        return statistics.median(self.times)

    @property
    def mean(self):
        return statistics.mean(self.times)

    def _quartiles(self):
        if len(self.times) < 2:
            return self.times[0], self.times[0]
        first, _, third = statistics.quantiles(self.times, n=4, method="inclusive")
        return first, third

    @property
    def iqr(self):
        """The range that the middle half of the times lies in."""
        first, third = self._quartiles()
        return third - first

    @property
    def significant_figures(self):
        """How many digits of the median mean something, at 95 % confidence for normal errors."""
        count = len(self.raw_times)
        lower = sorted(self.times)[count // 4 : max(count - count // 4, 1)]
        spread = statistics.pstdev(lower) if len(lower) > 1 else 0.0
        interval = max(1.645 * spread / math.sqrt(len(lower)), _CLOCK)
        relative = -math.log10(interval / self.median) if self.median > 0 else 0.0
        return min(max(math.floor(relative), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold=_DOUBTFUL):
        return self.median == 0 or self.iqr / self.median < threshold

    @property
    def has_warnings(self):
        return bool(self._warning())

    def _warning(self):
        if not self.meets_confidence(_VERY_DOUBTFUL):
            strength = "This suggests significant environmental influence."
        elif not self.meets_confidence(_DOUBTFUL):
            strength = "This could indicate system fluctuation."
        else:
            return ""
        share = self.iqr / self.median * 100
        first = f"  WARNING: Interquartile range is {share:.1f}% of the median measurement."
        return f"{first}\n           {strength}"

    @property
    def title(self):
        return self.task_spec.title

    @property
    def env(self):
        return "Unspecified env" if self.task_spec.env is None else str(self.task_spec.env)

    @property
    def as_row_name(self):
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self):
        unit, scale = select_unit(self.median)
        first, third = (t / scale for t in self._quartiles())
        count, threads = len(self.raw_times), self.task_spec.num_threads
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {hex(id(self))}>",
            self.task_spec.summarize(),
            f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}",
        ]
        if count >= 4:  # fewer have no quartiles to speak of
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({first:.2f} to {third:.2f})")
        lines.append(
            f"  {count} measurement{'s' if count > 1 else ''}, {self.number_per_run} runs "
            f"{'per measurement,' if count > 1 else ','} {threads} thread{'s' if threads > 1 else ''}"
        )
        return "\n".join([*lines, self._warning()] if self.has_warnings else lines)

    @staticmethod
    def merge(measurements):
        """Join those of one task into one."""
        groups = defaultdict(list)
        for m in measurements:
            groups[m.task_spec].append(m)
        return [
            Measurement(1, [t for m in group for t in m.times], spec, None) for spec, group in groups.items()
        ]


def select_unit(t):
    """The unit in which a time in seconds reads best, and its length in seconds."""
    step = max(min(math.floor(math.log10(t)) // 3, 0), -3) if t > 0 else -3
    unit = {-3: "ns", -2: "us", -1: "ms", 0: "s"}[step]
    return unit, _UNITS[unit][1]


def unit_to_english(u):
    return _UNITS[u][0]


def trim_sigfig(x, n):
    """A number cut down to n significant figures."""
    if x == 0 or n != int(n):
        return x
    magnitude = math.ceil(math.log10(abs(x)))
    scale = 10.0 ** (magnitude - n)
    return round(x / scale) * scale


def ordered_unique(elements):
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n):
    """Within the context operators use n threads."""
    before = rushlight.get_num_threads()
    rushlight.set_num_threads(n)
    try:
        yield
    finally:
        rushlight.set_num_threads(before)
