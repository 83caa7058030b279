"""Runs operators and programs while one allocation after the other fails.

    PYTHONPATH=. python tests/fuzz/failing_memory.py --failures 1000000 --only '^linalg'

Each case runs once to count its allocations in C and C++ (malloc, operator new, the library's own
allocator, mmap, memfd), and then again for each of them, which answers that there is no memory; every
fourth time later ones do, too. Each run has a thread of its own, whose pools of memory are empty.
Afterwards it raised MemoryError, or the allocator's RuntimeError, or gave the right result; the same case
then succeeds; and no block is left over. Cases run in child processes: what ends one is reported with the
call and the number of the allocation, and passed over.

With `--python` the allocations of Python's objects fail instead (PyMem_SetAllocator), and none of C and C++.
"""

import argparse
import ctypes
import faulthandler
import gc
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import memory_programs  # noqa: E402

SOURCE = Path(__file__).with_suffix(".cpp")
STATE = struct.Struct("qqqq")  # case, allocation that fails, failures so far, shard
# What says that there is no memory: our words, and those of the interpreter, ctypes, pickle and OpenSSL.
SAID = re.compile(
    r"memory|no thread left|digital envelope routines|allocate (read )?lock|returned NULL without setting"
    r"|error return without exception set|can't start new thread"
)
# What the interpreter itself says where its own allocations fail: under --python alone.
SAID_BY_PYTHON = re.compile(
    r"MemoryError|without exception set|import of module .* failed|while normalizing an exception"
)
LAST_WORDS = re.compile("terminate called|Fatal Python error|.*Assertion")
SECONDS = 60  # for one run


def build(folder):
    """The library that fails, compiled."""
    path = Path(folder) / "failing_memory.so"
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-o", str(path), str(SOURCE)], check=True)
    return path


# --- cases --------------------------------------------------------------------------------------------------


def operator_cases(rl, pattern):
    """name, call: a row's samples, and their gradients."""
    sys.path.insert(0, str(ROOT / "tests" / "python" / "ops"))
    import engine
    import loader

    def call(row, sample, dtype, gradient):
        function = engine.resolve(rl, row.name)
        args, kwargs = engine.arguments(rl, sample, dtype, requires_grad=gradient)

        def run():
            result = function(*args, **kwargs)
            if not gradient:
                return result
            outputs = [t for t in engine.tensors_in(result) if t.requires_grad and t.is_floating_point()]
            leaves = [t for t in engine.tensors_in((args, list(kwargs.values()))) if t.requires_grad]
            return (
                rl.autograd.grad([t.sum() for t in outputs], leaves, allow_unused=True) if outputs else result
            )

        return run

    for row in loader.ROWS:
        if not re.search(pattern, row.id):
            continue
        dtype = loader.main_dtype(row)
        if re.match(r"(ops\.aten\.)?(new_)?empty|ops\.aten\._ctc_loss", row.id):
            continue  # results hold whatever the memory held before
        for i, sample in enumerate(loader.samples(row, dtype)[:3]):
            for gradient in (False, True) if dtype.startswith("float") else (False,):
                name = f"{row.id}, sample {i}{', gradient' if gradient else ''}"
                yield name, lambda r=row, s=sample, d=dtype, g=gradient: call(r, s, d, g)


def program_cases(rl, pattern):
    """name, make: programs of several operators; make() gives what runs."""
    for name, make in PROGRAMS.items():
        if re.search(pattern, name):
            yield name, lambda make=make: make(rl)


