"""Prints docs/operators.md from the built module: ``python tools/print_operators.py [--check]``.

Nothing is generated before compilation; this page is printed from what was compiled, committed, and
``--check`` (also run by the tests) fails when the two differ.
"""

import argparse
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "operators.md"
HEAD = """# Operators

Printed from the operator table by `python tools/print_operators.py`; do not edit.
The rule column says how gradients arise: `derivative` (a rule beside the operator), `composite` (from the
operators it is written in), or why there is none. Forms: `f` function, `m` method, `_` in-place,
`out` the keyword.
"""


def rule(record):
    if record["family"] == "composite":
        return "composite"
    return "derivative" if record["differentiable"] else f"none: {record['refusal']}"


def forms(record):
    flags = {"f": "function", "m": "method", "_": "inplace", "out": "out"}
    return " ".join(mark for mark, key in flags.items() if record[key]) or "C++"


def page(records):
    spaces = {}
    for record in records:
        spaces.setdefault(record["space"] or "torch", []).append(record)
    lines = [HEAD]
    for space in sorted(spaces):
        lines += [f"## {space}", "", "| schema | family | forms | rule |", "|---|---|---|---|"]
        for record in sorted(spaces[space], key=lambda r: (r["name"], r["overload"])):
            schema = record["schema"].replace("|", "\\|")
            lines.append(f"| `{schema}` | {record['family']} | {forms(record)} | {rule(record)} |")
        lines.append("")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the committed page differs")
    options = parser.parse_args()
    import rushlight

    text = page(rushlight._C._operator_records())
    if not options.check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        print(f"{PAGE.name} is out of date: run `python tools/print_operators.py`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
