"""Write docs/benchmarks.md with its plots, and docs/sweep.md, from the recorded runs: losses included."""

import argparse
import statistics
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from . import records
from .records import Record, Row, Suite
from .runner import ROOT
from .stats import format_value, geometric_mean
from .suites import SUITES
from .sweep import results as sweep_results
from .sweep.page import page as sweep_page

TITLES = {name: suite.title for name, suite in SUITES.items()} | {"memory": "Peak memory of training"}

INTRODUCTION = """# Benchmarks

Rushlight and PyTorch run the same programs in turn, in one process each. A ratio says how much more time or
memory PyTorch needs: above 1 Rushlight is ahead. It is the median of the rounds' ratios; the range behind it
holds the true median with 90% (where there are five rounds, it is all of them). Absolute figures are medians,
and hold for this machine only. `benchmarks/` has the programs and tells how to measure; this page is printed
by `python -m benchmarks.report` from `benchmarks/recorded/`.
"""


def page(found: Sequence[Record], plots: Sequence[tuple[str, str]] = ()) -> str:
    """The page; `plots` are names of suites ("" for the summary) with the path of a picture."""
    pictures = dict(plots)
    parts = [INTRODUCTION, *circumstances(found), "## Summary\n"]
    parts += [*picture(pictures, "", "Ratios of all rows by suite"), summary_table(found)]
    parts += ["## Where PyTorch is ahead\n", losses_table(found)]
    for suite in suites_of(found):
        parts.append(f"## {TITLES.get(suite, suite)}\n")
        parts += picture(pictures, suite, TITLES.get(suite, suite))
        parts.append(suite_table(found, suite))
    return "\n".join(parts)


def picture(pictures: dict[str, str], name: str, text: str) -> list[str]:
    return [f"![{text}]({pictures[name]})\n"] if name in pictures else []


def suites_of(found: Sequence[Record]) -> list[str]:
    """All suites with rows, in the order of the registry."""
    present = {name for record in found for name, suite in record.suites.items() if suite.rows}
    known = [name for name in TITLES if name in present]
    return known + sorted(present - set(known))


def circumstances(found: Sequence[Record]) -> Iterator[str]:
    for record in found:
        about = [suite.about for suite in record.suites.values() if suite.about]
        versions: dict[str, str] = {}
        for entry in about:
            versions |= {name: text for name, text in entry.get("versions", {}).items() if text}
        dates = sorted({entry["date"][:10] for entry in about if "date" in entry})
        machine = record.machine
        facts = [
            f"{machine.get('cores', '?')} cores of {machine.get('processor', 'an unknown processor')}",
            f"{machine['memory_gb']} GB" if "memory_gb" in machine else "",
            machine.get("system", ""),
            f"Python {machine['python']}" if "python" in machine else "",
            ", ".join(f"{name} {text}" for name, text in versions.items()),
            " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "",
            "processor time" if about and all(entry.get("clock") == "cpu" for entry in about) else "",
        ]
        text = f"**{record.title}**: {'; '.join(fact for fact in facts if fact)}."
        yield textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def ratios(record: Record, suite: str) -> list[float]:
    rows = record.suites[suite].rows.values() if suite in record.suites else []
    return [row.ratio.value for row in rows if row.ratio]


def summary_table(found: Sequence[Record]) -> str:
    """How many rows each suite has and how far they are ahead, a table for each record."""
    return titled((record.title, summary_of(record)) for record in found)


def summary_of(record: Record) -> str:
    rows = []
    for suite in suites_of([record]):
        values = ratios(record, suite)
        if values:
            below = sum(value < 1 for value in values)
            figures = [str(len(values)), f"{geometric_mean(values):.2f}", f"{min(values):.2f}", str(below)]
            rows.append([TITLES.get(suite, suite), *figures])
    return table(["suite", "rows", "geometric mean", "worst", "below 1"], rows)


def titled(tables: Iterable[tuple[str, str]]) -> str:
    """Tables with a heading each; one alone needs none."""
    parts = list(tables)
    return parts[0][1] if len(parts) == 1 else "\n".join(f"### {title}\n\n{text}" for title, text in parts)


def losses_table(found: Sequence[Record]) -> str:
    """Rows below 1, the worst first, and rows that could not be measured."""
    rows = []
    for record in found:
        for suite in suites_of([record]):
            for name, row in record.suites[suite].rows.items():
                if row.error:
                    rows.append(
                        (0.0, [f"{TITLES.get(suite, suite)}: {name}", record.title, escaped(row.error)])
                    )
                elif row.ratio and row.ratio.value < 1:
                    cells = [f"{TITLES.get(suite, suite)}: {name}", record.title, ratio_cell(row)]
                    rows.append((row.ratio.value, cells))
    rows.sort(key=lambda entry: entry[0])
    if not rows:
        return "Nowhere.\n"
    return table(["row", "measured with", "ratio (range)"], [cells for _, cells in rows])


def suite_table(found: Sequence[Record], suite: str) -> str:
    """All rows of a suite: figures and ratio, a table for each record."""
    having = [record for record in found if suite in record.suites]
    return titled((record.title, rows_of(record.suites[suite])) for record in having)


def rows_of(suite: Suite) -> str:
    rows = [[name, *row_cells(row)] for name, row in suite.rows.items()]
    if not any(row.peer or row.error for row in suite.rows.values()):
        return table(["row", "Rushlight"], [cells[:2] for cells in rows])
    return table(["row", "Rushlight", "PyTorch", "ratio (range)"], rows)


def row_cells(row: Row) -> list[str]:
    ours, peer = (
        format_value(statistics.median(samples), row.unit) if samples else ""
        for samples in (row.ours, row.peer)
    )
    return [ours, peer, escaped(row.error) if row.error else ratio_cell(row)]


def ratio_cell(row: Row) -> str:
    if not (ratio := row.ratio):
        return ""
    text = f"{ratio.value:.2f}" if ratio.value >= 1 else f"**{ratio.value:.2f}**"
    return f"{text} ({ratio.low:.2f} to {ratio.high:.2f})"


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--records", type=Path, default=records.FOLDER, help="folder of JSON files")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "benchmarks.md")
    parser.add_argument("--no-plots", action="store_true")
    options = parser.parse_args(arguments)
    found = records.read_all(options.records)
    if not found:
        print(f"no records in {options.records}; `python -m benchmarks --record` makes them", file=sys.stderr)
        return 2
    plots: list[tuple[str, str]] = []
    if not options.no_plots:
        from .plots import draw_all

        folder = options.output.with_suffix("")
        plots = [(name, f"{folder.name}/{path.name}") for name, path in draw_all(found, folder, TITLES)]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(found, plots))
    print(f"written: {options.output}")
    if swept := sweep_results.read_all(options.records / "sweep"):
        path = options.output.with_name("sweep.md")
        path.write_text(sweep_page(swept))
        print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
