"""Prints all that is printed from the built module: ``python tools/print_operators.py [--check]``.

Nothing is generated before compilation: the operator pages under docs/ and the type stubs are printed from
what was compiled, and committed. ``--check`` (also run by the tests) fails when the two differ.
"""

import argparse
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from reference import coverage, cpp, devices, overview, pages, stubs  # noqa: E402


def printed():
    """The text of every printed file, by its path below the root."""
    import rushlight

    records = rushlight._C._operator_records()
    tables = {"docs/operators.md": overview.page(records), "docs/coverage.md": coverage.page(records)}
    tables["docs/cuda_operators.md"] = devices.page(records)
    return {**tables, **pages.pages(records), **stubs.stubs(), **cpp.files(records)}


_RESULT = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)
_FLOAT = re.compile(r"[-+]?\d+\.\d*(?:e[-+]\d+)?")


def alike(text, kept):
    """Whether texts are equal, but for digits and signs in examples' results: other processors and libraries
    round otherwise, and choose other signs for the vectors of a decomposition."""
    if _RESULT.sub("", text) != _RESULT.sub("", kept):
        return False
    results, before = ["".join("".join(_RESULT.findall(t)).split()) for t in (text, kept)]
    if _FLOAT.split(results) != _FLOAT.split(before):
        return False
    pairs = zip(_FLOAT.findall(results), _FLOAT.findall(before))
    return all(math.isclose(abs(float(a)), abs(float(b)), rel_tol=1e-2, abs_tol=1e-3) for a, b in pairs)


def outdated(texts):
    """The printed files that differ from what is committed, and committed ones that are printed no more."""
    kept = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs/operators").glob("*.md")}
    changed = [
        name
        for name, text in texts.items()
        if not (ROOT / name).exists() or not alike(text, (ROOT / name).read_text())
    ]
    return changed, sorted(kept - texts.keys())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail when a committed file differs")
    options = parser.parse_args()
    texts = printed()
    changed, gone = outdated(texts)
    if options.check and changed + gone:
        print(
            f"out of date: {', '.join(changed + gone)}; run `python tools/print_operators.py`",
            file=sys.stderr,
        )
        return 1
    for name in changed:
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(texts[name])
    for name in gone:
        (ROOT / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
