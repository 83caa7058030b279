"""Programs of random_programs.py over two processes: inputs are spread by chance, results gathered whole.

The first process has a partner, which runs this file; both run each program, on DTensors. What one of them
refuses is told to the other before anything is gathered.
"""

import os
import random
import subprocess
import sys
import tempfile
import traceback
import warnings
from datetime import timedelta
from pathlib import Path

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, init_device_mesh
from rushlight.distributed.tensor.experimental import implicit_replication

SECONDS = 60


class Ranks:
    """Two processes; a failure in the midst of a program ends both, and the next program gets new ones."""

    def __init__(self):
        self.partner = self.folder = None

    def start(self):
        self.folder = tempfile.TemporaryDirectory()
        path = str(Path(self.folder.name) / "store")
        environment = os.environ | {"RANDOM_PROGRAMS_STORE": path}
        self.partner = subprocess.Popen([sys.executable, __file__], env=environment)
        join(path, 0)

    def outcome(self, program):
        try:
            if self.partner is None:
                self.start()
            dist.broadcast_object_list([program.inputs, program.lines])
            return run(program)
        except (RuntimeError, TimeoutError, OSError) as error:  # of the group: the partner is elsewhere
            self.end()
            return "raises", "Parted", f"the ranks parted: {error}"

    def end(self):
        self.partner.kill()
        self.partner.wait()
        self.partner = None
        if dist.is_initialized():
            dist.destroy_process_group()
        self.folder.cleanup()


def join(path, rank):
    limit = timedelta(seconds=SECONDS)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=2, timeout=limit)


def spread(program, tensors):
    """The inputs on both processes: whole, or each with a part of a dimension."""
    mesh, rng, made = init_device_mesh("cpu", (2,)), random.Random(program.source), []
    for tensor in tensors:
        ways = [Replicate(), *(Shard(d) for d in range(tensor.dim()))]
        part = distribute_tensor(tensor.detach(), mesh, [rng.choice(ways)])
        made.append(part.requires_grad_(tensor.requires_grad))
    return made


def run(program):
    """What both processes got, whole: as `random_programs.finished`."""
    import random_programs as programs

    torch.manual_seed(0)
    args = spread(program, programs.leaves(torch, program))
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
    try:
        result, error = work(), None
    except Exception as raised:
        trace = traceback.extract_tb(raised.__traceback__)
        place = f"{Path(trace[-1].filename).name}:{trace[-1].lineno}" if trace else ""
        result, error = None, ("raises", type(raised).__name__, f"{raised} ({place})")
    told = [None, None]
    dist.all_gather_object(told, error)
    if told[0] != told[1] and None in told:
        return None, ("raises", "Parted", f"only one process raised: {told}")
    return result, told[0]


def gathered(value):
    return value.full_tensor() if isinstance(value, DTensor) else value


def main():
    sys.path[:0] = [str(Path(__file__).parent)]
    import random_programs as programs

    join(os.environ["RANDOM_PROGRAMS_STORE"], 1)
    while True:
        told = [None, None]
        try:
            dist.broadcast_object_list(told)
            run(programs.Program(*told))
        except RuntimeError:  # the first process is gone, or elsewhere
            return


if __name__ == "__main__":
    main()
