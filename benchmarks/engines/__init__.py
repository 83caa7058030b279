"""Models as files for the suite `engines`: ours, and ONNX for the others, exported from one program.

python -m benchmarks.engines NAME BATCH measured|tiny FOLDER
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "build" / "benchmarks" / "engines"
MODELS = ("ResNet-50", "MobileNetV2", "VGG-19", "U-Net", "GPT", "BERT", "GNMT")
IN_BYTES = ("ResNet-50", "MobileNetV2")
INT8 = " int8"  # behind the name of a model whose layers are of integers
BATCHES = (1, 8)


def rows() -> Iterator[tuple[str, str, int]]:
    """(row, model, batch)"""
    for model in (*MODELS, *(name + INT8 for name in IN_BYTES)):
        for batch in BATCHES:
            yield f"{model}/batch {batch}", model, batch


def files_of(model: str, batch: int, tiny: bool) -> Path:
    """The folder of model.rl, model.onnx and inputs.npz; a process of its own exports what is old."""
    folder = FOLDER / f"{model}-{batch}{'-tiny' if tiny else ''}"
    done = folder / "inputs.npz"  # is written last
    if not done.exists() or done.stat().st_mtime < newest_source():
        arguments = [model, str(batch), "tiny" if tiny else "measured", str(folder)]
        subprocess.run([sys.executable, "-m", "benchmarks.engines", *arguments], check=True, cwd=ROOT)
    return folder


def newest_source() -> float:
    folders = ("benchmarks/engines", "benchmarks/models", "rushlight/export", "rushlight/onnx", "src/jit")
    return max(path.stat().st_mtime for folder in folders for path in (ROOT / folder).rglob("*.[pc]*"))
