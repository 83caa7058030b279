"""Jobs of several processes on one machine: collectives on Gloo, data-parallel training, start-up."""

import atexit
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.nn.parallel import DistributedDataParallel

from .. import models
from ..case import Case
from ..models import sequence, small, vision

NETWORKS = {
    "MLP": small.mlp,
    "NCF": small.ncf,
    "LSTM": sequence.lstm,
    "GPT": sequence.gpt,
    "BERT": sequence.bert,
    "MobileNetV2": vision.mobilenet,
    "ResNet-50": vision.resnet50,
    "AlexNet": vision.alexnet,
}
TINY, MEASURED = "tiny", "measured"


def pick(which):
    return lambda measured, tiny: tiny if which == TINY else measured


# --- what both processes of a job do


def repeated(collective, count):
    def run():
        for _ in range(count):
            collective()

    return run


def reducing(numbers, count=1, dtype=torch.float32):
    tensor = torch.ones(numbers, dtype=dtype)
    return repeated(lambda: dist.all_reduce(tensor, dist.ReduceOp.MAX), count)


def summing(numbers, count=1):
    tensor = torch.zeros(numbers)
    return repeated(lambda: dist.all_reduce(tensor), count)


def gathering(numbers):
    part, whole = torch.ones(numbers // 2), torch.empty(numbers // 2 * 2)
    return lambda: dist.all_gather_into_tensor(whole, part)


def scattering(numbers):
    part, whole = torch.empty(numbers // 2), torch.ones(numbers // 2 * 2)
    return lambda: dist.reduce_scatter_tensor(part, whole)


def broadcasting(numbers):
    tensor = torch.ones(numbers)
    return lambda: dist.broadcast(tensor, 0)


def averaging(build, sizes):
    """A training step of a network whose gradients are averaged over the processes."""
    torch.manual_seed(dist.get_rank())
    with models.wrapping(DistributedDataParallel):
        return build(sizes, nullcontext).train


def programs(sizes):
    """By the names of rows: what makes the function to time, in each process."""
    found = {"barrier": lambda: repeated(dist.barrier, sizes(50, 2))}
    for name, numbers, count in (
        ("1 KB", 2**8, 50),
        ("64 KB", 2**14, 20),
        ("1 MB", 2**18, 5),
        ("16 MB", 2**22, 1),
        ("64 MB", 2**24, 1),
    ):
        numbers, count = sizes(numbers, 16), sizes(count, 1)
        found[f"all_reduce/{name}"] = partial(summing, numbers, count)
    half = torch.bfloat16
    found["all_reduce/8 MB bfloat16, maximum"] = partial(reducing, sizes(2**22, 16), dtype=half)
    found["broadcast/16 MB"] = partial(broadcasting, sizes(2**22, 16))
    found["all_gather/16 MB"] = partial(gathering, sizes(2**22, 16))
    found["reduce_scatter/16 MB"] = partial(scattering, sizes(2**22, 16))
    for name, build in NETWORKS.items():
        found[f"data parallel/{name}"] = partial(averaging, build, sizes)
    return found


# --- the job: this process, and a partner that follows it


def follow(orders, port, threads, which):
    """The partner: prepares and runs what it is told, until nobody tells it any more."""
    torch.set_num_threads(threads)
    join_group(dist.TCPStore("127.0.0.1", port, 2, False), 1)
    prepare, run = programs(pick(which)), None
    try:
        while (order := orders.recv()) is not None:
            if order:
                run = None
                run = prepare[order]()
            elif run is not None:
                run()
            orders.send("")
    except EOFError:
        pass


def join_group(store, rank):
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)


@cache
def partner(which):
    """The end of a pipe to the partner of this process, which starts with the first row that needs it."""
    context = multiprocessing.get_context("spawn")
    orders, theirs = context.Pipe()
    store = dist.TCPStore("127.0.0.1", 0, 2, True, wait_for_workers=False)
    process = context.Process(
        target=follow, args=(theirs, store.port, torch.get_num_threads(), which), daemon=True
    )
    process.start()
    theirs.close()
    join_group(store, 0)

    def leave():
        orders.close()
        dist.destroy_process_group()
        process.join(10)

    atexit.register(leave)
    return orders


@contextmanager
def together(name, which):
    """The function that runs a row in both processes at once."""
    orders = partner(which)

    orders.send(name)
    own = programs(pick(which))[name]()
    orders.recv()

    def run():
        orders.send("")
        own()
        orders.recv()

    yield run


# --- jobs from their start

FIRST_SUM = """
import torch, torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
assert total.item() == dist.get_world_size()
dist.destroy_process_group()
"""


@contextmanager
def launching(ranks):
    """A job of the launcher, from its start to its end."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(FIRST_SUM)
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command = [*launcher, "--nproc-per-node", str(ranks), program]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        run = partial(
            subprocess.run,
            command,
            env=environment,
            check=True,
            timeout=250,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        yield run


def cases(sizes):
    which = sizes(MEASURED, TINY)
    for name in programs(sizes):
        yield Case(name, partial(together, name, which))
    ranks = sizes(8, 2)
    yield Case(f"start-up/{ranks} ranks", lambda: launching(ranks), process="start-up")
