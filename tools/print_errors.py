"""Runs the mistakes of docs/errors.md and prints what comes of them: ``python tools/print_errors.py``.

Every heading of the third level has a program and, below it, what Rushlight says to it. ``--check`` (the
tests do the same) fails when that is no longer so; without it the page is printed again.
"""

import argparse
import doctest
import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs/errors.md"
_BLOCK = r"(?:(?!```).*\n)*"
CASE = re.compile(
    rf"### (?P<title>.+)\n\n```python\n(?P<code>{_BLOCK})```\n\n```text\n(?P<says>{_BLOCK})```\n"
)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
BEGINNING = """\
import copy
import io
import numpy as np
import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
"""


def cases(page):
    """[(title, program, what the page says comes of it)]."""
    return [(m["title"], m["code"], m["says"]) for m in CASE.finditer(page)]


def run(code):
    """What the program prints of warnings and its error: the text, the notes, and what Python suggests."""
    import traceback
    import types
    import warnings

    program = types.ModuleType("program")
    sys.modules["program"] = program
    lines = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(BEGINNING + code, program.__dict__)
        except Exception as error:
            lines = traceback.TracebackException.from_exception(error).format_exception_only()
    lines = [f"{w.category.__name__}: {w.message}\n" for w in warned] + list(lines)
    return without_places("".join(lines))


def without_places(text):
    """The text without what differs from run to run and from machine to machine."""
    text = re.sub(r"(?m)^\s*(File \".*|\^+)\n(?:    .*\n)*", "", text)
    text = re.sub(r"\. Did you mean:? .*\?", "", text)  # from Python 3.12 on
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)


def same(wanted, got):
    return doctest.OutputChecker().check_output(wanted, got, SAME)


def printed(page):
    """The page with what its programs say today, where that differs."""

    def print_case(match):
        got = run(match["code"])
        if same(match["says"], got):
            return match[0]
        return match[0].replace(f"```text\n{match['says']}```", f"```text\n{got.rstrip()}\n```")

    return CASE.sub(print_case, page)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when the page differs")
    options = parser.parse_args()
    page = PAGE.read_text()
    new = printed(page)
    if options.check:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
