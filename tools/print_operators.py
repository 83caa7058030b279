"""Prints what is printed from the built module and committed: ``python tools/print_operators.py [--check]``.

Nothing is generated before compilation: type stubs and the front end's C++ declarations are printed from
what was compiled. ``--check`` (also run by the tests) fails when they differ from the module. Pages about
operators are not committed: the site prints them when it is built (tools/site.py).
"""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from reference import cpp, examples, stubs  # noqa: E402

# Where nothing but printed files lies.
_FOLDERS = ("include/rushlight/printed/*.h", "src/frontend/printed_*.cpp", "rushlight/_C/*.pyi")


def printed():
    """The text of every printed file, by its path below the root."""
    import rushlight

    sessions = {"rushlight/_operators/examples.txt": examples.printed()}
    return {**stubs.stubs(), **cpp.files(rushlight._C._operator_records()), **sessions}


def differ(name, kept, text):
    """Of examples the calls count: results depend on the processor and its libraries."""
    if not name.endswith("examples.txt"):
        return kept != text
    calls = [[line for line in each.splitlines() if not line.startswith(" ")] for each in (kept, text)]
    return calls[0] != calls[1]


def outdated(texts):
    """The printed files that differ from what is committed, and committed ones that are printed no more."""
    kept = {path.relative_to(ROOT).as_posix() for pattern in _FOLDERS for path in ROOT.glob(pattern)}
    now = {name: (ROOT / name).read_text() for name in texts if (ROOT / name).exists()}
    changed = [name for name, text in texts.items() if name not in now or differ(name, now[name], text)]
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
