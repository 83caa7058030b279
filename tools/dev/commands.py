"""The commands of `./dev`, in the order in which it lists them. --help adds a command's docstring."""

import os
import shutil
import subprocess
from pathlib import Path

from . import cross, cross_wheel, fuzz, machine, portability, sanitized_server, times, wasm
from .build import build, update
from .environment import LIBRARIES, debian_packages, install
from .paths import BUILD, PYTHON, ROOT
from .problems import Failure
from .process import run

COMMANDS = {}  # name: (usage, summary, function)
BUILT = ("bin", "include", "lib")  # folders of the package that a build writes, beside its modules
DEVELOPMENT = BUILD / "dev"  # the build in place
NO_LIBRARIES = ("-DRUSHLIGHT_BLAS=none", "-DRUSHLIGHT_ONEDNN=off", "-DRUSHLIGHT_TBB=off")
SERVER = "server"  # what `./dev fuzz` takes beside readers of files
THREADED_TESTS = ("tests/python/tensor/test_threads.py", "tests/python/data/test_data_threads.py")
# What decides by the names of modules, or starts processes; tests/packages runs under the alias by itself.
ALIAS_TESTS = (
    "tests/python/graphs",
    "tests/python/files",
    "tests/python/explain/test_debug.py",
    "tests/python/explain/test_profiler.py",
    "tests/python/processes/test_launcher.py",
    "tests/python/processes/test_multiprocessing.py",
    "tests/python/processes/test_pipelining.py",
    "tests/python/processes/test_stuck.py",
    "tests/python/programs/test_api.py",
    "tests/python/programs/test_known_by_name.py",
    "tests/python/programs/test_legacy_interfaces.py",
)
CPP = ("*.h", "*.cpp", "*.c", "*.cu", "*.cuh")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # a worker: the workers already fill the cores
TYPED = [ROOT / "rushlight", ROOT / "benchmarks"]


def command(usage, summary):
    def register(function):
        COMMANDS[usage.split()[0]] = (usage, summary, function)
        return function

    return register


@command("demo [options]", "train, save and check the digits network")
def demo(*options):
    build(DEVELOPMENT)
    install("demo")
    run(PYTHON, "-m", "rushlight", "demo", *options, PYTHONPATH=ROOT)


@command("test [pytest options]", "build, then run every C++ and Python test")
def test(*pytest_options):
    """Options go to pytest. Where they name files or folders, those alone are run, and no C++ tests:
    ./dev test tests/python/nn -k adam"""
    folder = build(DEVELOPMENT, "-DRUSHLIGHT_TESTS=ON")
    install("test", "oracle", "packages", "clusters", "docs")
    if any(names_a_path(option) for option in pytest_options):
        run_pytest(ROOT, pytest_options, **ONE_THREAD)
    else:
        run_tests(folder, ROOT, pytest_options)
        run_under_the_alias(pytest_options)


@command("build [cmake options]", "build in place, so that PYTHONPATH=. imports rushlight")
def build_in_place(*options):
    """Options such as -DRUSHLIGHT_BLAS=none stay in force in build/dev; --fresh forgets them, and looks for
    programs and libraries again. The options of builds are listed in CONTRIBUTING.md."""
    build(DEVELOPMENT, *options)


@command("alias [pytest options]", "tests in which `import torch` is Rushlight, as `./dev test` runs last")
def alias(*pytest_options):
    build(DEVELOPMENT)
    install("test")
    run_under_the_alias(pytest_options)


@command("cuda", "compile the CUDA library, if nvcc is found; no GPU is needed")
def cuda():
    folder = build(DEVELOPMENT, "-DRUSHLIGHT_TESTS=ON")
    if "\nbuild rushlight_cuda: " not in (folder / "build.ninja").read_text():
        print(
            "dev: no nvcc with its runtime library was found (PATH, CUDA_HOME, /usr/local/cuda): "
            "the CUDA library is NOT compiled"
        )
        return
    update(folder, targets=["rushlight_cuda"])
    install("test")
    run_pytest(ROOT, ["tests/python/devices/test_device.py", "-k", "without_a_device"])


