"""Configures and builds one build folder. Both are skipped where nothing changed."""

import fcntl
import json
import os
import re
import shutil

from . import environment, machine, ninja, times
from .paths import PACKAGE, PYTHON, ROOT, VENV
from .problems import MEMORY, NO_PROGRAM, Failure, common, said
from .process import Log, watch
from .progress import Progress, clock

CONFIGURED = "configured.json"
LOG = "configure.log"
WARNINGS = "warnings.txt"
CMAKE_STEP = "Re-running CMake..."  # as ninja calls it
verbose = False  # `./dev -v`: everything that compilers and CMake print


def build(folder, *options):
    """Build in a folder, with CMake options that stay in force there; the answer is the folder."""
    update(folder, *options)
    return folder


def update(folder, *options, targets=()):
    """Bring what the build needs, configure if need be, and build; the answer counts compiled units."""
    environment.install("build")
    packages = dict(environment.LIBRARIES)
    if "-DRUSHLIGHT_BENCHMARKS=ON" in options:
        packages["Google Benchmark"] = "libbenchmark-dev"
    if root := environment.debian_packages(packages, retry="--fresh" in options):
        options = (f"-DRUSHLIGHT_DEBIAN_ROOT={root}", *options)
    if sets := os.environ.get("RUSHLIGHT_INSTRUCTION_SETS"):
        options = (f"-DRUSHLIGHT_INSTRUCTION_SETS={sets}", *options)
    machine.check_writable(folder, PACKAGE)
    folder.mkdir(parents=True, exist_ok=True)
    with one_at_a_time(folder):
        configure(folder, *options)
        return compile_all(folder, targets)


class one_at_a_time:
    """Two builds in one folder would spoil each other's records: the second waits."""

    def __init__(self, folder):
        self.path = folder / "lock"

    def __enter__(self):
        self.file = self.path.open("w")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"dev: waiting for another build in {self.path.parent}", flush=True)
            fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *_):
        self.file.close()


# --- configure ----------------------------------------------------------------------------------------------


def conditions():
    """What a configured folder depends on beside its options and what ninja watches: (that which CMake takes
    up by configuring again, that which it only takes up from scratch)."""
    again = {name: shutil.which(name) for name in ("ccache", "ld.lld", "nvcc")}
    again["packages"] = environment.digest("build")
    again["processor"] = machine.vector_extensions()  # cmake/InstructionSets.cmake
    scratch = {name: os.environ.get(name) for name in ("CC", "CXX", "CFLAGS", "CXXFLAGS", "LDFLAGS")}
    scratch["python"] = [str(PYTHON), os.path.realpath(PYTHON)]
    return again, scratch


def parse_options(options):
    """-DNAME=VALUE or -DNAME:TYPE=VALUE as a dictionary, and the other options."""
    named, others = {}, []
    for option in options:
        match = re.fullmatch(r"-D([^:=]+)(?::\w+)?=(.*)", option, re.S)
        if match:
            named[match[1]] = match[2]
        else:
            others.append(option)
    return named, others


def configure(folder, *options):
    named, others = parse_options(options)
    again, scratch = conditions()
    stamp = folder / CONFIGURED
    try:
        known = json.loads(stamp.read_text())
    except (OSError, ValueError):
        known = {}
    # Options that are not given keep their values, as in CMake's cache.
    kept = known.get("options", {})
    same = all(kept.get(name) == value for name, value in named.items()) and not others
    if (
        same
        and known.get("again") == again
        and known.get("scratch") == scratch
        and (folder / "build.ninja").exists()
        and not moved(folder)
    ):
        return
    machine.compiler()
    machine.check_headers(PYTHON)
    if moved(folder) or (known and known.get("scratch") != scratch):
        (folder / "CMakeCache.txt").unlink(missing_ok=True)
        shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
        kept = {}
    stamp.unlink(missing_ok=True)
    run_cmake(folder, options)
    stamp.write_text(json.dumps({"again": again, "scratch": scratch, "options": {**kept, **named}}, indent=1))