def _network(rl):
    rl.manual_seed(0)
    nn = rl.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def training_step(rl):
    x, y = rl.randn(4, 3, 8, 8), rl.tensor([1, 2, 3, 4])

    def run():
        net = _network(rl)
        optimizer = rl.optim.Adam(net.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            loss = rl.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            optimizer.step()
        return [loss.detach(), *(p.detach() for p in net.parameters())]

    return run


def recurrent_step(rl):
    x = rl.randn(5, 2, 4)

    def run():
        rl.manual_seed(1)
        net = rl.nn.LSTM(4, 6, num_layers=2)
        out, _ = net(x)
        out.sum().backward()
        return [out.detach(), *(p.grad for p in net.parameters())]

    return run


def attention_step(rl):
    x = rl.randn(2, 6, 16)

    def run():
        rl.manual_seed(2)
        layer = rl.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        out = layer(x)
        out.pow(2).mean().backward()
        return [out.detach(), *(p.grad for p in layer.parameters())]

    return run


def saved_and_loaded(rl):
    folder = tempfile.mkdtemp()
    state = _network(rl).state_dict()

    def run():
        path = os.path.join(folder, "state.pt")
        rl.save(state, path)
        return list(rl.load(path).values())

    return run


def one_file(rl):
    folder = tempfile.mkdtemp()
    net, x = _network(rl).eval(), rl.randn(4, 3, 8, 8)
    path = os.path.join(folder, "net.rl")

    def run():
        rl.export.save_file(net, path, (x,))
        return rl.export.load_file(path)(x)

    return run


def transforms(rl):
    x = rl.randn(3, 4)

    def run():
        f = lambda v: (v.sin() * v.exp()).sum()  # noqa: E731
        return [rl.func.vmap(rl.func.grad(f))(x), rl.func.jacrev(f)(x), rl.func.jvp(f, (x,), (x,))[1]]

    return run


def compiled_function(rl):
    x = rl.randn(4, 6)

    def run():
        rl._dynamo.reset()
        f = rl.compile(lambda v, w: (v @ w.t()).relu().sum(1) * 2 + v[:, 0].exp())
        return [f(x, x) for _ in range(3)]

    return run


def exported_program(rl):
    import io

    net, x = rl.nn.Sequential(rl.nn.Linear(4, 3), rl.nn.ReLU()), rl.randn(2, 4)

    def run():
        stream = io.BytesIO()
        rl.export.save(rl.export.export(net, (x,)), stream)
        stream.seek(0)
        return [rl.export.load(stream).module()(x).detach()]

    return run


def process_group(rl):
    """A job of one process: its collectives, a model under DDP, a checkpoint."""
    from rushlight import distributed as dist

    folder, x = tempfile.mkdtemp(), rl.randn(4, 5)

    def run():
        if dist.is_initialized():  # the former end failed
            dist.destroy_process_group()
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            rl.manual_seed(3)
            net = rl.nn.parallel.DistributedDataParallel(rl.nn.Linear(5, 2))
            net(x).sum().backward()
            everyone = [rl.zeros(4, 5)]
            dist.all_gather(everyone, x)
            dist.broadcast_object_list(objects := [{"a": 1}])
            state = {"net": net.module.state_dict()}
            dist.checkpoint.save(state, checkpoint_id=folder)
            dist.checkpoint.load(state, checkpoint_id=folder)
            dist.barrier()
            return [*everyone, *(p.grad for p in net.parameters()), *state["net"].values(), objects]
        finally:
            dist.destroy_process_group()

    return run


def two_ranks(rl):
    """Two ranks in two threads; memory fails for one, and the other's calls end by their limit."""
    from datetime import timedelta

    from rushlight import distributed as dist
    from rushlight.distributed._gloo_group import GlooGroup

    def rank(store, number):
        group = GlooGroup(store, number, 2, timedelta(seconds=1))
        try:
            t = rl.arange(50.0) * (number + 1)
            group.all_reduce([t], dist.ReduceOp.SUM)
            parts = [rl.zeros(50), rl.zeros(50)]
            group.all_gather(parts, t + number)
            group.barrier()
            return [t, *parts]
        finally:
            group.close()

    def other(store):
        try:
            rank(store, 1)
        except (RuntimeError, MemoryError):
            pass

    def run():
        store = dist.HashStore()
        store.set_timeout(timedelta(seconds=1))
        thread = threading.Thread(target=other, args=[store])
        thread.start()
        try:
            return rank(store, 0)
        finally:
            thread.join()

    return run


def shared_tensors(rl):
    """What travels to other processes: its memory, and the messages that name it."""
    from multiprocessing.reduction import ForkingPickler

    def run():
        t = rl.arange(3000.0).share_memory_()
        return [ForkingPickler.loads(ForkingPickler.dumps(t)), t]

    return run


def loader_with_worker(rl):
    data = rl.utils.data.TensorDataset(rl.arange(12.0).view(6, 2), rl.arange(6))

    def run():
        loader = rl.utils.data.DataLoader(data, batch_size=2, num_workers=1, timeout=20)
        return [rl.cat([x.flatten() for x, _ in loader])]

    return run


def loader_epoch(rl):
    data = rl.utils.data.TensorDataset(rl.arange(12.0).view(6, 2), rl.arange(6))

    def run():
        return [rl.cat([x.flatten() for x, _ in rl.utils.data.DataLoader(data, batch_size=2)])]

    return run


PROGRAMS = {
    "a training step": training_step,
    "a recurrent network": recurrent_step,
    "an attention layer": attention_step,
    "save and load": saved_and_loaded,
    "a model of one file": one_file,
    "function transforms": transforms,
    "a compiled function": compiled_function,
    "an exported program": exported_program,
    "a process group": process_group,
    "two ranks": two_ranks,
    "shared tensors": shared_tensors,
    "a data loader": loader_epoch,
    "a data loader with a worker": loader_with_worker,
    **memory_programs.PROGRAMS,
}


# --- the child ----------------------------------------------------------------------------------------------


class Memory:
    """The library that fails, as this process has it loaded."""

    def __init__(self, library, python=False):
        functions = ctypes.PyDLL(library)  # which keeps the interpreter's lock: nothing runs in between
        if python:
            functions.failing_memory_of_python()
        self._begin = functions.failing_memory_begin
        self._begin.argtypes, self._begin.restype = [ctypes.c_long, ctypes.c_int], None
        self._end, self.live = functions.failing_memory_end, functions.failing_memory_live
        self._end.restype = self.live.restype = ctypes.c_long

    def run(self, work, judge, left=-1, again=False):
        """What `judge` says of the result of `work` in a new thread, its error, and how often it allocated.

        All that the call made dies in its thread, whose pools go with it."""
        verdict = error = None
        made = 0

        def run():
            nonlocal verdict, error, made
            begin, end = self._begin, self._end
            try:
                begin(left, again)
                result = work()
            except Exception as raised:
                made = end()
                error = raised.with_traceback(None)
                error.__context__ = None
            else:
                made = end()
                verdict = judge(result)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return verdict, error, made


class Case:
    def __init__(self, rl, memory, name, work, report, python=False):
        self.rl, self.memory, self.name, self.work, self.report = rl, memory, name, work, report
        self.laps, self.said = (3, (SAID, SAID_BY_PYTHON)) if python else (2, (SAID,))
        self.expected = work()
        for _ in range(2):  # the first time fills what is kept for good
            self.steady, error, self.allocations = memory.run(work, self.equal)

    def equal(self, result):
        return equal(self.rl, self.expected, result)

    def fail_everywhere(self, points, started):
        """Laps over all allocations, or so many of them; the last one may leave nothing behind."""
        chosen = range(0, self.allocations, max(1, -(-self.allocations // points)))
        left = []
        for _ in range(self.laps):
            for n in chosen:
                started(n)
                self._fail_at(n)
            right, error, _ = self.memory.run(self.work, self.equal)
            if not right:
                self.report(f"{self.name}: does not succeed afterwards: {error!r}")
            error = None
            gc.collect()
            self.rl._C._cpu_empty_cache()
            left.append(self.memory.live())
        grown = left[-1] - left[-2]
        if grown > 20 + len(chosen) // 8:
            self.report(f"{self.name}: {len(chosen)} failures left {grown} blocks behind")

    def _fail_at(self, n):
        self.rl._C._cpu_empty_cache()
        right, error, _ = self.memory.run(self.work, self.equal, n, again=n % 4 == 3)
        where = f"{self.name}: allocation {n} of {self.allocations}"
        if error is None:
            if not right:
                self.report(f"{where}: another result")
        elif not isinstance(error, MemoryError) and not any(said.search(str(error)) for said in self.said):
            self.report(f"{where}: {type(error).__name__}: {str(error)[:300]}")


def equal(rl, a, b):
    """Whether two results are the same but for last digits, which another order of sums may change."""
    if isinstance(a, rl.Tensor):
        if a.layout != rl.strided:
            a, b = a.to_dense(), b.to_dense()
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.is_floating_point() or a.is_complex():
            return rl.allclose(a, b, rtol=1e-4, atol=1e-5, equal_nan=True)
        return rl.equal(a, b)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(equal(rl, x, y) for x, y in zip(a, b, strict=True))
    return True


def child(options):
    """Cases from the one that the state names on; the state always tells what runs."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    import rushlight as rl

    rl.set_num_threads(1)
    memory = Memory(os.environ["LD_PRELOAD"], options.python)
    with open(options.state, "r+b") as file:
        state = mmap.mmap(file.fileno(), STATE.size)
    first, _, failures, shard = STATE.unpack_from(state)
    cases = [*operator_cases(rl, options.only), *program_cases(rl, options.only)]

    def report(text):
        print("FOUND", text, flush=True)

    def started(n):
        nonlocal failures
        failures += 1
        STATE.pack_into(state, 0, index, n, failures, shard)

    for index in range(first, len(cases)):
        if index % options.processes != shard:
            continue
        name, make = cases[index]
        STATE.pack_into(state, 0, index, -1, failures, shard)
        try:
            case = Case(rl, memory, name, make(), report, options.python)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            continue  # a sample that the operator refuses
        if case.steady:
            case.fail_everywhere(options.points, started)
        if failures >= options.failures // options.processes:
            break
    STATE.pack_into(state, 0, len(cases), -1, failures, shard)


# --- the parent ---------------------------------------------------------------------------------------------


class Shard:
    """Every n-th case, in one child after the other."""

    def __init__(self, options, library, number, folder):
        self.options, self.number = options, number
        self.path = os.path.join(folder, f"state{number}")
        Path(self.path).write_bytes(STATE.pack(0, -1, 0, number))
        self.environment = {**os.environ, "LD_PRELOAD": str(library)}
        self.environment |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.found, self.process, self.words = [], None, []

    def state(self):
        return STATE.unpack(Path(self.path).read_bytes())

    def start(self):
        passed = ["--failures", self.options.failures, "--points", self.options.points]
        passed += ["--processes", self.options.processes, "--only", self.options.only, "--state", self.path]
        passed += ["--python"] if self.options.python else []
        command = [sys.executable, __file__, *map(str, passed)]
        self.process = subprocess.Popen(
            command, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.moved, self.seen = time.monotonic(), None
        self.reader = threading.Thread(target=self._read, args=[self.process.stdout])
        self.reader.start()

    def _read(self, stream):
        for line in stream:
            if line.startswith("FOUND "):
                self.found.append(line[6:].rstrip())
                print(line[6:], end="", flush=True)
                continue
            if LAST_WORDS.match(line) and not LAST_WORDS.match("".join(self.words[:1])):
                self.words = []
            if not LAST_WORDS.match("".join(self.words[:1])) or len(self.words) < 25:
                self.words = [*self.words[-30:], line.rstrip()]

    def poll(self):
        """Whether there is more to do."""
        state = self.state()
        if state != self.seen:
            self.moved, self.seen = time.monotonic(), state
        code = self.process.poll()
        if code is None and time.monotonic() - self.moved < SECONDS:
            return True
        if code is None:
            self.process.send_signal(signal.SIGABRT)  # which shows where it is
            self.process.wait()
        self.reader.join()
        index, n, failures, _ = self.state()
        if code == 0:
            return False
        how = f"no answer in {SECONDS} s" if code is None else f"the process ended with {code}"
        text = f"case {index}, allocation {n}: {how}\n    " + "\n    ".join(self.words[-25:])
        self.found.append(text)
        print(text, flush=True)
        self.words = []
        Path(self.path).write_bytes(STATE.pack(index + 1, -1, failures, self.number))
        self.start()
        return True


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--failures", type=int, default=1_000_000, help="to inject in all")
    parser.add_argument("--only", default="", help="cases whose name matches")
    parser.add_argument(
        "--points", type=int, default=200, help="allocations of a case that fail, spread over all"
    )
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--python", action="store_true", help="of Python's objects instead")
    parser.add_argument("--state", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.state:
        return child(options)
    with tempfile.TemporaryDirectory() as folder:
        library = build(folder)
        shards = [Shard(options, library, i, folder) for i in range(options.processes)]
        for shard in shards:
            shard.start()
        running = shards
        while running:
            time.sleep(0.2)
            running = [shard for shard in running if shard.poll()]
        failures = sum(shard.state()[2] for shard in shards)
        found = sum(len(shard.found) for shard in shards)
    print(f"{failures} failures of memory, {found} found")
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