@command("lint [FILE ...]", "check format (clang-format, ruff) and types (mypy), of all or of some files")
def lint(*files):
    """Types are checked of all or of nothing: one file's change others."""
    install("lint")
    paths = [Path(file).resolve() for file in files]
    cpp = [path for path in paths if any(path.match(pattern) for pattern in CPP)] if files else sources(*CPP)
    python = [path for path in paths if path not in cpp] or ([] if files else [ROOT])
    checks = []
    if cpp:
        checks.append(["clang-format", "--dry-run", "-Werror", *cpp])
    if python:
        checks.append(["ruff", "check", "--quiet", "--force-exclude", *python])
        checks.append(["ruff", "format", "--check", "--force-exclude", *python])
    if not files or any(path.is_relative_to(folder) for path in python for folder in TYPED):
        checks.append(["mypy", "--config-file", ROOT / "pyproject.toml", *TYPED])
    failed = []
    for check in checks:
        try:
            run(*check)
        except SystemExit:
            failed.append(" ".join(str(word) for word in check[:2] if word != ROOT))
    if failed:
        raise Failure(f"lint: {', '.join(failed)} failed (`./dev format` repairs the format)")


@command("tidy [FILE ...]", "check C++ sources with clang-tidy: these, or those that differ from main")
def tidy(*files):
    if not (DEVELOPMENT / "compile_commands.json").exists():
        build(DEVELOPMENT, "-DRUSHLIGHT_TESTS=ON")
    install("tidy")
    if not files:
        files = git("diff", "--name-only", "--diff-filter=d", "main", "--", "src/*.cpp", "tests/cpp/*.cpp")
    for file in files:
        run("clang-tidy", "--quiet", "-p", DEVELOPMENT, ROOT / file)


@command("format", "rewrite the sources in that format")
def reformat():
    install("lint")
    run("clang-format", "-i", *sources(*CPP))
    run("ruff", "check", "--fix", "--quiet", ROOT)
    run("ruff", "format", "--quiet", ROOT)


@command("docs [serve]", "build, document in build/site; serve shows it while one writes")
def docs(*options):
    """Pages about operators are printed from the built module while the site is made."""
    build(DEVELOPMENT)
    install("docs")
    words = [PYTHON, "-m", "mkdocs", options[0] if options else "build", "--strict", *options[1:]]
    # The warning would tell of the theme's next major version.
    run(*words, cwd=ROOT, PYTHONPATH=ROOT, NO_MKDOCS_2_WARNING=1)


@command(
    "bench [check|report|sweep] [suites] [options]", "build, measure beside PyTorch (benchmarks/README.md)"
)
def bench(*options):
    """check compares with the recorded ratios; report writes the pages from what --record kept; sweep
    measures all operators."""
    build(DEVELOPMENT, "-DRUSHLIGHT_BENCHMARKS=ON")
    install("bench", "oracle")
    module = "benchmarks"
    if options[:1] in (("check",), ("report",), ("sweep",)):
        module, options = f"benchmarks.{options[0]}", options[1:]
    run(PYTHON, "-m", module, *options, cwd=ROOT, PYTHONPATH=ROOT)


