"""What `./dev cross` needs beside a build: compilers, another processor's system and packages, an emulator.

All of it lies below the build folder, unpacked from Debian's packages and PyPI's wheels; the machine's own
packages stay as they are. Stamps say what is there, as in .venv.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from .environment import NETWORK_HELP, requirements
from .paths import PYTHON, ROOT
from .problems import Failure, common
from .process import Log, watch
from .progress import Progress

TRIPLET = "aarch64-linux-gnu"
DEBIAN = "arm64"
# The interpreter of Debian's release, and what its headers and PyPI's wheels call it.
VERSION, SOABI = "3.11", f"cpython-311-{TRIPLET}"
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux2014_aarch64")
MEGABYTES = 20  # of a wheel
# C++ tests and Python's, which compare operators with what PyTorch gave on x86; some families of these.
# (One C++ test starts its own program, which the machine cannot run.)
ALL = "-Parallel.ReadsTheEnvironment", ("tests/python/ops/test_ops.py", "-k", "test_values"), {}
QUICK = f"{ALL[0]}:Api*:Cuda*:Own/*:ChunkDataset*:DataLoader*", ALL[1], {"RUSHLIGHT_TEST_FAMILY": "[mnrsv]*"}
TARGETS = ("rushlight", "_C", "rushlight_run", "rushlight_tests")
TESTS = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "mpmath", "numpy")
COMPILERS = {f"{TRIPLET}-g++": f"g++-{TRIPLET}", "qemu-aarch64-static": "qemu-user-static"}


class System:
    """The other processor's system in a folder: `root` from Debian, `packages` from PyPI, `include` with
    Python's headers alone, `tools` with compiler and emulator where the machine has none."""

    def __init__(self, folder):
        self.folder = folder
        self.root, self.packages = folder / "root", folder / "packages"
        self.include, self.tools = folder / "include", folder / "tools"
        folder.mkdir(parents=True, exist_ok=True)

    def make(self):
        missing = [package for program, package in COMPILERS.items() if not shutil.which(program)]
        if missing:
            self._unpack("compiler and emulator", missing, self.tools)
        # Scripts of the linker name its libraries by their place in the system.
        self.sysroot = self.tools if f"g++-{TRIPLET}" in missing else None
        usr = self.tools / "usr"
        _prepend("PATH", [usr / "bin"], os.defpath)
        # The assembler's own libraries, which the system's loader does not find in this folder.
        _prepend("LD_LIBRARY_PATH", sorted((usr / "lib").glob("*-linux-gnu")))
        self._unpack(f"Debian's Python for {DEBIAN}", [f"python{VERSION}", "libstdc++6"], self.root, DEBIAN)
        self._headers()
        self._wheels()
        self._program()

    @property
    def emulator(self):
        # As many servers; QEMU's own choice has matrix instructions (SME) with which OpenBLAS 0.3.34 fails.
        return [shutil.which("qemu-aarch64-static"), "-cpu", "neoverse-n1", "-L", str(self.root)]

    def _unpack(self, what, packages, folder, architecture=None):
        stamp = self.folder / f"unpacked-{folder.name}"
        if stamp.exists() and stamp.read_text() == " ".join(packages):
            return
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise Failure(f"no apt-get: install {' '.join(packages)} by the means of this system")
        shutil.rmtree(folder, ignore_errors=True)
        with Apt(self.folder / "apt", what, architecture) as apt:
            for archive in apt.fetch(packages):
                apt.run("dpkg", "-x", archive, folder)
        stamp.write_text(" ".join(packages))

    def _headers(self):
        """Python's headers, without those of the C library, which are the cross compiler's."""
        stamp = self.folder / "unpacked-include"
        if stamp.exists():
            return
        shutil.rmtree(self.include, ignore_errors=True)
        unpacked = self.folder / "headers"
        with Apt(self.folder / "apt", "Python's headers", DEBIAN) as apt:
            for archive in apt.fetch([f"libpython{VERSION}-dev"], alone=True):
                apt.run("dpkg", "-x", archive, unpacked)
        found = unpacked / "usr" / "include"
        shutil.copytree(found / f"python{VERSION}", self.include)
        shutil.copytree(found / TRIPLET, self.include / TRIPLET)
        shutil.rmtree(unpacked)
        stamp.touch()

    def _wheels(self):
        """The libraries to link, and what the tests import."""
        wanted = [name.partition(";")[0].strip() for name in requirements("build") if "openblas" in name]
        wanted += TESTS
        stamp = self.folder / "installed-packages"
        if stamp.exists() and stamp.read_text() == " ".join(wanted):
            return
        shutil.rmtree(self.packages, ignore_errors=True)
        platforms = [f"--platform={name}" for name in PLATFORMS]
        options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:"]
        options += [*platforms, f"--python-version={VERSION}", "--target", self.packages]
        _watched(
            "installing packages",
            self.folder / "pip.log",
            [PYTHON, "-m", "pip", "install", *options, *wanted],
        )
        stamp.write_text(" ".join(wanted))

    def _program(self):
        """A program that is Python to others: what tests start by sys.executable is emulated too."""
        self.python = self.folder / "bin" / "python"
        self.python.parent.mkdir(exist_ok=True)
        own = self.root / "usr" / "bin" / f"python{VERSION}"
        words = " ".join(f'"{word}"' for word in (*self.emulator, own))
        self.python.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        self.python.chmod(0o755)
        named = f"import sys\n\nsys.executable = sys._base_executable = {str(self.python)!r}\n"
        (self.packages / "sitecustomize.py").write_text(named)


