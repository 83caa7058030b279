"""A part of tests/fuzz/python_readers.py: its corpus, some hundred mutations, and what longer runs found."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("reader", ["legacy", "archive", "torchscript", "pt2", "index", "onnx"])
def test_hostile_files_are_read_or_refused(reader):
    if reader == "onnx":
        pytest.importorskip("onnx")
    variables = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    command = [sys.executable, ROOT / "tests/fuzz/python_readers.py", reader, "--blind", "200"]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
    inputs, refused, found = map(
        int, re.search(r"(\d+) inputs, (\d+) refused, (\d+) found", ran.stdout).groups()
    )
    assert inputs == 200 and refused > 20 and found == 0


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_older_files_of_sparse_tensors(layout):
    """Their indices come behind what says where they lie."""
    made = torch.arange(6.0).reshape(2, 3).to_sparse(layout=getattr(torch, layout))
    stream = io.BytesIO()
    torch.save({"a": made, "b": [made]}, stream, _use_new_zipfile_serialization=False)
    stream.seek(0)
    found = torch.load(stream)["a"]
    assert found.layout == made.layout and torch.equal(found.to_dense(), made.to_dense())
    bad = bytearray(stream.getvalue())
    at = bad.rindex((1).to_bytes(8, "little"))  # one of the indices, or of the bounds of rows
    bad[at : at + 8] = (1 << 40).to_bytes(8, "little")
    with pytest.raises(RuntimeError):
        torch.load(io.BytesIO(bytes(bad)))