@command("times [kernel|record|header ...] [--units|--save]", "how long it takes from an edit to its test")
def show_times(*arguments):
    """Edits a kernel, an operator's record and a header of src/core in turn, builds without ccache, runs a
    test, puts the file back, and prints a table. --units lists the units that take longest to compile. --save
    writes tools/dev/unit_costs.txt, which later builds are compared with, after a build from clean without
    ccache."""
    if arguments == ("--units",):
        print("\n".join(times.slowest(DEVELOPMENT)))
        return
    if arguments == ("--save",):
        count, seconds = times.save(DEVELOPMENT)
        print(f"dev: {count} units, {seconds:.0f} s, in {times.COSTS.relative_to(ROOT)}")
        return
    for kind in arguments:
        if kind not in times.EDITS:
            raise Failure(f"times: {kind!r} is none of {', '.join(times.EDITS)}, --units, --save")
    install("build", "test")
    os.environ["CCACHE_DISABLE"] = "1"
    build(DEVELOPMENT)

    def run_test(file, words):
        chosen = ["-k", words] if words else []
        run_pytest(ROOT, [file, *chosen], workers=0, **ONE_THREAD)

    kinds = arguments or tuple(times.EDITS)
    table = list(times.edit_to_test(kinds, lambda: update(DEVELOPMENT), run_test))
    print("\n".join(table))


@command("portable [pytest options]", "the same tests, built without any library: no BLAS, oneDNN, TBB")
def portable(*pytest_options):
    folder = BUILD / "portable"
    # A unit that forgets a header which another build precompiles for it does not compile here.
    package_root = build_apart(
        folder, "-DRUSHLIGHT_TESTS=ON", "-DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON", *NO_LIBRARIES
    )
    install("test", "oracle")
    run_tests(folder, package_root, pytest_options)


@command("small [pytest options]", "the small runtime (docs/one_file.md) and its tests")
def small(*pytest_options):
    package_root = build_apart(BUILD / "small", "-DRUSHLIGHT_SMALL_RUNTIME=ON")
    install("test")
    run_pytest(package_root, pytest_options or ["tests/python/graphs/test_small_runtime.py"])


@command("portability [target | folder ...]", "what compilers for other systems say (docs/portability.md)")
def check_portability(*names):
    """Targets are clang (this system), macos and windows; folders are those of src. Each source is compiled
    for each target without a link; the table says how many pass and why others do not. What is missing of
    compilers and headers is unpacked below build/portability."""
    targets = [name for name in names if name in portability.TARGETS] or list(portability.TARGETS)
    folders = [name for name in names if name in portability.FOLDERS] or portability.FOLDERS
    if unknown := set(names) - set(portability.TARGETS) - set(portability.FOLDERS):
        known = ", ".join([*portability.TARGETS, *portability.FOLDERS])
        raise Failure(f"portability: {unknown.pop()!r} is none of {known}")
    install("build")
    results = {name: portability.check(name, folders) for name in targets}
    print("\n".join(portability.table(results)))
    if any(problems for problems, _ in results.values()):
        raise Failure(f"portability: all that compilers said is in {BUILD / 'portability'}/*/problems.txt")


