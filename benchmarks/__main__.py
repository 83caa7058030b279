"""Run Rushlight and PyTorch in turn on the same programs and print ratios (above 1: Rushlight needs less)."""

import argparse
import importlib.metadata
import importlib.util
import re
import statistics
import sys
import time
from pathlib import Path

from . import records
from .records import Record, Row, Suite
from .runner import LIMITS, QUICK, ROOT, Plan, Runner
from .stats import format_value, geometric_mean
from .suites import SUITES


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    plan = plan_of(options)
    path = options.output or records.default_path(
        records.FOLDER if options.record else ROOT / "build" / "benchmarks",
        plan.threads,
        plan.busy,
        plan.capability,
    )
    record = Record(plan.threads, plan.busy, plan.capability)
    if path.exists():
        record = records.read(path)
        record.machine = records.machine()
    failed = measure(plan, options.suites, record, path, re.compile(options.filter), options.resume)
    print(f"\nwritten to {path}")
    return 1 if failed else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = [name for name, suite in SUITES.items() if not suite.on_request]
    parser.add_argument("suites", nargs="*", default=default, metavar="suite", help=f"of {', '.join(SUITES)}")
    add_measuring_options(parser)
    parser.add_argument(
        "--output", type=Path, help="JSON file; rows that it holds and that are not measured stay"
    )
    parser.add_argument(
        "--record", action="store_true", help="write to benchmarks/recorded, which is committed"
    )
    parser.add_argument("--resume", action="store_true", help="leave rows alone that the file already holds")
    options = parser.parse_args(arguments)
    check_options(parser, options)
    return options


def check_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if unknown := [name for name in options.suites if name not in SUITES]:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    if options.threads < 1:
        parser.error(f"--threads must be positive, got {options.threads}")
    if not options.solo and importlib.util.find_spec("torch") is None:
        parser.error("PyTorch is not installed; --solo measures Rushlight alone")


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds: all suites in ten minutes"
    )
    parser.add_argument("--rounds", type=int, help="at least so many samples of each module for a row")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only rows that match")
    parser.add_argument("--solo", action="store_true", help="Rushlight alone, no ratios")
    parser.add_argument("--busy", action="store_true", help="with a process spinning on each core")
    parser.add_argument(
        "--capability", choices=tuple(LIMITS), default="", help="limit both modules to an instruction set"
    )
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu: processor time of the process"
    )
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)  # sizes for the tests


def plan_of(options: argparse.Namespace) -> Plan:
    settings = dict(QUICK) if options.quick else {}
    if options.rounds:
        settings |= {
            "rounds": options.rounds,
            "most_rounds": max(options.rounds, settings.get("most_rounds", 30)),
        }
    if options.tiny:
        settings = {"pairs": 1, "rounds": 1, "most_rounds": 1, "budget": 0.0}
    modules = ("rushlight",) if options.solo else ("rushlight", "torch")
    return Plan(
        threads=options.threads,
        modules=modules,
        clock=options.clock,
        busy=options.busy,
        capability=options.capability,
        tiny=options.tiny,
        **settings,
    )


def measure(
    plan: Plan, suites: list[str], record: Record, path: Path, pattern: re.Pattern[str], resume: bool = False
) -> list[str]:
    """Measure suites into a record, written after every row; the answer names the rows that failed."""
    runner = Runner(plan, show)
    failed = []

    def known(suite: str, name: str) -> bool:
        return suite in record.suites and not record.suites[suite].rows.get(name, Row(error="missing")).error

    def wanted(suite: str, name: str) -> bool:
        return bool(pattern.search(f"{suite} {name}")) and not (resume and known(suite, name))

    def done(suite: str, name: str, row: Row) -> None:
        target = record.suites.setdefault(suite, Suite())
        target.rows[name] = row
        target.about = about(plan, runner)
        records.write(record, path)
        measured.setdefault(suite, []).append(row)
        if row.error:
            failed.append(f"{suite} {name}: {row.error}")

    for suite in suites:
        measured: dict[str, list[Row]] = {}
        start = time.monotonic()
        print(f"\n{SUITES[suite].title}, {record.title}")
        runner.run(suite, wanted, done)
        for name, rows in measured.items():
            print(summary(name, rows, time.monotonic() - start))
    return failed


def about(plan: Plan, runner: Runner) -> dict[str, object]:
    versions = runner.versions or {module: version(module) for module in plan.modules}
    kind = {"clock": plan.clock, "rounds": plan.rounds, "pairs": plan.pairs}
    return {"date": records.now(), "versions": versions, **kind}


def version(module: str) -> str:
    try:
        return importlib.metadata.version(module)
    except importlib.metadata.PackageNotFoundError:
        return "in place"


def show(suite: str, name: str, row: Row) -> None:
    if row.error:
        print(f"  {name:44} {row.error}", flush=True)
        return
    values = [
        format_value(statistics.median(samples), row.unit) for samples in (row.ours, row.peer) if samples
    ]
    line = f"  {name:44} " + " ".join(f"{value:>10}" for value in values)
    if ratio := row.ratio:
        line += f" {ratio.value:8.2f}   {ratio.low:.2f} to {ratio.high:.2f}"
    print(line + ("" if suite != "memory" else "   (peak memory)"), flush=True)


def summary(name: str, rows: list[Row], seconds: float) -> str:
    ratios = [row.ratio.value for row in rows if row.ratio]
    text = f"{name}: {len(rows)} rows in {seconds:.0f} s"
    if ratios:
        losses = sum(ratio < 1 for ratio in ratios)
        text += f"; geometric mean {geometric_mean(ratios):.2f}, worst {min(ratios):.2f}, below 1: {losses}"
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
