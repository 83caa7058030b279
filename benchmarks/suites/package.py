"""What a release costs: a wheel built from clean, without a compiler cache, its time and its size."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def copy_sources(root, target):
    """What version control knows, edits included: no earlier build's products."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    for name in filter(lambda name: name and (root / name).exists(), listed.stdout.split("\0")):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, copy)


def sample(module, plan, root):
    """Figures of ours; PyTorch's build is nothing that one repeats in between."""
    if module != "rushlight" or plan.tiny:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        copy_sources(root, source)
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source],
            env={**os.environ, "CCACHE_DISABLE": "1"},
            check=True,
        )
        seconds = time.perf_counter() - start
        (wheel,) = Path(folder).glob("*.whl")
        return {"build time": (seconds, "s"), "wheel size": (wheel.stat().st_size / 2**20, "MB")}