def moved(folder):
    """Whether the folder was configured somewhere else and then copied or moved."""
    try:
        cache = (folder / "CMakeCache.txt").read_text(errors="surrogateescape")
    except FileNotFoundError:
        return False
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", cache, re.M)
    here = re.search(r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", cache, re.M)
    return bool(home and here) and (home[1] != str(ROOT) or here[1] != str(folder))


def run_cmake(folder, options):
    command = [
        PYTHON,
        "-m",
        "cmake",
        "-S",
        ROOT,
        "-B",
        folder,
        "-G",
        "Ninja",
        f"-DPython_EXECUTABLE={PYTHON}",
    ]
    progress = Progress("configuring")

    def take(line):
        log.add(line)
        if verbose:
            progress.clear()
            print(line, flush=True)

    try:
        with Log(folder / LOG) as log:
            status = watch([*command, *options], take, progress.tick)
    finally:
        progress.clear()
    if status:
        raise Failure(configure_failure(log.text(), folder))


def configure_failure(text, folder):
    """One line from what CMake printed: its own first message, or what is known of the cause."""
    if line := common(text, folder):
        return line
    return f"{cmake_error(text)} (all that CMake printed: {folder / LOG})"


def cmake_error(text):
    """CMake's first error message as one line."""
    found = re.search(
        r"^CMake Error(?: at [^\n]*| in [^\n]*)?:?[ \t]*\n?(.*?)(?=\n\n\n|\nCall Stack|\n-- |\Z)",
        text,
        re.M | re.S,
    )
    message = " ".join(found[1].split()) if found else ""
    return message or "CMake failed"


# --- compile ------------------------------------------------------------------------------------------------


def compile_all(folder, targets=()):
    """Build what is to be built, with fewer jobs where memory did not suffice for all."""
    program = VENV / "bin" / "ninja"
    jobs, units = machine.jobs(), 0
    while True:
        outputs = ninja.plan(program, folder, targets)
        if outputs:
            machine.compiler()
            if not any(folder.rglob("*.o")):
                machine.check_disk(machine.BUILD_DISK, "a build", folder)
        status, reader = run_ninja([program, "-j", jobs, *targets], folder, outputs, jobs)
        units += len(objects(reader))
        if not status:
            return units
        if jobs == 1 or not MEMORY.search(said(output_of_failures(reader))):
            raise Failure(build_failure(reader, jobs, folder))
        print(f"dev: memory did not suffice for {jobs} jobs, going on with {jobs // 2}", flush=True)
        jobs //= 2


def run_ninja(command, folder, outputs, jobs):
    """Run ninja behind the progress line; its exit status, and what was read from it."""
    estimate = ninja.Estimate(outputs, times.expected(folder), jobs)
    reader, cache = ninja.Reader(), times.CacheLog(folder)
    progress = Progress("building") if outputs else None

    def take(line):
        nonlocal progress
        step = reader.take(line)
        if verbose:
            if progress:
                progress.clear()
            print(re.sub(rf"^{ninja.MARK}(\d+) (\d+) ", r"[\1/\2] ", line), flush=True)
        if step is None or step.output == "Re-checking globbed directories...":
            return
        # Changed build files and new sources make ninja run CMake: what is built then was not foreseen.
        title = "configuring" if step.output == CMAKE_STEP else "building"
        if progress is None or progress.title != title:
            if progress:
                progress.clear()
            progress = Progress(title)
        if title == "building":
            elapsed = progress.elapsed()
            estimate.finish(step.output, elapsed)
            progress.update(estimate.share(), estimate.remaining(elapsed), ninja.shown(step.output))

    try:
        variables = {"NINJA_STATUS": ninja.STATUS, **cache.variables()}
        tick = lambda: progress and progress.tick()
        status = watch(command, take, tick, folder, **variables)
    finally:
        if progress:
            progress.clear()
        count = keep_warnings(folder, reader)
        compiled = times.keep_compiled(folder, objects(reader), cache)
    if progress and progress.title == "building" and not status:
        warned = f"; {count} with warnings: {folder / WARNINGS}" if count else ""
        steps = sum(not step.output.startswith("Re-") for step in reader.steps)  # CMake's own do not count
        progress.finish(f"built in {clock(progress.elapsed())}, {steps} steps{warned}")
    for line in times.slower(compiled):
        print(f"dev: warning: {line}", flush=True)
    return status, reader


def objects(reader):
    return [step.output for step in reader.steps if ninja.unit_of(step.output) and not step.failed]


def keep_warnings(folder, reader):
    """Keep in a file what units that compile now print, by unit, until they are compiled again. The answer is
    how many of this build's units printed something."""
    path, heading = folder / WARNINGS, "==== "
    kept = {}
    if path.exists():
        for part in path.read_text(encoding="utf-8", errors="replace").split(heading)[1:]:
            unit, _, text = part.partition("\n")
            kept[unit] = text.strip("\n")
    talkative = reader.talkative()
    for step in reader.steps:
        kept.pop(ninja.unit_of(step.output), None)
    kept |= {ninja.unit_of(step.output): step.text() for step in talkative}
    if kept:
        text = "".join(f"{heading}{unit}\n{text}\n\n" for unit, text in sorted(kept.items()))
        path.write_text(text, encoding="utf-8")
    else:
        path.unlink(missing_ok=True)
    return len(talkative)


def output_of_failures(reader):
    return "\n".join([*reader.messages, *(f"{step.failed}\n{step.text()}" for step in reader.failures())])


def build_failure(reader, jobs, folder):
    """Print each failed unit and its output, once; the answer is the line to end with."""
    failures, text = reader.failures(), output_of_failures(reader)
    if MEMORY.search(said(text)):
        return machine.out_of_memory(jobs)
    if line := common(text, folder):
        return line
    if not failures:
        messages = [line.removeprefix("ninja: ").removeprefix("error: ") for line in reader.messages]
        return f"ninja failed: {'; '.join(messages) or 'it said nothing'}"
    if NO_PROGRAM.search(said(text)):
        return (
            "a program that the build was configured with is gone: `./dev build --fresh` looks for it again"
        )
    for step in failures:
        if step.output == CMAKE_STEP:
            return configure_failure(step.text(), folder)
        if not verbose:
            print(f"dev: {ninja.shown(step.output)} failed:\n{step.text()}", flush=True)
    names = ", ".join(ninja.shown(step.output) for step in failures)
    return f"{names} did not build (`./dev -v build` shows the whole command)"
