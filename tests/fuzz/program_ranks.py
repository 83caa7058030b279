"""Programs of random_programs.py in two processes: inputs are spread by chance, results gathered whole.

Both processes run this file and get each program from the fuzzer; the first one answers. What one of them
refuses is told to the other before anything is gathered. After a program in whose midst they part, they are
ended, and the next program gets new ones.
"""

import os
import pickle
import random
import select
import subprocess
import sys
import tempfile
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60  # for one program


class Ranks:
    """The fuzzer's end."""

    def __init__(self):
        self.processes = []

    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        shared = os.environ | {"RANDOM_PROGRAMS_STORE": str(Path(self.folder.name) / "store")}
        self.processes = [
            subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=shared | {"RANK": str(rank)},
            )
            for rank in range(2)
        ]
        for process in self.processes:
            self.answer(process, 5 * SECONDS)  # it has started

    def outcome(self, program):
        try:
            if not self.processes:
                self.start()
            for process in self.processes:
                pickle.dump((program.inputs, program.lines), process.stdin)
                process.stdin.flush()
            return [self.answer(process, SECONDS) for process in self.processes][0]
        except (EOFError, OSError) as error:
            self.end()
            return "raises", "Parted", f"the processes parted, or one died: {error}"

    def answer(self, process, seconds):
        if not select.select([process.stdout], [], [], seconds)[0]:
            raise TimeoutError("no answer")
        return pickle.load(process.stdout)

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()
        self.processes = []
        self.folder.cleanup()


def spread(torch, program, tensors):
    """The inputs on both processes: whole, or each with a part of a dimension."""
    from rushlight.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

    mesh, rng, made = init_device_mesh("cpu", (2,)), random.Random(program.source), []
    for tensor in tensors:
        ways = [Replicate(), *(Shard(d) for d in range(tensor.dim()))]
        part = distribute_tensor(tensor.detach(), mesh, [rng.choice(ways)])
        made.append(part.requires_grad_(tensor.requires_grad))
    return made


def run(torch, program):
    """What both processes got, whole: as `random_programs.finished`."""
    import random_programs as programs

    from rushlight.distributed.tensor.experimental import implicit_replication

    torch.manual_seed(0)
    args = spread(torch, program, programs.leaves(torch, program))
    with warnings.catch_warnings(), implicit_replication():
        warnings.simplefilter("ignore")
        results, refused = attempt(lambda: program.function(torch)(*args))
        if refused:
            return refused
        whole, refused = attempt(lambda: [gathered(v) for v in results])
        if refused:
            return refused
        found = [programs.plain(v) for v in whole]
        wanted = [(i, v) for i, v in enumerate(results) if getattr(v, "requires_grad", False)]
        if not wanted:
            return tuple(found)
        total = lambda: sum((programs.real(torch, v) * (0.5 + i % 3)).sum() for i, v in wanted)
        _, refused = attempt(lambda: total().backward())
        grads, refused = attempt(lambda: [gathered(a.grad) for a in args]) if not refused else ([], refused)
        return *found, *([("backward raises", *refused[1:])] if refused else map(programs.plain, grads))


def attempt(work):
    """What work() gives, None; or None and the error of the first process that had one."""
    from rushlight import distributed as dist

    try:
        result, error = work(), None
    except dist.DistBackendError:  # the other is elsewhere
        raise
    except Exception as raised:
        trace = traceback.extract_tb(raised.__traceback__)
        place = f"{Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else ""
        result, error = None, ("raises", type(raised).__name__, f"{raised} ({place})")
    told = [None, None]
    dist.all_gather_object(told, error)
    if None in told and told != [None, None]:
        return None, ("raises", "Parted", f"only one process raised: {told}")
    return result, told[0]


def gathered(value):
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def main():
    """One of the two processes."""
    sys.path[:0] = [str(Path(__file__).parent)]
    sys.path.append(str(ROOT))  # behind a build that the caller puts on the path
    import random_programs as programs

    import rushlight as torch
    from rushlight import distributed as dist

    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a program prints is no answer
    torch.set_num_threads(1)
    place = f"file://{os.environ['RANDOM_PROGRAMS_STORE']}"
    limit = timedelta(seconds=SECONDS - 10)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", init_method=place, rank=rank, world_size=2, timeout=limit)
    answer = "started"
    while True:
        pickle.dump(answer, answers)
        answers.flush()
        try:
            answer = run(torch, programs.Program(*pickle.load(sys.stdin.buffer)))
        except EOFError:
            return


if __name__ == "__main__":
    main()
