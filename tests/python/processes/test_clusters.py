"""The programs of docs/processes.md for Ray and Dask, as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rushlight import distributed as dist

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(240),
]


@pytest.mark.parametrize("package", ["ray", "dask.distributed"])
def test_recipes(package, tmp_path):
    """Both ranks end with the same weights, and no process is left."""
    if package == "ray":
        pytest.importorskip("ray")
    else:
        pytest.importorskip("distributed")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "processes.md").read_text(), re.DOTALL)
    (code,) = (block for block in blocks if block.startswith((f"import {package}", f"from {package}")))
    program = tmp_path / "program.py"
    program.write_text(code)
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    run = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", "GLOO_SOCKET_IFNAME": "lo"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert run.returncode == 0, run.stderr
    weights = re.search(r"weights: (\S+) (\S+)", run.stdout)
    assert weights and weights[1] == weights[2], run.stdout
