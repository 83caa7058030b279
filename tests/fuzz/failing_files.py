"""Saves and loads while one call to the file system after the other fails.

    PYTHONPATH=. python tests/fuzz/failing_files.py --only '^torch.save'

Each program runs once to count its calls (open, read, write, fsync, rename, ...) on files below a folder, and
then again for each of them, in a process of its own, in which that call

* fails with EIO, or there is no room (ENOSPC), alone or with all later ones: an error that says so, or
  success;
* is interrupted (EINTR) or moves half of what was asked: success;
* is the last one, as `kill -9` makes it, or a loss of power, which takes all data that nobody synchronised.

After each the file reads as the former one or the new one, never as something else; after an error nothing
else lies beside it, and the same program then succeeds. Programs that read give the right values or an error.
"""

import argparse
import ctypes
import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from ctypes import c_char_p, c_int, c_long
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_suffix(".cpp")
COUNT, ERROR, SHORT, KILL, POWER = range(5)
WAYS = {
    "EIO": (ERROR, errno.EIO, 0),
    "EIO from then on": (ERROR, errno.EIO, 1),
    "no room": (ERROR, errno.ENOSPC, 0),
    "no room from then on": (ERROR, errno.ENOSPC, 1),
    "interrupted": (ERROR, errno.EINTR, 0),
    "short": (SHORT, 0, 0),
    "killed": (KILL, 0, 0),
    "no power": (POWER, 0, 0),
}
SAID = re.compile(
    r"Input/output error|No space left|cannot (read|write|open|map)|failed reading|not open", re.I
)
SECONDS = 60


