"""How far other systems' compilers get with the sources: `./dev portability` (docs/portability.md).

Nothing is linked and nothing runs. Sources are those of the portable configuration, without libraries.
"""

import collections
import concurrent.futures
import os
import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass, field

from . import machine
from .cross import Apt
from .environment import NETWORK_HELP
from .paths import BUILD, PYTHON, ROOT
from .problems import Failure, common
from .process import Log, watch
from .progress import Progress

SRC = ROOT / "src"
FOLDERS = tuple("core device dispatch autograd transform formulas cpu io jit generation ops frontend".split())
# What a target leaves out, and why: libraries of others that this command does not fetch.
LEFT_OUT = "src/python (CPython's headers), src/cuda, src/distributed (Gloo), src/serve (Boost)"
WARNINGS = ("-Wall", "-Wextra")
# As cmake/Toolchain.cmake has it.
OF_CLANG = (
    "-Wno-unknown-warning-option -Wno-unknown-pragmas -Wno-unknown-attributes -Wno-missing-field-initializers"
    " -Wno-missing-designated-field-initializers -Wno-bitwise-conditional-parentheses"
    " -Wno-unused-const-variable"
).split()
OF_GCC = ["-Wno-init-list-lifetime"]
X86 = {
    "baseline": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": "-mavx2 -mfma -mf16c -mavx512f -mavx512dq -mavx512bw -mavx512vl".split(),
}
ARM = {"baseline": [], "neon": ["-ffp-contract=fast", "-DRL_NEON=1"]}
ZIG = "ziglang==0.13.0"  # PyPI's copy of libc++ and of the headers of macOS, which Apple publishes
MINGW = ("g++-mingw-w64-x86-64-posix", "gcc-mingw-w64-x86-64-posix-runtime", "mingw-w64-x86-64-dev")


@dataclass
class Target:
    compiler: list
    system: tuple  # folders of src/core/host
    sets: dict
    options: list = field(default_factory=list)


def clang():
    """The newest clang; older ones than 16 lack parts of C++20, and libc++ of today refuses them."""
    for name in (*(f"clang++-{version}" for version in range(25, 15, -1)), "clang++"):
        if shutil.which(name) and _version_of(name) >= 16:
            return name
    raise Failure("no clang of version 16 or newer: install it (Debian and Ubuntu: apt install clang-19)")


def _version_of(compiler):
    printed = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True, check=False).stdout
    major = printed.partition(".")[0]
    return int(major) if major.isdigit() else 0


def linux(folder):
    return Target([clang()], ("posix", "linux"), X86, OF_CLANG)


def macos(folder):
    headers = folder / "ziglang"
    if not (headers / "ziglang").exists():
        words = [
            PYTHON,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-input",
            "--no-deps",
            "--target",
            headers,
            ZIG,
        ]
        with Log(folder / "pip.log") as log:
            if watch(words, log.add, lambda: None):
                raise Failure(common(log.text()) or f"pip failed ({log.path}); {NETWORK_HELP}")
    library = headers / "ziglang" / "lib"
    # What libc++ is configured with there.
    libcxx = ["ABI_VERSION=1", "ABI_NAMESPACE=__1", "PSTL_CPU_BACKEND_THREAD"]
    libcxx.append("HARDENING_MODE_DEFAULT=_LIBCPP_HARDENING_MODE_NONE")
    defines = [f"-D_LIBCPP_{word}" for word in libcxx]
    places = [library / "libcxx" / "include", library / "libcxxabi" / "include"]
    places += [
        library / "libc" / "include" / name
        for name in ("aarch64-macos-any", "any-macos-any", "any-darwin-any")
    ]
    found = [f"-isystem{place}" for place in places if place.exists()]
    # The compiler's own headers come between the two libraries'.
    options = [
        "--target=arm64-apple-macos13.3",
        "-nostdlibinc",
        *defines,
        *found,
        "-fsigned-char",
        "-ffp-contract=off",
    ]
    return Target([clang()], ("posix", "macos"), ARM, [*options, *OF_CLANG])


def windows(folder):
    name = "x86_64-w64-mingw32-g++-posix"
    if shutil.which(name):
        return Target([name], ("windows",), X86, OF_GCC)
    root = folder / "mingw"
    if not (root / "usr" / "bin" / name).exists():
        with Apt(folder / "apt", "Debian's compiler for Windows", None) as apt:
            for archive in apt.fetch(MINGW):
                apt.run("dpkg", "-x", archive, root)
    return Target([str(root / "usr" / "bin" / name)], ("windows",), X86, OF_GCC)


