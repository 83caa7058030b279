"""The page docs/sweep.md, which benchmarks.report writes from benchmarks/recorded/sweep."""

from collections.abc import Callable, Sequence
from typing import Any

from ..stats import format_value, geometric_mean
from .results import Results

WORST = 50
INTRODUCTION = """# All operators

Every operator that has samples in `tests/python/ops`, which are those of all records, runs beside PyTorch: in
up to seven dtypes; with contiguous, transposed, strided and broadcast operands; as small as the samples are,
with operands that fit into a core's cache, and with a million elements or as many as PyTorch computes in 12
ms; forward, and forward with backward. The two modules take turns; a ratio is the median of three or more
pairs of processor times (wall times with several threads), and above 1 Rushlight is ahead. `python -m
benchmarks.sweep` measures, and `benchmarks/README.md` tells how; `python -m benchmarks.report` prints this
page.
"""
HEAD = "| cases | number | geometric mean | below 0.95 | below 0.8 |\n| --- | ---: | ---: | ---: | ---: |"


def page(found: Sequence[Results]) -> str:
    parts = [INTRODUCTION]
    for results in found:
        parts += [f"## {results.title}\n", circumstances(results), overview(results)]
        parts += [f"The {WORST} lowest ratios:\n", worst(results)]
        if refusals := refused(results):
            parts += ["What PyTorch computes here and Rushlight does not:\n", refusals]
    return "\n".join(parts)


def circumstances(results: Results) -> str:
    versions = ", ".join(f"{name} {text}" for name, text in results.about.get("versions", {}).items())
    machine = results.machine
    processor = f"{machine.get('cores', '?')} cores of {machine.get('processor', 'an unknown processor')}"
    every = f"; one case in {results.step}" if results.step > 1 else ""
    note = results.about.get("note", "")  # what a file merged from several runs has to say
    head = f"{processor}; {versions}; {results.about.get('date', '')[:10]}{every}.\n"
    return head + (f"\n{note}\n" if note else "")


def overview(results: Results) -> str:
    """Geometric mean and losses of all cases, and by each of a case's properties."""
    cases: list[tuple[Any, ...]] = [
        (operator, *case.split(), ratio) for operator, case, ratio in results.ratios()
    ]
    kinds: dict[str, Callable[[tuple], str]] = {
        "": lambda case: "all cases",
        "dtype": lambda case: case[1],
        "layout": lambda case: case[2],
        "size": lambda case: case[3],
        "direction": lambda case: case[4],
        "family": lambda case: results.operators[case[0]].family,
    }
    lines = [HEAD]
    for kind, key in kinds.items():
        classes: dict[str, list[float]] = {}
        for case in cases:
            classes.setdefault(key(case), []).append(case[-1])
        for name, ratios in sorted(classes.items(), key=lambda item: -len(item[1])):
            label = f"{kind}: {name}" if kind else f"**{name}**"
            shares = [f"{100 * sum(r < limit for r in ratios) / len(ratios):.1f}%" for limit in (0.95, 0.8)]
            lines.append(f"| {label} | {len(ratios)} | {geometric_mean(ratios):.2f} | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def worst(results: Results) -> str:
    rows = sorted(
        (row[0], name, case, row) for name, o in results.operators.items() for case, row in o.cases.items()
    )
    lines = ["| operator | case | ratio | Rushlight | PyTorch |", "| --- | --- | ---: | ---: | ---: |"]
    for ratio, name, case, (_, ours, peer) in rows[:WORST]:
        times = " | ".join(format_value(microseconds * 1e-6, "s") for microseconds in (ours, peer))
        lines.append(f"| `{name}` | {case} | {ratio:.2f} | {times} |")
    return "\n".join(lines) + "\n"


def refused(results: Results) -> str:
    rows = [(name, case, text) for name, o in results.operators.items() for case, text in o.refused.items()]
    if not rows:
        return ""
    lines = ["| operator | cases | what it said |", "| --- | ---: | --- |"]
    by_operator: dict[str, list[str]] = {}
    for name, _, text in rows:
        by_operator.setdefault(name, []).append(text)
    for name, texts in by_operator.items():
        lines.append(f"| `{name}` | {len(texts)} | {texts[0].replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"