def _prepend(variable, folders, default=""):
    words = [*map(str, folders), os.environ.get(variable, default)]
    if words := [word for word in words if word]:  # an empty one is the folder where one is
        os.environ[variable] = os.pathsep.join(words)


class Apt:
    """apt-get with lists of its own: of another architecture none is installed, and everything is needed.
    So it is of another release."""

    def __init__(self, work, what, architecture, release=None):
        self.work, self.architecture, self.release = work, architecture, release
        self.progress = Progress(f"unpacking {what}")

    def __enter__(self):
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("lists/partial", "archives/partial"):
            (self.work / name).mkdir(parents=True)
        self.log = Log(self.work.parent / "apt.log").__enter__()
        return self

    def __exit__(self, *_):
        self.progress.clear()
        self.log.__exit__()
        shutil.rmtree(self.work, ignore_errors=True)

    def run(self, *command):
        if watch(command, self.log.add, self.progress.tick, self.work):
            text = self.log.text()
            raise Failure(common(text, self.work) or f"{command[0]} failed ({self.log.path}); {NETWORK_HELP}")

    def fetch(self, packages, alone=False):
        """Archives of packages and, unless `alone`, of what they need."""
        settings = {"Dir::State::lists": self.work / "lists", "Dir::Cache": self.work}
        settings |= {"APT::Sandbox::User": "root", "Acquire::Retries": "1", "Acquire::http::Timeout": "20"}
        if self.architecture:
            (self.work / "status").touch()
            settings |= {"Dir::State::status": self.work / "status"}
            settings |= dict.fromkeys(("APT::Architecture", "APT::Architectures"), self.architecture)
        if self.release:
            sources = self.work / "sources.list"
            sources.write_text(f"deb http://deb.debian.org/debian {self.release} main\n")
            settings |= {"Dir::Etc::sourcelist": sources, "Dir::Etc::sourceparts": "/dev/null"}
        apt = ["apt-get", *(word for pair in settings.items() for word in ("-o", "{}={}".format(*pair)))]
        self.run(*apt, "update")
        names = list(packages)
        if not alone:
            what = ["install", "--print-uris", "--yes", "-qq", "--no-install-recommends", *packages]
            printed = subprocess.run([*apt, *what], capture_output=True, text=True).stdout
            names = re.findall(r"^'\S+' ([^\s_]+)_\S+\.deb ", printed, re.M)
            if not names:
                raise Failure(f"apt-get knows no {' '.join(packages)}; {NETWORK_HELP}")
        self.run(*apt, "download", *names)
        return sorted(self.work.glob("*.deb"))


def _watched(title, log_path, command):
    progress = Progress(title)
    try:
        with Log(log_path) as log:
            status = watch(command, log.add, progress.tick)
    finally:
        progress.clear()
    if status:
        raise Failure(common(log.text()) or f"pip failed ({log_path}); {NETWORK_HELP}")


def options(system):
    """What CMake is told of the other system."""
    return (
        f"-DCMAKE_SYSROOT={system.sysroot or ''}",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake' / 'toolchains' / f'{TRIPLET}.cmake'}",
        f"-DPython_INCLUDE_DIR={system.include}",
        f"-DRUSHLIGHT_SOABI={SOABI}",
        f"-DRUSHLIGHT_WHEELS_PATH={system.packages}",
        # GNU's linker for another system does not follow the paths that librushlight.so holds.
        f"-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,{system.packages / 'scipy_openblas32' / 'lib'}",
        "-DRUSHLIGHT_CUDA=off",
        "-DRUSHLIGHT_GLOO=off",
        "-DRUSHLIGHT_TESTS=ON",
    )


def variables(system, package_root):
    """The environment of a program that runs under the emulator."""
    search = os.pathsep.join(map(str, (package_root, system.packages)))
    return {"PYTHONPATH": search, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}


def emulated(system, program: Path, *words):
    return [*system.emulator, str(program), *map(str, words)]
