"""What `torch.compile` keeps on disk: whether graphs pay."""

import os
import subprocess
import sys

import pytest

import rushlight as torch
from rushlight._dynamo._trials import Trials
from rushlight._inductor import _decision_cache
from rushlight._inductor import config as settings
from rushlight._inductor.utils import fresh_cache

KEY = "0" * 64


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "0")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    return tmp_path / "decisions"


def program(x):
    return (x.exp() + 1).log() * 2 - x


def decided(monkeypatch, pays, clear=True):
    """The compiled program after its trials, which end as told."""
    monkeypatch.setattr(Trials, "pays", lambda self: pays)
    monkeypatch.setattr(Trials, "is_clear", lambda self: clear)
    f = torch.compile(program)
    x = torch.randn(4, 4)
    for _ in range(100):
        f(x)
        if f._compiled.entries[0].decided:
            return f._compiled
    raise AssertionError("the trials do not end")


@pytest.mark.parametrize("pays", [True, False])
def test_decision_is_used_again(cache, monkeypatch, pays):
    assert decided(monkeypatch, pays).entries[0].pays == pays
    assert len(list(cache.iterdir())) == 1
    again, x = torch.compile(program), torch.randn(4, 4)
    assert torch.equal(again(x), program(x))
    (entry,) = again._compiled.entries
    assert entry.decided and entry.pays == pays
    assert (again._compiled.reason is None) == pays
    other = torch.randn(5, 4)  # a graph of its own, which has not been tried
    assert torch.equal(again(other), program(other))
    assert len(again._compiled.entries) == (2 if pays else 1)
    assert not pays or not again._compiled.entries[1].decided


@pytest.mark.parametrize("first_pays", [None, True])
def test_what_does_not_pay_costs_nothing_beside_other_graphs(cache, monkeypatch, first_pays):
    f, first, second = torch.compile(program), torch.randn(3), torch.randn(4, 4)
    monkeypatch.setattr(Trials, "pays", lambda self: first_pays)
    for _ in range(3 if first_pays is None else 100):
        f(first)
    monkeypatch.setattr(Trials, "pays", lambda self: False)
    for _ in range(300):
        f(second)
    assert f._compiled.entries[1].decided and not f._compiled.entries[1].pays
    assert (f._compiled.reason is None) == bool(first_pays)
    assert torch.equal(f(first), program(first)) and torch.equal(f(second), program(second))


def test_unclear_decisions_are_not_kept(cache, monkeypatch):
    decided(monkeypatch, True, clear=False)
    assert not cache.exists()


def test_what_is_clear():
    trials = Trials()
    for plain, graph, expected in ((1.0, 0.9, True), (1.0, 0.97, False), (1.0, 1.0, False), (1.0, 1.1, True)):
        trials.times = [(plain, plain)], [(graph, graph)]
        assert trials.is_clear() == expected


def test_another_process_uses_it(cache, monkeypatch):
    code = (
        "import rushlight as torch\n"
        "from rushlight._dynamo._trials import Trials\n"
        "Trials.pays, Trials.clear = lambda self: True, lambda self: True\n"
        "@torch.compile\n"
        "def f(x):\n    return x.exp() * 2 + x\n"
        "x = torch.ones(3)\n"
        "f(x)\n"
        "print('first', f._compiled.entries[0].decided)\n"
        "for _ in range(100): f(x)\n"
        "print(f(x).tolist())\n"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(2)]
    lines = [run.stdout.split("\n") for run in runs]
    assert lines[0][0] == "first False" and lines[1][0] == "first True", runs
    assert lines[0][1] == lines[1][1] != ""


@pytest.mark.parametrize("pays", [True, False])
def test_damaged_files_are_no_decision(cache, pays):
    assert _decision_cache.load(KEY) is None
    _decision_cache.store(KEY, pays)
    assert _decision_cache.load(KEY) is pays
    good = (cache / KEY).read_bytes()
    flipped = [good[:i] + bytes([good[i] ^ 1]) + good[i + 1 :] for i in range(len(good))]
    for content in (b"", good[:-1], good + b"\n", good * 100, b"\xff" * 40, *flipped):
        (cache / KEY).write_bytes(content)
        assert _decision_cache.load(KEY) is None
    other = "1" * 64
    (cache / other).write_bytes(good)  # a file under another's name
    assert _decision_cache.load(other) is None
    (cache / KEY).unlink()
    (cache / KEY).mkdir()
    assert _decision_cache.load(KEY) is None


