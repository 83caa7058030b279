"""A part of tests/fuzz/failing_files.py, which runs all of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.distributed import checkpoint

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(not shutil.which(os.environ.get("CXX", "c++")), reason="no compiler for what fails")
def test_files_are_the_former_or_the_new_one_wherever_a_call_fails():
    command = [sys.executable, ROOT / "tests/fuzz/failing_files.py", "--points", "4"]
    variables = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stdout[-10000:] + ran.stderr[-5000:]
    failures, found = map(int, re.search(r"(\d+) failures of files, (\d+) found", ran.stdout).groups())
    assert failures > 200 and found == 0


def test_an_unreadable_file_is_not_called_damaged(tmp_path):
    class Failing:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def read(self, *n):
            raise OSError(5, "Input/output error")

        readinto = readline = read

    torch.save([1], tmp_path / "x", _use_new_zipfile_serialization=False)
    with open(tmp_path / "x", "rb") as file, pytest.raises(OSError, match="Input/output error"):
        torch.load(Failing(file))


def test_a_checkpoint_is_replaced_when_the_new_one_is_complete(tmp_path):
    for number in range(3):
        checkpoint.save({"x": torch.full((3,), float(number))}, checkpoint_id=tmp_path, no_dist=True)
        assert len(list(tmp_path.glob("*.distcp"))) == 1
        state = {"x": torch.zeros(3)}
        checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
        assert state["x"].tolist() == [number] * 3

    class Refuses:
        def __reduce__(self):
            raise RuntimeError("no")

    with pytest.raises(Exception, match="no"):
        checkpoint.save({"x": torch.ones(3), "y": Refuses()}, checkpoint_id=tmp_path, no_dist=True)
    checkpoint.load(state, checkpoint_id=tmp_path, no_dist=True)
    assert state["x"].tolist() == [2] * 3


def test_links_modes_and_pipes_stay_what_they_are(tmp_path):
    from rushlight.export import load_file, save_file

    zero = torch.zeros(2)
    (tmp_path / "real.rl").write_bytes(b"")
    (tmp_path / "real.rl").chmod(0o640)
    (tmp_path / "link.rl").symlink_to("real.rl")
    save_file(torch.nn.Identity(), str(tmp_path / "link.rl"), (zero,))
    assert (tmp_path / "link.rl").is_symlink()
    assert (tmp_path / "real.rl").stat().st_mode & 0o777 == 0o640
    assert load_file(str(tmp_path / "real.rl"))(zero).tolist() == [0, 0]
    save_file(torch.nn.Identity(), "/dev/null", (zero,))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.rl", "real.rl"]
