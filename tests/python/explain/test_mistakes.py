"""The mistakes of docs/errors.md: what the page says of each is what comes of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "tools"))
import print_errors  # noqa: E402

CASES = print_errors.cases(print_errors.PAGE.read_text())
# The text itself, PyTorch's or Python's, says what to do.
SPEAK_FOR_THEMSELVES = {
    "A checkpoint with a class of the program's",
    "A dataset without a length",
    "A file that is not there",
    "A missing attribute",
    "A file with the system's functions",
    "A truncated checkpoint",
    "A wrong argument name",
    "An empty file",
    "An inference tensor in training",
    "An unknown function",
    "An unknown keyword",
    "An unknown method",
    "LBFGS without a closure",
    "Minus of booleans",
    "Negation of booleans",
    "Negative step",
    "Read-only NumPy memory that is written to",
    "Saving a lambda",
}

SAID_OTHERWISE_BY_3_14 = {"An error in a worker of a loader", "Saving a lambda"}


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 prints no notes")
@pytest.mark.parametrize(("title", "code", "says"), CASES, ids=[title for title, _, _ in CASES])
def test_mistake(title, code, says):
    if title in SAID_OTHERWISE_BY_3_14 and sys.version_info >= (3, 14):
        pytest.skip("these are Python 3.14's words, or its way of starting processes")
    got = print_errors.run(code)
    assert print_errors.same(says, got), got
    assert "fix: " in got or "Warning: " in got or title in SPEAK_FOR_THEMSELVES


def test_the_page_has_them_all():
    assert len(CASES) == print_errors.PAGE.read_text().count("\n### ") >= 150


def test_notes_are_there_once():
    import rushlight as torch

    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 2)))
    with pytest.raises(RuntimeError) as caught:
        model(torch.randn(1, 3))
    notes = caught.value.__notes__
    assert [note.split(":")[0] for note in notes] == ["in linear(input", "fix", "in module 0.0 (Linear)"]


def test_notes_are_part_of_the_text_when_asked(monkeypatch):
    import rushlight as torch

    monkeypatch.setenv("RUSHLIGHT_ERRORS", "full")
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 2)))
    with pytest.raises(RuntimeError) as caught:
        model(torch.randn(1, 3))
    assert not hasattr(caught.value, "__notes__")
    lines = str(caught.value).split("\n")
    assert lines[0] == "mat1 and mat2 shapes cannot be multiplied (1x3 and 4x2)"
    assert [line.split(":")[0] for line in lines[1:]] == ["in linear(input", "fix", "in module 0.0 (Linear)"]
    with pytest.raises(KeyError) as caught:  # whose text is not what it was given
        torch.nn.ModuleDict()["x"]
    assert str(caught.value) == "'x'" and caught.value.__notes__ == ["fix: the keys are []"]


def test_an_error_of_the_program_keeps_to_itself():
    import rushlight as torch

    class Fails(torch.nn.Module):
        def forward(self):
            raise KeyError("no advice for this")

    with pytest.raises(KeyError) as caught:
        Fails()()
    assert caught.value.__notes__ == ["in module Fails"]