@command("cross aarch64 [quick | pytest options]", "for ARM64: build, test under QEMU, wheel (docs/arm64.md)")
def cross_build(processor="", *options):
    """Needs apt-get, and no rights: what is missing of compiler, emulator and ARM64's Python is unpacked
    below build/cross-aarch64. `quick` runs the core's C++ tests and some operators, and makes no wheel.
    Options go to pytest, and then no C++ tests are run and no wheel is made."""
    if processor != "aarch64":
        raise Failure("cross: name the processor to build for, which can be aarch64")
    install("build")
    folder = BUILD / "cross-aarch64"
    system = cross.System(folder)
    try:
        system.make()
    except Failure as failure:
        if options != ("quick",):
            raise
        print(f"dev: no ARM64 system could be unpacked here, its tests are skipped: {failure}")
        return
    package_root = build_apart(folder / "build", *cross.options(system), targets=cross.TARGETS)
    variables = {**cross.variables(system, package_root), **ONE_THREAD}
    whole, quick = not options, options == ("quick",)
    if whole or quick:
        tests, options, more = cross.QUICK if quick else cross.ALL
        variables |= more
        words = [folder / "build" / "rushlight_tests", "--gtest_brief=1", f"--gtest_filter={tests}"]
        run(*cross.emulated(system, *words), **variables)
    named = [f"{ROOT / option}" if names_a_path(option) else option for option in options]
    words = [system.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", ROOT / "pyproject.toml"]
    run(*words, "--rootdir", ROOT, *named, cwd=package_root, **variables)
    if whole:
        install("wheel")
        made = cross_wheel.make(system, folder / "build", BUILT, ROOT / "dist")
        cross_wheel.check(system, made)


@command("wasm [pytest options]", "for browsers and Node: build, test (docs/browser.md)")
def web_assembly(*options):
    """Needs apt-get, and no rights: Emscripten is unpacked below build/emscripten. The module is then in
    build/wasm/rushlight-js. Options go to pytest."""
    install("build")
    emscripten = wasm.Emscripten(BUILD / "emscripten")
    emscripten.make()
    os.environ.update(emscripten.environment)
    folder = BUILD / "wasm"
    update(folder, *wasm.options(emscripten, folder), targets=wasm.TARGETS)
    print(f"dev: {wasm.gather(folder, folder / 'rushlight-js')}")
    build(DEVELOPMENT)  # models and values to compare with are Python's
    install("test")
    run_pytest(ROOT, options or ["tests/python/wasm"])


@command(
    "sanitize [address,undefined|thread|...] [pytest options]",
    "the same in a sanitizer build: by default the first two in one; with thread, what uses threads",
)
def sanitize(*arguments):
    named = set(arguments[0].split(",")) if arguments else set()
    chosen = arguments[:1] if named and named <= {"address", "undefined", "thread"} else ()
    kind = "".join(chosen) or "address,undefined"
    pytest_options = arguments[len(chosen) :]
    folder = BUILD / f"sanitize-{kind.replace(',', '-')}"
    # Less optimization compiles in half the time and keeps the lines of a report true.
    options = ["-DRUSHLIGHT_TESTS=ON", f"-DRUSHLIGHT_SANITIZE={kind}", "-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
    if kind == "thread":
        # Libraries that are not instrumented hide from it how their threads wait for each other.
        options += NO_LIBRARIES
    package_root = build_apart(folder, *options)
    # Sanitizers open libraries in the library's place, and so lose the folders where it looks for its own.
    variables = {"UBSAN_OPTIONS": "print_stacktrace=1", "LD_LIBRARY_PATH": str(PYTHON.parents[1] / "lib")}
    install("test", "oracle")
    if "address" in kind:
        # The interpreter is not instrumented: the runtime is loaded first, and Python's leaks are no finding.
        # A size that no machine has is refused as usual.
        runtimes = [compiler_file("libasan.so"), compiler_file("libstdc++.so")]
        # Stack use after return is not looked for: its frames are aligned to 32 bytes, AVX-512 asks for 64.
        options = "detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=0"
        variables |= {"ASAN_OPTIONS": options, "LD_PRELOAD": ":".join(runtimes)}
    if kind == "thread":
        suppressions = ROOT / "tests" / "thread_sanitizer.txt"
        variables |= {
            "TSAN_OPTIONS": f"suppressions={suppressions}:exitcode=66:history_size=4",
            "LD_PRELOAD": ":".join([compiler_file("libtsan.so"), compiler_file("libstdc++.so")]),
        }
        pytest_options = pytest_options or ("-n0", *THREADED_TESTS)
    run_tests(folder, package_root, pytest_options, **variables)


@command(
    "fuzz READER|server [options]",
    "hostile files for a C++ reader, with coverage feedback (needs clang); requests to rushlight-serve",
)
def fuzz_reader(reader="", *options):
    """Readers are the folders of tests/fuzz/corpus; what is found lies in build/fuzz. Without options a
    million inputs are run; -max_total_time=600 is a time in seconds, a file's name runs that file alone.

    `server` is rushlight-serve under sanitizers (g++), with options of tests/fuzz/server_requests.py: 100,000
    malformed requests unless --cases says otherwise."""
    if reader not in (*fuzz.READERS, SERVER):
        raise Failure(f"fuzz: {reader!r} is none of {', '.join((*fuzz.READERS, SERVER))}")
    build(DEVELOPMENT)
    if reader == SERVER:
        if sanitized_server.fuzz(sanitized_server.build(DEVELOPMENT), options):
            raise Failure("fuzz: the server fails: what it said, and the request, stand above")
        return
    if fuzz.run(fuzz.build(DEVELOPMENT), reader, options):
        raise Failure(f"fuzz: the reader of {reader} fails: the input lies in build/fuzz/found")


@command(
    "wheel [--all | PYTHON ...]", "sdist and wheels in dist/, repaired and tried out (docs/releasing.md)"
)
def wheel(*options):
    machine.compiler()
    install("build", "wheel")
    machine.check_headers(PYTHON)
    root = debian_packages(LIBRARIES)
    run(PYTHON, ROOT / "tools" / "wheels.py", *options, RUSHLIGHT_DEBIAN_ROOT=root or "")


# --- what they share ----------------------------------------------------------------------------------------


def run_tests(folder, package_root, pytest_options, **variables):
    run(folder / "rushlight_tests", "--gtest_brief=1", **variables)
    run_pytest(package_root, pytest_options, **ONE_THREAD, **variables)


def run_under_the_alias(pytest_options):
    """Every Python process of these tests turns the alias on when it starts (tests/alias)."""
    chosen = any(names_a_path(option) for option in pytest_options)
    paths = () if chosen else ALIAS_TESTS
    run_pytest(
        ROOT,
        (*pytest_options, *paths),
        before=(ROOT / "tests" / "alias",),
        **ONE_THREAD,
        RUSHLIGHT_ALIAS_PASS="1",
    )


def names_a_path(option):
    return not option.startswith("-") and (ROOT / option.partition("::")[0]).exists()


def run_pytest(package_root, pytest_options, workers=None, before=(), **variables):
    options = [f"{ROOT / option}" if names_a_path(option) else option for option in pytest_options]
    paths = [] if options != list(pytest_options) else [ROOT / "tests"]
    workers = machine.usable_cores() if workers is None else workers
    # `python -m` puts the working folder first on the path: it must be the one that holds the right package.
    words = [PYTHON, "-m", "pytest", "-q", "-n", workers, "-c", ROOT / "pyproject.toml", "--rootdir", ROOT]
    search = os.pathsep.join(map(str, (*before, package_root)))
    run(*words, *options, *paths, cwd=package_root, PYTHONPATH=search, **variables)


def build_apart(folder, *options, targets=()):
    """Build beside links to the Python package, which is left as it is; return what to put on the path."""
    package = folder / "python" / "rushlight"
    machine.check_writable(package)
    package.mkdir(parents=True, exist_ok=True)
    for link in package.iterdir():
        if link.is_symlink() and (not link.exists() or link.name in BUILT):
            link.unlink()
    for source in (ROOT / "rushlight").iterdir():
        link = package / source.name
        if source.name not in (*BUILT, "__pycache__") and source.suffix != ".so" and not link.is_symlink():
            link.symlink_to(source)
    update(folder, *options, f"-DRUSHLIGHT_PACKAGE_DIR={package}", targets=targets)
    return package.parent


def compiler_file(name):
    compiler = machine.compiler()
    words = [*([compiler] if shutil.which(compiler) else compiler.split()), f"-print-file-name={name}"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    if not os.path.isabs(printed):
        raise Failure(
            f"{words[0]} has no {name}: install its sanitizers (Debian and Ubuntu: apt install libasan8)"
        )
    return os.path.realpath(printed)


def git(*words):
    """Lines that git prints."""
    try:
        ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        raise Failure("no git: install it, or name the files")
    if ran.returncode:
        raise Failure(f"git {words[0]}: {ran.stderr.strip().splitlines()[0]}; name the files instead")
    return ran.stdout.splitlines()


def sources(*patterns):
    return [ROOT / name for name in git("ls-files", *patterns) if not name.startswith("third_party/")]
