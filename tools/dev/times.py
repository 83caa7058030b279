"""How long builds take: from an edit to its test (`./dev times`), and units that have become slower.

unit_costs.txt holds each unit's share of the time that all units take to compile, in percent: shares compare
across machines. They also tell a first build how far it has come. `./dev times --save` writes the file
after a build from clean without compiler cache, on a machine that does nothing else.
"""

import json
import os
import re
import statistics
import time
from pathlib import Path

from . import ninja
from .paths import ROOT
from .problems import Failure

COSTS = Path(__file__).with_name("unit_costs.txt")
HEAD = """\
# What each unit costs to compile: percent of the total. Written by `./dev times --save`.
# total: {total:.0f} seconds
"""
TIMES_SLOWER = 2.0
LEAST_SECONDS = 4.0  # shorter units are noise
LEAST_UNITS = 20  # with fewer, nothing says how fast this machine is
OTHER_STEPS = 1.0  # seconds for a link or a unit that was never recorded


# --- units --------------------------------------------------------------------------------------------------


def recorded(path=None):
    """Seconds of each unit on the machine that recorded them."""
    path = path or COSTS
    if not path.exists():
        return {}
    text = path.read_text(encoding="utf-8")
    total = float(re.search(r"^# total: ([\d.]+)", text, re.M)[1])
    lines = re.findall(r"^ *([\d.]+) (\S.*)$", text, re.M)
    return {unit: float(share) / 100 * total for share, unit in lines}


class Expected(dict):
    """What a step will take: as long as here the last time, else as long as was recorded."""

    def __init__(self, here, costs):
        super().__init__(here)
        self.costs = costs

    def get(self, output, default=None):
        if output in self:
            return self[output]
        return self.costs.get(ninja.unit_of(output), default)


def expected(folder):
    return Expected({output: s for output, s in ninja.durations(folder).items() if s > 0.05}, recorded())


class CacheLog:
    """Which sources ccache had already compiled: what it returned from its cache says nothing of time."""

    def __init__(self, folder):
        self.folder, self.path = folder, folder / "ccache.log"
        try:
            self.used = "ccache" in (folder / "build.ninja").read_text(errors="replace")
        except FileNotFoundError:
            self.used = False
        self.used = self.used and not os.environ.get("CCACHE_DISABLE")
        self.path.unlink(missing_ok=True)

    def variables(self):
        return {"CCACHE_STATSLOG": self.path} if self.used else {}

    def hits(self):
        """Sources that came from the cache, as in units' names. None: ccache did not say."""
        if not self.used:
            return set()
        try:
            lines = self.path.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return None
        hits, source = set(), ""
        for line in lines:
            if line.startswith("# "):
                source = os.path.relpath(self.folder / line[2:], ROOT)
            elif line.endswith("cache_hit"):
                hits.add(source)
        return hits


def keep_compiled(folder, outputs, cache):
    """Keep how long units took that were really compiled, until they are built again; the answer is what was
    added now."""
    path, hits, seconds = folder / "compiled.json", cache.hits(), ninja.durations(folder)
    kept = json.loads(path.read_text()) if path.exists() else {}
    now = {}
    for output in outputs:
        unit = ninja.unit_of(output)
        kept.pop(unit, None)
        if output in seconds and hits is not None and unit.rsplit(" ", 1)[0] not in hits:
            now[unit] = seconds[output]
    if outputs:
        path.write_text(json.dumps({**kept, **now}, indent=0))
    return now


def slower(now, costs=None):
    """Lines that name units which took twice their recorded share of a build, or more."""
    costs = recorded() if costs is None else costs
    now = {unit: took for unit, took in now.items() if costs.get(unit)}
    if len(now) < LEAST_UNITS:
        return []
    # The machine's pace is the median unit's: a few that became slower do not change it.
    pace = statistics.median(now[unit] / costs[unit] for unit in now)
    lines = []
    for unit, took in sorted(now.items(), key=lambda item: -item[1]):
        usual = costs[unit] * pace
        if took >= TIMES_SLOWER * usual and took >= LEAST_SECONDS:
            lines.append(
                f"{unit} took {took:.1f} s to compile, {took / usual:.1f} times its share ({usual:.1f} s)"
            )
    return lines


def save(folder, path=None):
    """Write unit_costs.txt from what was compiled in a folder; how many units and seconds that were."""
    path = path or COSTS
    units = {ninja.unit_of(output) for output in ninja.durations(folder)} - {None}
    kept = folder / "compiled.json"
    took = json.loads(kept.read_text()) if kept.exists() else {}
    missing = len(units - took.keys())
    if missing or not units:
        raise Failure(
            f"{missing or 'all'} units in {folder} were not compiled by `./dev` or came from ccache: remove "
            "that folder and build with CCACHE_DISABLE=1 on a machine that does nothing else, then save"
        )
    total = sum(took.values())
    lines = [f"{seconds / total * 100:7.3f} {unit}\n" for unit, seconds in sorted(took.items())]
    path.write_text(HEAD.format(total=total) + "".join(lines), encoding="utf-8")
    return len(took), total


def slowest(folder, count=25):
    """Lines: the units that took longest here, beside what is recorded."""
    here = {ninja.unit_of(output): took for output, took in ninja.durations(folder).items()}
    here.pop(None, None)
    costs = recorded()
    yield f"{'seconds':>8} {'recorded':>8}  unit"
    for unit, took in sorted(here.items(), key=lambda item: -item[1])[:count]:
        yield f"{took:8.1f} {costs.get(unit, float('nan')):8.1f}  {unit}"


# --- from an edit to its test -------------------------------------------------------------------------------

EDITS = {
    "kernel": ("src/cpu/isa/softmax.cpp", "tests/python/nn/test_kernel_groups.py", "softmax", 20),
    "record": ("src/ops/activation.cpp", "tests/python/nn/test_large_kernels.py", "gelu", 30),
    "header": ("src/core/tensor.h", "tests/python/tensor/test_tensor.py", "", 240),
}


class Edited:
    """A file with one more comment at its end. Its content and date come back: what was compiled from it is
    what would be compiled from the file as it was."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.content, self.state = self.path.read_bytes(), self.path.stat()
        self.path.write_bytes(self.content + b"// edited to measure a build\n")

    def __exit__(self, *_):
        self.path.write_bytes(self.content)
        os.utime(self.path, ns=(self.state.st_atime_ns, self.state.st_mtime_ns))


def edit_to_test(kinds, build, test):
    """Lines of a table: what an edit of each kind costs until its test has run. `build()` answers how many
    units it compiled, `test(file, words)` runs some tests."""
    build()
    yield f"{'edit':34} {'units':>5} {'build':>7} {'test':>7} {'total':>7} {'target':>7}"
    for kind in kinds:
        file, tests, words, target = EDITS[kind]
        with Edited(ROOT / file):
            begun = time.monotonic()
            units = build()
            built = time.monotonic()
            test(tests, words)
            tested = time.monotonic()
        total = tested - begun
        over = "" if total <= target else "  over"
        seconds = f"{built - begun:6.1f}s {tested - built:6.1f}s {total:6.1f}s {target:6.0f}s"
        yield f"{kind + ': ' + file:34} {units:5} {seconds}{over}"
