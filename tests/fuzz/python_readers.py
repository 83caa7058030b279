"""Hostile files for what reads them in Python, with coverage feedback where Atheris is installed.

    PYTHONPATH=. python tests/fuzz/python_readers.py READER [-runs=100000 or other options of libFuzzer]
    PYTHONPATH=. python tests/fuzz/python_readers.py READER --replay [FILE...]

READER is one of `READERS`. An input is a file, or the records of an archive one after the other
(`=== NAME` begins one), so that mutations meet what lies behind the checksums. A reader gives a result or an
error that says what is wrong with the file; an error of the interpreter's own kind (KeyError, AttributeError,
RecursionError, ...), a crash or a hang is found. `--replay` reads the corpus, or files, once; without Atheris
inputs of the corpus are mutated blindly.
"""

import argparse
import atexit
import contextlib
import io
import os
import pickle
import random
import re
import resource
import sys
import tempfile
import traceback
import warnings
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import limits  # noqa: E402

CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "python"
RECORD = re.compile(rb"(?:^|\n)=== ([^\n]{1,200})\n")
REFUSED = (ValueError, RuntimeError, EOFError, OSError, pickle.UnpicklingError)


def packed(data):
    """The archive whose records an input holds."""
    parts = RECORD.split(data)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that come twice
        for name, content in zip(parts[1::2], parts[2::2], strict=True):
            archive.writestr(zipfile.ZipInfo(name.decode("latin-1")), content)
    return stream.getvalue()


def unpacked(archive):
    """The input that `packed` makes this archive of."""
    with zipfile.ZipFile(archive) as records:
        return b"".join(b"\n=== %b\n%b" % (n.encode(), records.read(n)) for n in records.namelist())


# --- readers ------------------------------------------------------------------------------------------------


class Reader:
    """How an input is read, and good ones are made; `watched`: modules whose branches are told apart."""

    watched = ["rushlight._serialization", "rushlight.serialization", "rushlight._weights_only_unpickler"]
    longest = 8000  # bytes of an input

    def __init__(self, torch, folder):
        self.torch, self.folder = torch, Path(folder)

    def file(self, name, data):
        path = self.folder / name
        path.write_bytes(data)
        return path


class Legacy(Reader):
    """Files of `torch.save` before PyTorch 1.6."""

    def read(self, data):
        self.torch.load(io.BytesIO(data))

    def good(self):
        for value in values(self.torch):
            stream = io.BytesIO()
            self.torch.save(value, stream, _use_new_zipfile_serialization=False)
            yield stream.getvalue()


class Archive(Reader):
    """Files of `torch.save`."""

    def read(self, data):
        self.torch.load(io.BytesIO(packed(data)))

    def good(self):
        for value in values(self.torch):
            stream = io.BytesIO()
            self.torch.save(value, stream)
            yield unpacked(stream)


class Script(Reader):
    """TorchScript: ours, and PyTorch's where it is installed."""

    watched = ["rushlight.jit"]

    def read(self, data):
        self.torch.jit.load(io.BytesIO(packed(data)))

    def good(self):
        yield from saved(self.torch.jit.save, scripted(self.torch))
        try:
            import torch
        except ImportError:
            return
        yield from saved(torch.jit.save, scripted(torch))


class Program(Reader):
    """Programs of `torch.export`: ours, and PyTorch's where it is installed."""

    watched = ["rushlight.export", "rushlight.utils._pytree"]
    longest = 30000

    def read(self, data):
        self.torch.export.load(io.BytesIO(packed(data)))

    def good(self):
        yield from saved(self.torch.export.save, exported(self.torch))
        try:
            import torch
        except ImportError:
            return
        yield from saved(torch.export.save, exported(torch))


class Index(Reader):
    """The index of a distributed checkpoint, and what lies where it points."""

    watched = ["rushlight.distributed.checkpoint"]

    def read(self, data):
        checkpoint = self.torch.distributed.checkpoint
        self.file(".metadata", data)
        reader = checkpoint.FileSystemReader(self.folder)
        index = reader.read_metadata().state_dict_metadata
        state = {name: self.torch.zeros(2, 3) for name in list(index)[:3]}
        checkpoint.load(state, checkpoint_id=self.folder, no_dist=True)

    def good(self):
        tensors = {"a": self.torch.ones(2, 3), "b": {"c": self.torch.zeros(2, 3), "n": 1}}
        self.torch.distributed.checkpoint.save(tensors, checkpoint_id=self.folder, no_dist=True)
        yield (self.folder / ".metadata").read_bytes()


class Onnx(Reader):
    """Models of ONNX, which run once if they were read."""

    watched = ["rushlight.onnx"]

    def read(self, data):
        model = self.torch.onnx.load(self.file("model.onnx", data))
        if len(model.inputs) <= 4:
            model(*(self.torch.ones(1, 3, 8, 8) for _ in model.inputs))

    def good(self):
        nn, path = self.torch.nn, self.folder / "good.onnx"
        convolution = nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2))
        for model in (convolution, nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Softmax(-1))):
            self.torch.onnx.export(model.eval(), (self.torch.ones(1, 3, 8, 8),), path)
            yield path.read_bytes()


READERS = {
    "legacy": Legacy,
    "archive": Archive,
    "torchscript": Script,
    "pt2": Program,
    "index": Index,
    "onnx": Onnx,
}


def values(torch):
    """What is saved."""
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    yield net.state_dict()
    x = torch.arange(6.0).reshape(2, 3)
    yield [
        x,
        x.t(),
        x[:, 1],
        x.half(),
        x.to_sparse(),
        torch.nn.Parameter(x),
        {"n": (1, 2.5, None, "s", b"b")},
    ]
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    yield optimizer.state_dict()