def test_key_tells_programs_threads_and_builds_apart(cache, monkeypatch):
    key = _decision_cache.key_of("f", ["text"])
    assert key == _decision_cache.key_of("f", ["text"])
    others = {
        _decision_cache.key_of("g", ["text"]),
        _decision_cache.key_of("f", ["other"]),
        _decision_cache.key_of("f", []),
    }
    monkeypatch.setattr(torch, "get_num_threads", lambda: 77)
    others.add(_decision_cache.key_of("f", ["text"]))
    monkeypatch.setattr(_decision_cache, "_machine", lambda: ("another",))
    others.add(_decision_cache.key_of("f", ["text"]))
    assert len(others) == 5 and key not in others


def test_nothing_is_kept_where_that_is_not_wanted(cache, monkeypatch):
    monkeypatch.setattr(settings, "force_disable_caches", True)
    decided(monkeypatch, True)
    monkeypatch.setattr(settings, "force_disable_caches", False)
    monkeypatch.setenv("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")
    decided(monkeypatch, True)
    assert not cache.exists()


def test_folder_that_cannot_be_written(cache):
    cache.write_text("a file in the folder's place")
    _decision_cache.store(KEY, True)
    assert _decision_cache.load(KEY) is None
    assert cache.read_text() == "a file in the folder's place"


def test_folder_stays_small(cache, monkeypatch):
    monkeypatch.setattr(_decision_cache, "_MOST", 4)
    for i in range(20):
        _decision_cache.store(f"{i:064}", True)
        os.utime(cache / f"{i:064}", ns=(i, i))
        assert len(list(cache.iterdir())) <= 4
    assert _decision_cache.load(f"{19:064}") is True
    assert _decision_cache.load(f"{0:064}") is None


def test_fresh_cache(cache, tmp_path):
    _decision_cache.store(KEY, True)
    entries: dict = {}
    with fresh_cache(entries, dir=tmp_path):
        assert _decision_cache.load(KEY) is None
        _decision_cache.store("1" * 64, False)
        place = _decision_cache.folder()
    assert list(entries) == [f"decisions/{'1' * 64}"]
    assert not os.path.exists(place)
    assert _decision_cache.load(KEY) is True and _decision_cache.load("1" * 64) is None


def test_folder_of_the_user(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert _decision_cache.folder() == "/somewhere/rushlight/decisions"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    assert _decision_cache.folder() == "/home/me/.cache/rushlight/decisions"


def test_a_command_clears_it(cache, monkeypatch):
    decided(monkeypatch, True)
    other = cache / "notes.txt"
    other.write_text("not ours")

    def command(*options):
        done = subprocess.run(
            [sys.executable, "-m", "rushlight._inductor", *options],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert command().startswith(f"1 files in {cache}")
    assert command("--clear").startswith("deleted 1 files")
    assert command("--clear").startswith("deleted 0 files")
    assert [path.name for path in cache.iterdir()] == ["notes.txt"]


def test_writers_do_not_disturb_each_other(cache):
    code = (
        "import sys\n"
        "from rushlight._inductor import _decision_cache as kept\n"
        "for i in range(300):\n"
        "    key = format(i % 7, '064x')\n"
        "    kept.store(key, i % 2 == 0)\n"
        "    assert kept.load(key) in (True, False)\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(3)]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    assert len(list(cache.iterdir())) == 7


def test_another_instruction_set_decides_anew():
    code = "from rushlight._inductor import _decision_cache as kept; print(kept.key_of('f', ['graph']))"
    keys = set()
    for capability in ("baseline", ""):
        environment = (
            {**os.environ, "RUSHLIGHT_CPU_CAPABILITY": capability} if capability else dict(os.environ)
        )
        environment["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "0"
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
        )
        keys.add(done.stdout.strip())
    assert len(keys) == 2 and "None" not in keys
