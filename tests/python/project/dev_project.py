"""A small project in the place of ours, with `./dev` and an environment that holds what a build needs."""

import importlib
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = Path(sysconfig.get_path("purelib"))

CMAKE = """
cmake_minimum_required(VERSION 3.25)
set(CMAKE_CXX_COMPILER_FORCED ON)  # looks into the compiler less closely, which is slow
project(small LANGUAGES CXX)
if(PROBLEM)
  message(FATAL_ERROR "${PROBLEM}")
endif()
file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/*.cpp")
add_library(small OBJECT ${sources})
target_compile_options(small PRIVATE -Wall)
"""


def module(name):
    """A module of `./dev`."""
    tools = str(ROOT / "tools")
    if tools not in sys.path:
        sys.path.append(tools)
    return importlib.import_module(f"dev.{name}")


class Project:
    """A copy of `./dev` with a project of four files and a .venv that holds what the build needs."""

    def __init__(self, root):
        self.root = root
        (root / "src").mkdir(parents=True)
        (root / "rushlight").mkdir()
        shutil.copy(ROOT / "dev", root)
        shutil.copy(ROOT / "pyproject.toml", root)
        shutil.copytree(ROOT / "requirements", root / "requirements")
        shutil.copytree(
            ROOT / "tools" / "dev", root / "tools" / "dev", ignore=shutil.ignore_patterns("__pycache__")
        )
        (root / "CMakeLists.txt").write_text(CMAKE)
        for name in "abcd":
            self.source(name, f"int {name}() {{ return 1; }}\n")
        self.make_venv()

    def source(self, name, text):
        (self.root / "src" / f"{name}.cpp").write_text(text)

    def make_venv(self):
        """As `./dev` leaves it after installing packages, which are those of the tests' environment."""
        venv = self.root / ".venv"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        (site / "borrowed.pth").write_text(f"{PACKAGES}\n")
        (venv / "bin" / "pip").write_text(f"#!{venv}/bin/python\n")
        (venv / "bin" / "ninja").symlink_to(Path(sys.prefix) / "bin" / "ninja")
        (venv / "made").touch()
        for package in ("libgloo-dev", "libboost-dev", "libssl-dev"):
            (venv / f"installed-{package}").touch()
        for group in ("build", "demo", "test"):
            (venv / f"group-{group}").write_text(module("environment").digest(group))

    def pinned(self):
        """Whether the build's packages come from requirements/, on this machine."""
        environment = module("environment")
        return environment.LOCK in environment.asked_for("build")

    def command(self, *words):
        return [sys.executable, str(self.root / "dev"), *words]

    def run(self, *words, **variables):
        environment = {**os.environ, "CCACHE_DISABLE": "1", **variables}
        environment = {name: value for name, value in environment.items() if value is not None}
        ran = subprocess.run(
            self.command(*words), capture_output=True, text=True, env=environment, timeout=120, cwd=self.root
        )
        assert "Traceback" not in ran.stdout + ran.stderr, ran.stderr
        return ran

    def fails(self, *words, **variables):
        """Run what must fail; the one line that says why."""
        ran = self.run(*words, **variables)
        assert ran.returncode != 0, ran.stdout
        (line,) = [line for line in ran.stderr.splitlines() if line.startswith("dev: ")]
        assert len(ran.stderr.strip().splitlines()) == 1, ran.stderr
        return line

    def builds(self, *words, **variables):
        ran = self.run("build", *words, **variables)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout

    def objects(self):
        return {path.name: path.stat().st_mtime_ns for path in (self.root / "build/dev").rglob("*.o")}

    def fake(self, name, text):
        """A program that stands before all others on PATH; the answer is that PATH."""
        folder = self.root / "fakes"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
        return f"{folder}{os.pathsep}{os.environ['PATH']}"