def build(folder):
    """The library that fails, compiled."""
    path = Path(folder) / "failing_files.so"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run(
        [compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True
    )
    return path


# --- programs -----------------------------------------------------------------------------------------------


class Writer:
    """A way to save a value, told by a number, and to read it back."""

    def __init__(self, name, save, load):
        self.name, self.save, self.load = name, save, load


def writers(rl):
    """The ways to save: each of a value that differs with the number."""
    from rushlight import safetensors
    from rushlight.export import load_file, save_file

    class Shift(rl.nn.Module):
        def __init__(self, number):
            super().__init__()
            self.shift = rl.nn.Parameter(rl.full((3000,), float(number)))

        def forward(self, x):
            return x + self.shift

    tensor = lambda number: rl.full((3000,), float(number))
    zero = rl.zeros(3000)
    checkpoint = rl.distributed.checkpoint

    def save_checkpoint(number, path):
        checkpoint.save({"x": tensor(number)}, checkpoint_id=path, no_dist=True)

    def load_checkpoint(path):
        state = {"x": rl.zeros(3000)}
        checkpoint.load(state, checkpoint_id=path, no_dist=True)
        return state["x"]

    yield Writer("torch.save", lambda n, p: rl.save({"x": tensor(n)}, p), lambda p: rl.load(p)["x"])
    legacy = lambda n, p: rl.save({"x": tensor(n)}, p, _use_new_zipfile_serialization=False)
    yield Writer("torch.save, older format", legacy, lambda p: rl.load(p)["x"])
    yield Writer(
        "safetensors",
        lambda n, p: safetensors.save_file({"x": tensor(n)}, p),
        lambda p: safetensors.load_file(p)["x"],
    )
    yield Writer("one file", lambda n, p: save_file(Shift(n), p, (zero,)), lambda p: load_file(p)(zero))
    yield Writer(
        "torch.jit.save",
        lambda n, p: rl.jit.save(rl.jit.trace(Shift(n), zero), p),
        lambda p: rl.jit.load(p)(zero),
    )
    yield Writer(
        "torch.export.save",
        lambda n, p: rl.export.save(rl.export.export(Shift(n), (zero,)), p),
        lambda p: rl.export.load(p).module()(zero),
    )
    yield Writer("torch.distributed.checkpoint", save_checkpoint, load_checkpoint)


def readers(rl):
    """name, make file, read."""
    for one in writers(rl):
        yield one.name, one.save, one.load
    yield (
        "torch.load, mapped",
        lambda n, p: rl.save({"x": rl.full((3000,), float(n))}, p),
        lambda p: rl.load(p, mmap=True)["x"],
    )


def number_of(load, path):
    """Which number was saved at the path."""
    values = load(str(path)).unique().tolist()
    if len(values) != 1:
        raise AssertionError(f"values of several saves: {values[:5]}")
    return values[0]


# --- runs ---------------------------------------------------------------------------------------------------


def guarded(run):
    """What comes of run(): None, or in words what is wrong; MemoryError and the like are wrong too."""
    try:
        run()
        return None
    except (OSError, RuntimeError, ValueError, EOFError) as error:
        if SAID.search(str(error)):
            return "refused"
        return f"{type(error).__name__} says nothing of the file: {str(error)[:300]}"


def in_child(run, seconds=SECONDS):
    """(status, text) of run() in a fork."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(seconds)
        try:
            text = run() or ""
        except BaseException:
            text = traceback.format_exc()
        os.write(writing, text.encode()[:60000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text


class Search:
    def __init__(self, rl, faults, folder, points):
        self.rl, self.faults, self.folder, self.points = rl, faults, folder, points
        self.path = os.path.join(folder, "saved")
        self.failures, self.found = 0, []

    def failing(self, run, way, left):
        """What is said when run() meets the failure after `left` calls."""
        kind, error, again = WAYS[way]
        self.faults.failing_files_begin(self.folder.encode(), kind, left, error, again)
        try:
            return guarded(run)
        finally:
            self.faults.failing_files_end()

    def counted(self, run, way):
        """How many calls of run() can fail in this way, as text."""
        kind, error, _ = WAYS[way]
        self.faults.failing_files_begin(self.folder.encode(), kind, 1 << 60, error, 0)
        run()
        return str(self.faults.failing_files_end())

    def points_of(self, run, way):
        """Numbers of calls before the one that fails."""
        status, text = in_child(partial(self.counted, run, way))
        if status or not text.isdigit():
            raise RuntimeError(f"a program fails by itself ({status}): {text}")
        made = int(text)
        return range(0, made, max(1, made // self.points) if self.points else 1)

    def prepare(self, save):
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
        save(1, self.path)

    def write(self, one):
        run = partial(one.save, 2, self.path)
        for way in WAYS:
            self.prepare(one.save)
            for left in self.points_of(run, way):
                self.prepare(one.save)
                status, said = in_child(partial(self.failing, run, way, left))
                self.failures += 1
                self.look(one, way, left, status, said)

    def look(self, one, way, left, status, said):
        wrong = []
        dies = WAYS[way][0] in (KILL, POWER)
        if status != (99 if dies else 0):
            wrong.append(f"the process ended with {status}: {said[-300:]}")
        elif said not in ("", "refused") or (said and way in ("interrupted", "short")):
            wrong.append(said[-1500:])
        try:
            number = number_of(one.load, self.path)
            if number not in ((1, 2) if said or dies else (2,)):
                wrong.append(f"the file holds {number}")
        except Exception as error:
            wrong.append(f"the file cannot be read: {type(error).__name__}: {str(error)[:200]}")
        beside = [name for name in os.listdir(self.folder) if name != "saved"]
        if beside and not dies and "from then on" not in way:
            wrong.append(f"left beside it: {beside}")
        one.save(3, self.path)
        if number_of(one.load, self.path) != 3:
            wrong.append("cannot be saved afterwards")
        self.tell(f"{one.name}, {way}, after {left} calls", wrong)

    def read_once(self, load, way, left):
        found = []
        said = self.failing(lambda: found.append(number_of(load, self.path)), way, left)
        if said:
            return "" if said == "refused" and way not in ("interrupted", "short") else said
        return "" if found == [1] else f"read as {found[0]}"

    def read(self, name, save, load):
        self.prepare(save)
        for way in ("EIO", "EIO from then on", "interrupted", "short"):
            for left in self.points_of(partial(number_of, load, self.path), way):
                status, said = in_child(partial(self.read_once, load, way, left))
                self.failures += 1
                wrong = [said] if said else []
                if status:
                    wrong.append(f"the process ended with {status}")
                self.tell(f"reading {name}, {way}, after {left} calls", wrong)

    def tell(self, where, wrong):
        if wrong:
            self.found.append(where)
            print(f"--- {where}: {'; '.join(wrong)}", flush=True)


def work(options):
    faults = ctypes.CDLL(os.environ["LD_PRELOAD"])
    faults.failing_files_begin.argtypes = [c_char_p, c_int, c_long, c_int, c_int]
    faults.failing_files_end.restype = c_long
    import rushlight as rl

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as base:
        folder = os.path.join(os.path.realpath(base), "files")
        os.mkdir(folder)
        search = Search(rl, faults, folder, options.points)
        for one in writers(rl):
            if re.search(options.only, one.name):
                search.write(one)
        for name, save, load in readers(rl):
            if re.search(options.only, f"reading {name}"):
                search.read(name, save, load)
    print(f"{search.failures} failures of files, {len(search.found)} found")
    return 1 if search.found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="programs whose name this regular expression finds")
    parser.add_argument("--points", type=int, help="about so many calls of each program, not all")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "LD_PRELOAD": str(build(folder)), "PYTHONDONTWRITEBYTECODE": "1"}
        return subprocess.run([sys.executable, __file__, *sys.argv[1:], "--worker"], env=variables).returncode


if __name__ == "__main__":
    sys.exit(main())
