"""rushlight-serve under the address and undefined sanitizers, for `./dev fuzz server`.

Compiled with them is what a request passes through, sockets included, and the allocator, so that each
tensor is a block of malloc's. Everything else is the objects of the build in place, linked again.
"""

import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

from . import machine
from .paths import PYTHON, ROOT, VENV
from .problems import Failure

UNITS = re.compile(r"(/src/(serve|generation|io)/\w+|/serve_page|/src/core/cpu_allocator)\.cpp$")
FUZZ = ROOT / "tests" / "fuzz"
ALLOCATOR = "cpu_allocator"
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Headers must not see the sanitizer, or the two halves would not agree on what objects look like.
FLAGS = ["-O1", "-g1", "-w", "-fno-omit-frame-pointer", "-D_GLIBCXX_ASSERTIONS", *SANITIZERS]
HIDDEN = "-U__SANITIZE_ADDRESS__"
# Flags that are of another object or of a precompiled header, and how many words follow.
LEFT_OUT = {"-include": 1, "-MF": 1, "-MT": 1, "-MD": 0, "-o": 1, "-Winvalid-pch": 0, "-fpch-preprocess": 0}


def build(development):
    """The program; what did not change comes from the compiler's cache."""
    shown = subprocess.run(
        [str(VENV / "bin" / "ninja"), "-C", str(development), "-t", "commands", "rushlight_serve"],
        capture_output=True,
        text=True,
    )
    if shown.returncode:
        raise Failure("fuzz: the build in place has no rushlight-serve: install libboost-dev and build again")
    commands = [shlex.split(line.replace(r"\$", "$")) for line in shown.stdout.splitlines()]
    folder = development.parent / "fuzz" / "server"
    for name in ("bin", "lib", "objects"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    units = [words for words in commands if UNITS.search(words[-1])]
    made = {words[words.index("-o") + 1]: str(folder / "objects" / object_name(words[-1])) for words in units}

    def compile_unit(words):
        target = made[words[words.index("-o") + 1]]
        hidden = [] if ALLOCATOR in words[-1] else [HIDDEN]
        run([*kept(words[:-2]), *FLAGS, *hidden, "-o", target, *words[-2:]], development, words[-1])

    with ThreadPoolExecutor(machine.jobs()) as pool:
        list(pool.map(compile_unit, units))
    for file in (ROOT / "rushlight" / "lib").iterdir():
        link = folder / "lib" / file.name
        if file.name != "librushlight.so" and not link.is_symlink():
            link.symlink_to(file)
    for name in ("lib/librushlight.so", "bin/rushlight-serve"):
        made[str(ROOT / "rushlight" / name)] = str(folder / name)
        line = next(line for line in map(link_of, commands) if str(ROOT / "rushlight" / name) in line)
        run([*(made.get(word, word) for word in line), *SANITIZERS], development, name)
    return folder / "bin" / "rushlight-serve"


def object_name(file):
    return re.sub(r"\W+", "_", os.path.relpath(file, ROOT)) + ".o"


def kept(words):
    """A compiler's command without what LEFT_OUT names."""
    found, words = [], iter(words)
    for word in words:
        if word in LEFT_OUT:
            for _ in range(LEFT_OUT[word]):
                next(words)
        else:
            found.append(word)
    return found


def link_of(words):
    """The linker's part of a command `: && link && what follows it`; nothing of others."""
    if words[:2] != [":", "&&"]:
        return []
    return words[2 : words.index("&&", 2)]


def run(line, folder, what):
    ran = subprocess.run(line, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise Failure(f"fuzz: {what} does not build:\n{ran.stderr[-3000:]}")


def fuzz(program, options):
    """The exit status of tests/fuzz/server_requests.py; a sanitizer's report ends the server and the run."""
    variables = {
        "ASAN_OPTIONS": "allocator_may_return_null=1:detect_stack_use_after_return=0",
        "LSAN_OPTIONS": f"suppressions={FUZZ / 'leak_sanitizer.txt'}:print_suppressions=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    given = options or ["--cases", "100000"]
    line = [str(PYTHON), str(FUZZ / "server_requests.py"), "--program", str(program), *given]
    return subprocess.run(line, env={**os.environ, **variables}).returncode
