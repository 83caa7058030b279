"""Fuzzers with coverage feedback for what reads files in C++ (tests/fuzz/coverage.cpp), by clang's libFuzzer.

Only the readers are compiled with sanitizers and counters; the rest is the library of the build in place.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from . import machine
from .paths import ROOT
from .problems import Failure

SOURCE = ROOT / "tests" / "fuzz" / "coverage.cpp"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
READERS = sorted(folder.name for folder in CORPUS.iterdir()) if CORPUS.exists() else []
UNITS = re.compile(
    r"/src/(io/(archive|inflate|json|model_file|npy|safetensors)"
    r"|frontend/(pickle|serialize|torchscript/(lexer|parser|program|reader|text|types))"
    r"|generation/(added_tokens|byte_pairs|normalize|pattern|tokenizer|unicode)"
    r"|jit/(lexer|parse)|serve/(chat_template|template_parser|template_values))\.cpp$"
)
# Types of the library, which is compiled without sanitizers, are not looked at.
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize=vptr,function", "-fno-sanitize-recover=all"]
FLAGS = ["-O1", "-g1", "-fno-omit-frame-pointer", "-w", "-std=c++20", "-fPIC", *SANITIZERS]


def compiler():
    for name in ("clang++", *(f"clang++-{n}" for n in range(22, 15, -1))):
        if shutil.which(name):
            return name
    raise Failure("fuzz: no clang++ was found (Debian and Ubuntu: apt install clang-19 libclang-rt-19-dev)")


def build(development):
    """The fuzzer of all readers; what did not change is not compiled again."""
    folder = development.parent / "fuzz"
    folder.mkdir(parents=True, exist_ok=True)
    program = compiler()
    commands = json.loads((development / "compile_commands.json").read_text())
    units = {c["file"]: c["command"] for c in commands if UNITS.search(c["file"])}
    if not units:
        raise Failure("fuzz: build/dev has no compile_commands.json of this library: run `./dev build` first")
    given = [name for c in units.values() for name in words(c)]
    folders = dict.fromkeys(name for name in given if name.startswith("-I"))
    units = {str(SOURCE): shlex.join(["-DRUSHLIGHT_FRONTEND", *folders])} | units
    objects, launcher = [], [shutil.which("ccache")] if shutil.which("ccache") else []

    def compile_unit(item):
        file, command = item
        target = folder / (re.sub(r"\W+", "_", os.path.relpath(file, ROOT)) + ".o")
        flags = [*words(command), *FLAGS, "-fsanitize=fuzzer-no-link"]
        line = [*launcher, program, *flags, "-c", file, "-o", str(target)]
        ran = subprocess.run(line, cwd=development, capture_output=True, text=True)
        if ran.returncode:
            raise Failure(f"fuzz: {file} does not compile:\n{ran.stderr[-3000:]}")
        return str(target)

    with ThreadPoolExecutor(machine.jobs()) as pool:
        objects = list(pool.map(compile_unit, units.items()))
    library = ROOT / "rushlight" / "lib"
    made = folder / "rushlight-fuzz"
    line = [program, *objects, *SANITIZERS, "-fsanitize=fuzzer", f"-L{library}", "-lrushlight", "-rdynamic"]
    line += [f"-Wl,-rpath,{library}", "-Wl,--disable-new-dtags", "-o", str(made)]
    ran = subprocess.run(line, capture_output=True, text=True)
    if ran.returncode:
        raise Failure(f"fuzz: the program does not link:\n{ran.stderr[-3000:]}")
    return made


def words(command):
    """What a unit's command says of names and folders."""
    given, found = shlex.split(command), []
    for at, word in enumerate(given):
        if word.startswith(("-D", "-I")):
            found.append(word)
        elif word == "-isystem":
            found.append(f"-I{given[at + 1]}")
    return found


def run(program, reader, options):
    """Run on a copy of the corpus, to which libFuzzer adds what it finds."""
    kept = program.parent / "corpus" / reader
    kept.mkdir(parents=True, exist_ok=True)
    found = program.parent / "found"
    found.mkdir(exist_ok=True)
    variables = {
        "RUSHLIGHT_READER": reader,
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
        "LSAN_OPTIONS": f"suppressions={SOURCE.with_name('leak_sanitizer.txt')}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    limits = ["-rss_limit_mb=4096", "-malloc_limit_mb=2048", "-timeout=20", "-max_len=20000"]
    given = options or ["-runs=1000000"]
    line = [str(program), *limits, f"-artifact_prefix={found}/", *given, str(kept), str(CORPUS / reader)]
    return subprocess.run(line, env={**os.environ, **variables}).returncode
