"""Reads what ninja prints while it builds, and what it recorded of earlier builds."""

import os
import re
import subprocess

MARK = "\x01"  # begins ninja's own lines; compilers do not print it
STATUS = f"{MARK}%f %t "  # what NINJA_STATUS is set to: steps finished and steps in all
PLAN = "plan.ninja"

_STATUS = re.compile(rf"{MARK}(\d+) (\d+) (.*)")
_BUILT = re.compile(
    r"(?:Building|Linking|Generating) (?:.* )??(?:object|library|module|executable|file) (.*)"
)
_OBJECT = re.compile(r"(?:(.*)/)?CMakeFiles/([^/]+)\.dir/(.*)\.(?:o|gch|pch)")


def output_of(description):
    """The file that a step writes, as .ninja_log names it; for other steps the description."""
    match = _BUILT.fullmatch(description)
    return match[1].strip('"') if match else description  # quoted where a path has spaces


def unit_of(output):
    """An object file's source and target, as `src/cpu/isa/cast.cpp avx2`; None for what is no object."""
    match = _OBJECT.fullmatch(output)
    if not match:
        return None
    folder, target, source = match.groups()
    return f"{os.path.normpath(os.path.join(folder or '', source.replace('__', '..')))} {_short(target)}"


def _short(target):
    return target.removeprefix("rushlight_")


def shown(output):
    """How the progress line names a step."""
    unit = unit_of(output)
    if unit is None:
        return os.path.basename(output) if "/" in output else output
    source, target = unit.rsplit(" ", 1)
    return f"{source} ({target})" if "/isa/" in source else source


class Step:
    """One finished step: what it wrote, and what its command printed."""

    def __init__(self, description):
        self.output = output_of(description)
        self.failed = None  # ninja's words, with the exit status
        self.command = None
        self.lines = []

    def text(self):
        return "\n".join(self.lines).strip("\n")


class Reader:
    """Takes ninja's output line by line."""

    def __init__(self):
        self.finished = self.total = 0
        self.steps = []
        self.messages = []  # what ninja itself says

    def take(self, line):
        """Read a line; the answer is the step that it begins, if it begins one."""
        status = _STATUS.match(line)
        if status:
            self.finished, self.total = int(status[1]), int(status[2])
            self.steps.append(Step(status[3]))
            return self.steps[-1]
        step = self.steps[-1] if self.steps else None
        if line.startswith("ninja: "):
            if not line.startswith(("ninja: Entering directory", "ninja: no work to do")):
                self.messages.append(line)
        elif step is None:
            self.messages.append(line)
        elif line.startswith("FAILED: ") and step.failed is None:
            step.failed = line
        elif step.failed and step.command is None:
            step.command = line
        else:
            step.lines.append(line)
        return None

    def failures(self):
        return [step for step in self.steps if step.failed]

    def talkative(self):
        """Steps that succeeded and printed something: warnings. CMake's runs print what they find."""
        return [s for s in self.steps if not s.failed and s.text() and unit_of(s.output) is not None]


def plan(ninja, folder, targets=()):
    """The outputs that a build would write now. CMake's own rules are left out: for them a dry run stops."""
    source, copy = folder / "build.ninja", folder / PLAN
    if not copy.exists() or copy.stat().st_mtime_ns < source.stat().st_mtime_ns:
        statements = source.read_text(encoding="utf-8", errors="surrogateescape").split("\n\n")
        rules = re.compile(r"^build (?:.*: (?:VERIFY_GLOBS|RERUN_CMAKE) |build\.ninja[ :])", re.M)
        kept = "\n\n".join(text for text in statements if not rules.search(text))
        copy.write_text(kept, encoding="utf-8", errors="surrogateescape")
    dry = subprocess.run(
        [str(ninja), "-n", "-f", PLAN, *targets],
        cwd=folder,
        env={**os.environ, "NINJA_STATUS": STATUS},
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    return [output_of(match[3]) for match in map(_STATUS.match, dry.stdout.splitlines()) if match]


def durations(folder):
    """Seconds that each output took when it was last built here."""
    seconds = {}
    try:
        text = (folder / ".ninja_log").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return seconds
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 5 and fields[0].isdigit() and fields[1].isdigit():
            seconds[fields[3]] = (int(fields[1]) - int(fields[0])) / 1000
    return seconds


class Estimate:
    """How much of a build is done and how long the rest takes, from what each step is expected to take.

    The machine's pace is learnt on the way, from the last third of the time: units that ccache returns at
    once say little of those that follow. What was expected counts as if it had been seen for a twentieth of
    the build, so that the first numbers are no nonsense.
    """

    PRIOR = 0.05
    LEAST_SECONDS = 20.0

    def __init__(self, outputs, expected, jobs):
        known = sorted(expected.get(output, 0.0) for output in outputs if expected.get(output))
        usual = known[len(known) // 2] if known else 1.0
        self.cost = {output: max(expected.get(output) or usual, 0.01) for output in outputs}
        self.total = sum(self.cost.values())
        self.done, self.jobs = 0.0, max(1, jobs)
        self.left = dict(self.cost)
        self.past = [(0.0, 0.0)]  # seconds since the start, and what was done then

    def finish(self, output, elapsed):
        self.done += self.left.pop(output, 0.0)
        self.past.append((elapsed, self.done))

    def share(self):
        return self.done / self.total if self.total else 1.0

    def remaining(self, elapsed):
        since = elapsed - max(self.LEAST_SECONDS, elapsed / 3)
        while len(self.past) > 1 and self.past[1][0] <= since:
            self.past.pop(0)
        begun, done = self.past[0]
        prior = self.PRIOR * self.total
        pace = (elapsed - begun + prior / self.jobs) / (self.done - done + prior) if self.total else 0.0
        return (self.total - self.done) * pace
