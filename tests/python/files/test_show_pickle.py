"""What `torch.utils.show_pickle` shows of files, without making any of it."""

import io
import os
import pickle
import subprocess
import sys
import zipfile

import pytest

import rushlight as torch
from rushlight.utils import show_pickle


class Kept:
    def __reduce__(self):
        return os._exit, (3,)


def _files(folder):
    content = {"object": Kept(), "numbers": [1, 2.5, 1 + 2j], "set": {1}, "class": dict, "text": "x" * 90}
    (folder / "plain.pkl").write_bytes(pickle.dumps(content, 2))
    torch.save(torch.nn.Linear(2, 1), folder / "model.pt")
    return [
        f"{folder}/plain.pkl", f"{folder}/model.pt@*/data.pkl", f"{folder}/model.pt@model/data.pkl",
        f"{folder}/model.pt@*/nothing",
    ]  # fmt: skip


def _shown(tool, path):
    out = io.StringIO()
    try:
        tool.main(["show_pickle", path], out)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return out.getvalue()


def test_pickles_are_shown_as_by_pytorch(tmp_path):
    theirs = pytest.importorskip("torch.utils.show_pickle")
    shown = [_shown(show_pickle, path) for path in _files(tmp_path)]
    assert shown == [_shown(theirs, path) for path in _files(tmp_path)]
    assert "posix._exit(3,)" in shown[0] and "Could not find member" in shown[3]


def test_nothing_is_made(tmp_path):
    path = _files(tmp_path)[0]
    done = subprocess.run(
        [sys.executable, "-m", "rushlight.utils.show_pickle", path],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0 and "posix._exit(3,)" in done.stdout
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as archive:
        archive.write(path, "inner.pkl")
    assert "posix._exit(3,)" in _shown(show_pickle, f"{tmp_path}/z.zip@inner.pkl")


def test_texts_that_are_none():
    damaged = pickle.dumps("abcd", 2).replace(b"abcd", b"ab\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        show_pickle.DumpUnpickler(io.BytesIO(damaged)).load()
    shown = show_pickle.DumpUnpickler(io.BytesIO(damaged), catch_invalid_utf8=True).load()
    assert repr(shown).startswith("builtin.UnicodeDecodeError(")


def test_one_file_is_asked_for(capsys):
    assert show_pickle.main(["show_pickle"]) == 2
    assert "usage: show_pickle PICKLE_FILE" in capsys.readouterr().err
