"""`python -m rushlight demo`: the whole run, and what it says about bad input."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight

ROOT = Path(rushlight.__file__).parents[1]  # what a child needs on its path


def demo(*arguments, path=str(ROOT)):
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, "-m", "rushlight", "demo", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "made" / "by the demo"
    result = demo("--output", folder, "--epochs", 8)
    assert result.returncode == 0, result.stderr
    return folder, result.stdout


def test_reaches_the_goal_on_held_out_images(trained):
    _, printed = trained
    assert float(re.search(r"held-out accuracy ([\d.]+)%", printed)[1]) >= 98
    assert printed.count("epoch ") == 8


def test_saves_a_model_that_predicts_the_same(trained):
    folder, printed = trained
    assert "the same predictions for all 359 held-out images" in printed
    accuracy = re.search(r"held-out accuracy ([\d.]+%)", printed)[1]
    assert f"accuracy {accuracy}" in demo("--check", folder / "digits.pt").stdout


def test_draws_pictures(trained):
    pytest.importorskip("matplotlib")
    folder, _ = trained
    for name in ("curves.png", "predictions.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG\r\n")


def test_says_what_is_missing_without_matplotlib(tmp_path):
    (tmp_path / "matplotlib.py").write_text("raise ModuleNotFoundError('No module named matplotlib')")
    result = demo("--epochs", 1, "--output", tmp_path / "out", path=f"{tmp_path}{os.pathsep}{ROOT}")
    assert result.returncode == 0, result.stderr
    assert "no pictures: matplotlib is not installed (pip install matplotlib)" in result.stdout
    assert not list((tmp_path / "out").glob("*.png"))


def assert_one_line(result, *words):
    assert result.returncode == 2
    assert result.stderr.startswith("rushlight demo: ") and result.stderr.count("\n") == 1
    assert all(word in result.stderr for word in words), result.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--no-such-option"], ["unrecognized arguments: --no-such-option", "--help"]),
        (["--epochs", "0"], ["--epochs", "positive int", "'0'"]),
        (["--batch-size", "many"], ["--batch-size", "'many'"]),
        (["--learning-rate", "nan"], ["--learning-rate", "positive float"]),
        (["--check", "/no/such/file"], ["can't read /no/such/file: No such file or directory"]),
    ],
)
def test_bad_option(arguments, words):
    assert_one_line(demo(*arguments), *words)


def test_unwritable_folder(tmp_path):
    (tmp_path / "file").write_text("")
    assert_one_line(
        demo("--output", tmp_path / "file" / "out"), "can't write to the folder", "Not a directory"
    )


@pytest.mark.parametrize("damage", ["cut", "flipped", "text", "empty"])
def test_damaged_model(trained, tmp_path, damage):
    content = bytearray((trained[0] / "digits.pt").read_bytes())
    if damage == "flipped":
        middle = len(content) // 2
        content[middle : middle + 64] = bytes(byte ^ 255 for byte in content[middle : middle + 64])
    path = tmp_path / "damaged.pt"
    path.write_bytes(
        {"cut": content[:3000], "flipped": content, "text": b"not a model\n", "empty": b""}[damage]
    )
    assert_one_line(demo("--check", path), "damaged.pt is not a model saved by this demo, or it is damaged")


def test_help_explains_every_option():
    printed = demo("--help").stdout
    assert all(f"--{name}" in printed for name in ("output", "epochs", "batch-size", "learning-rate", "seed"))


def test_same_seed_gives_the_same_split():
    import rushlight as torch
    from rushlight.demo import digits

    (train, held_out), (again, _) = digits.split(seed=3), digits.split(seed=3)
    assert (len(train), len(held_out)) == (1438, 359)
    assert torch.equal(torch.as_tensor(list(train.indices)), torch.as_tensor(list(again.indices)))
    assert not set(map(int, train.indices)) & set(map(int, held_out.indices))
