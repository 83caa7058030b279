"""What a release costs: a wheel built from clean, without a compiler cache, its time and its size."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def sample(module, plan, root):
    """Figures of ours; PyTorch's build is nothing that one repeats in between."""
    if module != "rushlight" or plan.tiny:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        skipped = shutil.ignore_patterns("build*", ".venv*", ".git", "*.so", "__pycache__", "lib")
        shutil.copytree(
            root, source, ignore=lambda path, names: skipped(path, names) if path == str(root) else ()
        )
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source],
            env={**os.environ, "CCACHE_DISABLE": "1"},
            check=True,
        )
        seconds = time.perf_counter() - start
        (wheel,) = Path(folder).glob("*.whl")
        return {"build time": (seconds, "s"), "wheel size": (wheel.stat().st_size / 2**20, "MB")}
