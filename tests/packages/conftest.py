"""Runs an unmodified PyTorch program in a child process, bounded in time."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]
SECONDS = 240
ON_PYTORCH = os.environ.get("RUSHLIGHT_PACKAGES_ON") == "pytorch"


def packages_of(program):
    """The top-level modules that a program imports anywhere, less those that Rushlight stands for."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text(), str(program))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - (set() if ON_PYTORCH else {"torch"})


@pytest.fixture
def run_program(tmp_path):
    """Call with a program's path (and its arguments): skips, fails with its output, or returns its stdout."""

    def run(program, *arguments):
        missing = sorted(name for name in packages_of(program) if importlib.util.find_spec(name) is None)
        if missing:
            pytest.skip(f"{', '.join(missing)}: not installed (./dev test installs the group 'packages')")
        through = [] if ON_PYTORCH else ["-m", "rushlight"]
        # A folder of its own for what the program writes; one thread, since the test workers fill the cores.
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        result = subprocess.run(
            [sys.executable, *through, str(program), *map(str, arguments)],
            env=environment,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert result.returncode == 0, f"{program.name}: {result.stdout[-2000:]}\n{result.stderr[-6000:]}"
        return result.stdout

    return run