TARGETS = {"clang": linux, "macos": macos, "windows": windows}


def units(target, folders):
    """(source, options, header to precompile) for all that the system's library would hold."""
    library, front = ["-DRUSHLIGHT_CORE"], ["-DRUSHLIGHT_FRONTEND"]
    sets = [f"-DRUSHLIGHT_WITH_{name.upper()}=1" for name in target.sets if name != "baseline"]
    for folder in folders:
        paths = sorted((SRC / folder).glob("**/*.cpp" if folder == "frontend" else "*.cpp"))
        for path in paths:
            if folder == "frontend":
                yield path, front, "frontend"
            else:
                yield path, library + sets, "core"
        if folder == "core":
            for part in ("", *target.system):
                for path in sorted((SRC / "core" / "host" / part).glob("*.cpp")):
                    yield path, library + sets, None
        if folder == "cpu":
            for name, flags in target.sets.items():
                for path in sorted((SRC / "cpu" / "isa").glob("*.cpp")):
                    yield path, [*library, f"-DRL_ISA={name}", *flags], "isa"


def precompiled(target, folder, header, options):
    """Options that put a header before a unit, compiled once for all units with the same options."""
    name = f"{header}-{zlib.crc32(' '.join(options).encode()):08x}.h"
    path = folder / name
    source = ROOT / "cmake" / "precompiled" / f"{header}.h"
    path.write_text(f'#include "{source}"\n')
    words = [*_base(target), *options, "-x", "c++-header", path, "-o", f"{path}.gch"]
    if _is_clang(target):
        words[-1] = f"{path}.pch"
    ran = _run(words)
    if ran.returncode:
        return []  # each unit then tells what is wrong
    return ["-include-pch", words[-1]] if _is_clang(target) else ["-include", str(path), "-Winvalid-pch"]


def _is_clang(target):
    return "clang" in os.path.basename(target.compiler[0])


def _base(target):
    places = [f"-I{SRC}", f"-I{ROOT / 'include'}", f"-I{ROOT}"]
    return [*target.compiler, "-std=c++20", *WARNINGS, *target.options, *places]


def _run(words):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True)


def check(name, folders=FOLDERS):
    """Compiles each unit of a target without writing code; problems by unit, and how many units there are."""
    folder = BUILD / "portability" / name
    folder.mkdir(parents=True, exist_ok=True)
    target = TARGETS[name](folder)
    jobs = list(units(target, folders))
    headers = {}
    for _, options, header in jobs:
        if header and (key := (header, *options)) not in headers:
            headers[key] = precompiled(target, folder, header, options)
    progress, problems = Progress(f"compiling for {name}"), {}

    def compile_one(job):
        path, options, header = job
        before = headers[(header, *options)] if header else []
        return _run([*_base(target), *options, *before, "-fsyntax-only", path])

    with concurrent.futures.ThreadPoolExecutor(machine.jobs()) as pool:
        for number, (job, ran) in enumerate(zip(jobs, pool.map(compile_one, jobs)), 1):
            progress.update(detail=f"{number} of {len(jobs)}")
            unit = " ".join([str(job[0].relative_to(ROOT)), *re.findall(r"RL_ISA=(\w+)", " ".join(job[1]))])
            if ran.returncode or ran.stderr.strip():
                problems[unit] = (bool(ran.returncode), ran.stderr)
    progress.clear()
    (folder / "problems.txt").write_text(
        "\n".join(f"== {unit}\n{text}" for unit, (_, text) in problems.items())
    )
    return problems, len(jobs)


def table(results):
    """Lines of a table in Markdown, and below it what stands in the way."""
    lines = ["| target | units | compile | with warnings |", "|---|---|---|---|"]
    reasons = []
    for name, (problems, count) in results.items():
        failed = sum(is_error for is_error, _ in problems.values())
        lines.append(f"| {name} | {count} | {count - failed} | {len(problems) - failed} |")
        causes = collections.Counter(cause(text) for _, text in problems.values())
        reasons += [f"{name}: {number} times: {text}" for text, number in causes.most_common(20)]
    return [*lines, "", f"Left out: {LEFT_OUT}.", *reasons]


def cause(text):
    """The first error, or else warning, without its place."""
    found = re.search(r"(?:fatal )?error: (.*)", text) or re.search(r"warning: (.*)", text)
    return found[1] if found else (text.strip().splitlines() or ["?"])[0]