def saved(save, models):
    for model in models:
        stream = io.BytesIO()
        save(model, stream)
        yield unpacked(stream)


def scripted(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2)).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield torch.jit.script(model)
        yield torch.jit.trace(model, torch.ones(2, 3))


def exported(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    yield torch.export.export(model, (torch.ones(2, 3),))
    dynamic = ({0: torch.export.Dim("N", max=64)},)
    yield torch.export.export(model, (torch.ones(2, 3),), dynamic_shapes=dynamic)


# --- what comes of an input ---------------------------------------------------------------------------------


MOST_MEMORY = 1 << 30  # that an input of some kilobytes may take
SECONDS = 30  # the same of the processor


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Judge:
    """Reads inputs; what is found is told once for each place, and kept."""

    def __init__(self, reader, kept):
        self.reader, self.kept = reader, kept
        self.inputs, self.refused, self.found = 0, 0, {}
        self.peak = peak_memory()

    def __call__(self, data):
        self.inputs += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.reader.read(data)
        except Exception as error:
            if isinstance(error, REFUSED) and not isinstance(error, RecursionError):
                self.refused += 1
            else:
                self.tell(data, error)
        peak = peak_memory()
        if peak > self.peak + MOST_MEMORY:
            self.tell(data, MemoryError(f"{(peak - self.peak) >> 20} MB for {len(data)} bytes"))
        self.peak = max(self.peak, peak)

    def tell(self, data, error):
        own = [f for f in traceback.extract_tb(error.__traceback__) if "rushlight" in f.filename]
        place = f"{os.path.relpath(own[-1].filename, ROOT)}:{own[-1].lineno}" if own else "?"
        where = type(error).__name__, place
        if where in self.found:
            return
        self.found[where] = data
        name = re.sub(r"\W+", "_", "_".join(where))
        if self.kept:
            Path(self.kept, name).write_bytes(data)
        print(f"FOUND {type(error).__name__} at {place}: {str(error)[:200]}", flush=True)

    def summary(self):
        print(f"{self.inputs} inputs, {self.refused} refused, {len(self.found)} found", flush=True)


def mutated(data, others, draw):
    """The input, changed in a few places."""
    changed = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 4, 8))):
        at, kind = draw.randrange(len(changed) + 1), draw.randrange(6)
        if kind == 0 and changed:
            changed[at % len(changed)] ^= 1 << draw.randrange(8)
        elif kind == 1 and changed:
            changed[at % len(changed)] = draw.randrange(256)
        elif kind == 2:
            del changed[at : at + draw.randrange(1, 32)]
        elif kind == 3:
            changed[at:at] = changed[at : at + draw.randrange(1, 32)]
        elif kind == 4:
            other = draw.choice(others)
            begin = draw.randrange(len(other) + 1)
            changed[at:at] = other[begin : begin + draw.randrange(1, 64)]
        else:
            changed[at : at + 4] = draw.choice((b"\xff" * 4, bytes(4), b"-1", b"99999999999", b"\x7f\xff"))
    return bytes(changed)


def blindly(judge, inputs, runs, seed):
    draw = random.Random(seed)
    for _ in range(runs):
        limits.start_clock(SECONDS)
        judge(mutated(draw.choice(inputs), inputs, draw))


def with_feedback(atheris, judge, inputs, folder, options):
    """libFuzzer, which does not return: the summary is told at the end of the process."""
    corpus = Path(folder, "corpus")
    corpus.mkdir()
    for number, data in enumerate(inputs):
        (corpus / f"good{number}").write_bytes(data)
    given = options or ["-runs=100000"]
    limits = [f"-max_len={judge.reader.longest}", f"-timeout={SECONDS}", "-rss_limit_mb=4096"]
    if judge.kept:
        limits.append(f"-artifact_prefix={judge.kept}/")
    atexit.register(lambda: (judge.summary(), sys.stdout.flush(), os._exit(1) if judge.found else None))
    atheris.Setup([sys.argv[0], *limits, *given, str(corpus)], judge)
    atheris.Fuzz()


def feedback():
    try:
        import atheris
    except ImportError:
        return None
    return atheris


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reader", choices=READERS)
    parser.add_argument("--replay", nargs="*", type=Path, help="read these files, or the corpus, once")
    parser.add_argument("--blind", type=int, help="so many inputs without feedback")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for what is found")
    options, rest = parser.parse_known_args()
    atheris = None if options.blind or options.replay is not None else feedback()
    sys.path.append(str(ROOT))  # behind a build that the caller puts on the path
    with tempfile.TemporaryDirectory(prefix="python-readers-") as folder:
        made = Path(folder, "files")
        made.mkdir()
        kind = READERS[options.reader]
        watch = atheris.instrument_imports(include=kind.watched) if atheris else contextlib.nullcontext()
        with watch:
            import rushlight

            reader = kind(rushlight, made)
            judge = Judge(reader, options.keep)
            inputs = list(reader.good())
            for data in inputs:  # which imports all that is to be watched
                reader.read(data)
        kept = [path.read_bytes() for path in sorted((CORPUS / options.reader).glob("*"))]
        if options.replay is not None:
            inputs = [path.read_bytes() for path in options.replay] if options.replay else inputs + kept
            for data in inputs:
                judge(data)
        elif atheris:
            with_feedback(atheris, judge, inputs + kept, folder, rest)
        else:
            limits.limit_memory()
            blindly(judge, inputs + kept, options.blind or 20000, options.seed)
        judge.summary()
    return 1 if judge.found else 0


if __name__ == "__main__":
    sys.exit(main())
