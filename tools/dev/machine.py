"""What the machine has for a build, and what it lacks."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .paths import ROOT
from .problems import Failure, free, gigabytes, read_only

JOB_MEMORY = 1.3e9  # the largest unit takes this much
BUILD_DISK = 0.8e9  # objects, libraries and the compiler's temporary files
MISSING_COMPILER = (
    "no C++ compiler: install g++ 12 or newer (Debian and Ubuntu: apt install g++), or name one in CXX"
)


def compiler():
    """The C++ compiler that CMake would take."""
    named = os.environ.get("CXX")
    for name in [named] if named else ["c++", "g++", "clang++"]:
        if shutil.which(name) or shutil.which(name.split()[0]):  # CXX may hold options too
            return name
    if named:
        raise Failure(f"CXX names {named}, which is not there: name an installed C++ compiler, or unset CXX")
    raise Failure(MISSING_COMPILER)


def check_headers(interpreter):
    ask = "import sysconfig, os; p = sysconfig.get_path('include'); print(p, os.path.exists(p + '/Python.h'))"
    printed = subprocess.run([interpreter, "-c", ask], capture_output=True, text=True).stdout.strip()
    folder, _, found = printed.rpartition(" ")
    if found == "False":
        raise Failure(
            f"no Python headers in {folder}: install them (Debian and Ubuntu: apt install python3-dev)"
        )


def check_writable(*folders):
    for folder in folders:
        existing = folder
        while not existing.exists():
            existing = existing.parent
        if not os.access(existing, os.W_OK):
            raise Failure(read_only(existing))


def check_disk(needed, what, folder=ROOT):
    available = free(folder)
    if available < needed:
        raise Failure(
            f"too little disk space: {what} takes {gigabytes(needed)}, "
            f"{gigabytes(available)} are free in {folder}; make room and run this again"
        )


def _number(path):
    """The number in a file; None where there is none or the kernel says that there is no limit."""
    try:
        text = path.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(text) if re.fullmatch(r"-?\d+", text) and 0 <= int(text) < 1 << 60 else None


def _control_groups(controller, proc, groups):
    """Folders of the control groups that limit this process, the innermost first: version 2's and 1's."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            tops = [groups, groups / "unified"]
        elif controller in controllers.split(","):
            tops = [groups / controllers, groups / controller]
        else:
            continue
        for top in tops:
            folder = top / path.lstrip("/")
            while True:
                yield folder
                if folder == top or top not in folder.parents:
                    break
                folder = folder.parent


def usable_cores(proc=Path("/proc"), groups=Path("/sys/fs/cgroup")):
    """Cores that this process may use: its affinity and its control group's share of processor time."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for folder in _control_groups("cpu", proc, groups):
        quota, period = _number(folder / "cpu.cfs_quota_us"), _number(folder / "cpu.cfs_period_us")
        try:
            quota, period = map(int, (folder / "cpu.max").read_text().split())
        except (OSError, ValueError):
            pass  # no such file, or "max"
        if quota and period:
            cores = min(cores, max(1, -(-quota // period)))
    return cores


def usable_memory(proc=Path("/proc"), groups=Path("/sys/fs/cgroup")):
    """Bytes that this process can have: the machine's, or what its control groups leave. None: unknown."""
    found = []
    try:
        text = (proc / "meminfo").read_text()
        found.append(int(re.search(r"^MemAvailable:\s+(\d+) kB", text, re.M)[1]) * 1024)
    except (OSError, TypeError):
        pass
    for folder in _control_groups("memory", proc, groups):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            most, now = _number(folder / limit), _number(folder / used)
            if most is not None and now is not None:
                found.append(max(0, most - now + _reclaimable(folder)))
    return min(found) if found else None


def _reclaimable(folder):
    """Bytes of files' contents in a control group's memory, which the kernel gives back on demand."""
    try:
        match = re.search(r"^(?:total_)?inactive_file (\d+)$", (folder / "memory.stat").read_text(), re.M)
    except OSError:
        return 0
    return int(match[1]) if match else 0


def vector_extensions(proc=Path("/proc")):
    """Which of the instruction sets that kernels are compiled for this processor has."""
    try:
        text = (proc / "cpuinfo").read_text()
    except OSError:
        return []
    flags = re.search(r"^flags\s*:(.*)$", text, re.M)
    wanted = ("avx2", "avx512bw", "avx512dq", "avx512f", "avx512vl", "f16c", "fma")
    return [flag for flag in wanted if flags and flag in flags[1].split()]


def jobs():
    """How many compilers run at once: CMAKE_BUILD_PARALLEL_LEVEL, else what cores and memory allow."""
    named = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "")
    if named:
        if not named.isdigit() or int(named) < 1:
            raise Failure(f"CMAKE_BUILD_PARALLEL_LEVEL is {named!r}: it must be a number of jobs, 1 or more")
        return int(named)
    memory = usable_memory()
    most = max(1, int(memory // JOB_MEMORY)) if memory is not None else sys.maxsize
    return min(usable_cores(), most)


def out_of_memory(count):
    """What to say when a compiler was killed with so many at once."""
    memory = usable_memory()
    state = "" if memory is None else f" ({gigabytes(memory)} are free now)"
    if count > 1:
        return f"the compiler ran out of memory{state}: build with fewer jobs, `./dev -j {count // 2} build`"
    return (
        f"the compiler ran out of memory{state} with one job: it needs {gigabytes(JOB_MEMORY)}; "
        "end other programs or add swap space, then run this again"
    )
