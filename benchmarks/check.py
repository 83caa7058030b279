"""Measure, compare with the recorded ratios, and exit with 1 naming the rows that fell.

The rule: a row fell when its range (see stats.py) lies wholly below the recorded range and its ratio is more
than TOLERANCE lower. Such rows are measured a second time in new processes, with more rounds, and only those
that fell again count. Ranges account for the noise within a run, the tolerance for what differs between runs
(where memory lies), the second look for luck: among hundreds of rows some range misses by chance.
"""

import argparse
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from . import records
from .__main__ import add_measuring_options, check_options, measure, plan_of
from .records import Record, Row
from .runner import ROOT
from .stats import Ratio
from .suites import SUITES

TOLERANCE = 0.1


@dataclass(frozen=True)
class Fall:
    suite: str
    name: str
    recorded: Ratio | None
    now: Ratio | None
    error: str = ""

    def __str__(self) -> str:
        if self.error or not self.now or not self.recorded:
            return f"{self.suite} {self.name}: {self.error}"
        was, now = self.recorded, self.now
        return (
            f"{self.suite} {self.name}: ratio {now.value:.2f} ({now.low:.2f} to {now.high:.2f}), "
            f"recorded {was.value:.2f} ({was.low:.2f} to {was.high:.2f})"
        )


def fell(recorded: Row, now: Row, tolerance: float = TOLERANCE) -> bool:
    """The rule for one row. One that could be measured once and cannot now fell, too."""
    before, after = recorded.ratio, now.ratio
    if before is None or not now.ours:
        return bool(now.error) and not recorded.error
    if after is None:
        return True
    return after.high < before.low and after.value < before.value * (1 - tolerance)


def falls(recorded: Record, now: Record, tolerance: float = TOLERANCE) -> list[Fall]:
    """The rows of `now` that fell. Rows that were never recorded cannot."""
    found = []
    for suite, rows in now.suites.items():
        known = recorded.suites[suite].rows if suite in recorded.suites else {}
        for name, row in rows.rows.items():
            if name in known and fell(known[name], row, tolerance):
                found.append(Fall(suite, name, known[name].ratio, row.ratio, row.error))
    return found


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    recorded_path = options.recorded or records.default_path(
        records.FOLDER, options.threads, options.busy, options.capability
    )
    if not recorded_path.exists():
        print(
            f"nothing is recorded in {recorded_path}; `python -m benchmarks --record` does that",
            file=sys.stderr,
        )
        return 2
    recorded = records.read(recorded_path)
    now = records.read(options.new) if options.new else measured(options)
    found = falls(recorded, now, options.tolerance)
    if found and not options.new:
        found = confirmed(options, recorded, found)
    compared = sum(len(suite.rows) for suite in now.suites.values())
    print(f"\n{compared} rows compared with {recorded_path.name}, {len(found)} fell")
    for fall in found:
        print(f"  {fall}")
    return 1 if found else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    text = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check", description=text)
    default = [name for name, suite in SUITES.items() if not suite.on_request]
    parser.add_argument("suites", nargs="*", default=default, metavar="suite", help=f"of {', '.join(SUITES)}")
    add_measuring_options(parser)
    parser.add_argument("--recorded", type=Path, help="compare with this file, not with benchmarks/recorded")
    parser.add_argument("--new", type=Path, help="compare this file, and measure nothing")
    parser.add_argument(
        "--tolerance", type=float, default=TOLERANCE, help="share of the ratio that may be lost"
    )
    options = parser.parse_args(arguments)
    if options.solo:
        parser.error("--solo gives no ratios to compare")
    if not options.new:
        check_options(parser, options)
    return options


def measured(options: argparse.Namespace, name: str = "check") -> Record:
    path = ROOT / "build" / "benchmarks" / f"{name}.json"
    record = Record(options.threads, options.busy, options.capability)
    measure(plan_of(options), options.suites, record, path, re.compile(options.filter))
    return record


def confirmed(options: argparse.Namespace, recorded: Record, suspects: list[Fall]) -> list[Fall]:
    """Those of the suspects that fall again, with twice the rounds."""
    print(f"\n{len(suspects)} rows fell; a second look at them")
    plan = plan_of(options)
    plan = replace(plan, rounds=2 * plan.rounds, most_rounds=2 * plan.most_rounds)
    # A row of the memory suite is measured together with the model of that name.
    rows = {(("models" if fall.suite == "memory" else fall.suite), fall.name) for fall in suspects}
    pattern = re.compile("|".join(f"^{re.escape(f'{suite} {name}')}$" for suite, name in sorted(rows)))
    again = Record(options.threads, options.busy, options.capability)
    path = ROOT / "build" / "benchmarks" / "check-again.json"
    suites = [suite for suite in SUITES if any(suite == wanted for wanted, _ in rows)]
    measure(plan, suites, again, path, pattern)
    wanted = {(fall.suite, fall.name) for fall in suspects}
    return [fall for fall in falls(recorded, again, options.tolerance) if (fall.suite, fall.name) in wanted]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
