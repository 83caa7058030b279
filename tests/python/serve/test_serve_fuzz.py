"""The server's fuzzers, for a short time: `tests/fuzz/server_requests.py` and `overloaded_server.py`."""

import pathlib
import subprocess
import sys

import pytest
from serving import needs_server

ROOT = pathlib.Path(__file__).resolve().parents[3]

pytestmark = needs_server


@pytest.mark.parametrize(
    ("program", "arguments", "printed"),
    [
        ("server_requests.py", ["--cases", "600"], "600 requests"),
        ("overloaded_server.py", ["--minutes", "0.1"], "held"),
    ],
)
def test_a_short_run_finds_nothing(program, arguments, printed):
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "fuzz" / program, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and printed in done.stdout, done.stdout + done.stderr
