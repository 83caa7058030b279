"""Measurements side by side: rows by what was done, columns by how."""

import enum
from collections import defaultdict

from rushlight.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST = "\033[92m\033[1m", "\033[34m\033[1m", "\033[1m", "\033[31m\033[1m"
_PLAIN = "\033[0m\033[0m"


class Colorize(enum.Enum):
    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements for each label.

    >>> Compare([Timer(...).blocked_autorange(), ...]).print()
    """

    def __init__(self, results):
        self._results = []
        self.extend_results(results)
        self._trim, self._colorize, self._warn = False, Colorize.NONE, False

    def extend_results(self, results):
        """Add measurements."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self):
        """Show only digits that mean something."""
        self._trim = True

    def colorize(self, rowwise=False):
        """Show the best and the worst of each column, or of each row, in colours."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self):
        """Mark measurements that fluctuate."""
        self._warn = True

    def print(self):
        print(str(self))

    def __str__(self):
        groups = defaultdict(list)
        for result in Measurement.merge(self._results):
            groups[result.task_spec.label].append(result)
        return "\n".join(self._table(group) for group in groups.values())

    def _table(self, results):
        unit, scale = select_unit(min(result.median for result in results))
        columns = ordered_unique(result.task_spec.description for result in results)
        cells = {(self._row(r), r.task_spec.description): r for r in results}
        rows = sorted(ordered_unique(map(self._row, results)), key=lambda row: row[0])
        texts = {key: self._number(r, results, scale) for key, r in cells.items()}
        width = {
            c: max([len(c or ""), *(len(t) for (_, column), t in texts.items() if column == c)])
            for c in columns
        }
        left = max(max(len(self._name(row)) for row in rows) + 6, len("1 threads: "))
        # Headings are centred over numbers, which stand to the right.
        head = " " * left + "".join(f"  |  {c or '':^{width[c]}}" for c in columns)
        lines = [head]
        for threads in ordered_unique(row[0] for row in rows):
            lines.append(f"{threads} threads: " + "-" * (len(head) - len(f"{threads} threads: ")))
            for row in (row for row in rows if row[0] == threads):
                line = f"      {self._name(row)}".ljust(left)
                for column in columns:
                    line += f"  |  {self._paint(cells, texts, row, column, rows, columns, width[column])}"
                lines.append(line)
        title = f" {results[0].task_spec.label or results[0].title} "
        note = ""
        if self._warn and any(r.has_warnings for r in results):
            note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        border = "[" + title.center(len(head) - 2, "-") + "]"
        return "\n".join([border, *lines]) + f"\n\nTimes are in {unit_to_english(unit)}s ({unit}).\n{note}"

    @staticmethod
    def _row(result):
        spec = result.task_spec
        return spec.num_threads, spec.env, result.as_row_name

    @staticmethod
    def _name(row):
        _, env, name = row
        return name if env is None else f"({env}) {name}"

    def _number(self, result, results, scale):
        figures = result.significant_figures
        value = result.median / scale
        if self._trim:
            value = trim_sigfig(value, figures)
        digits = max(0, *(self._decimals(r, scale) for r in results)) if self._trim else 1
        text = f"{value:.{digits}f}"
        if self._warn and result.has_warnings:
            text += f" (! {result.iqr / result.median * 100:.0f}%)"
        return text

    @staticmethod
    def _decimals(result, scale):
        whole = len(str(int(result.median / scale)))
        return max(result.significant_figures - whole, 0)

    def _paint(self, cells, texts, row, column, rows, columns, width):
        if (row, column) not in cells:
            return " " * width
        text = f"{texts[row, column]:>{width}}"
        if self._colorize is Colorize.NONE:
            return text
        if self._colorize is Colorize.ROWWISE:
            rivals = [cells[row, c].median for c in columns if (row, c) in cells]
        else:
            rivals = [cells[r, column].median for r in rows if r[0] == row[0] and (r, column) in cells]
        value, best = cells[row, column].median, min(rivals)
        for limit, colour in ((1.01, _BEST), (1.1, _GOOD), (1.25, None), (1.5, _BAD)):
            if value <= best * limit:
                return text if colour is None else f"{colour}{text}{_PLAIN}"
        return f"{_WORST}{text}{_PLAIN}"
