"""Processes that run out of inputs at different times, and a collective that gradients flow through."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rushlight as torch

PROGRAM = """
import sys

import rushlight as torch
from rushlight import distributed
from rushlight.distributed._functional_collectives import all_to_all_single_autograd
from rushlight.distributed.algorithms.join import Join, JoinHook, Joinable


class Hook(JoinHook):
    def __init__(self, counter):
        self.counter = counter

    def main_hook(self):
        self.counter.shadowed += 1
        distributed.all_reduce(torch.zeros(1))

    def post_hook(self, is_last_joiner):
        self.counter.last = is_last_joiner


class Counter(Joinable):
    join_device = torch.device("cpu")

    def __init__(self):
        super().__init__()
        self.seen, self.shadowed, self.last = 0, 0, None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1)
        distributed.all_reduce(one)
        self.seen += one.item()

    def join_hook(self, **kwargs):
        return Hook(self)

    @property
    def join_process_group(self):
        return distributed.group.WORLD


def main(rank, file):
    distributed.init_process_group("gloo", rank=rank, world_size=2, init_method="file://" + file)
    counter = Counter()
    with Join([counter]):
        for _ in range(3 + 2 * rank):
            counter()
    assert (counter.seen, counter.shadowed, counter.last) == ((6, 2, False), (8, 0, True))[rank]
    try:
        with Join([counter], throw_on_early_termination=True):
            for _ in range(3 + 2 * rank):
                counter()
    except RuntimeError as error:
        assert "exhausted" in str(error)
    else:
        raise AssertionError("no error")
    x = torch.arange(2.0).add(10 * rank).requires_grad_()
    y = all_to_all_single_autograd(x, [1, 1], [1, 1], None)
    assert y.tolist() == [rank, 10 + rank]
    (y * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == [1 + rank] * 2
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(main, (sys.argv[1],), 2)
"""


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build has no process groups")
def test_uneven_inputs(tmp_path):
    program = tmp_path / "uneven.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(tmp_path / "store")]
    environment = {**os.environ, "PYTHONPATH": str(Path(torch.__file__).parents[1])}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]


def test_shares_of_a_spread_tensor():
    from rushlight.distributed.tensor import Replicate, Shard
    from rushlight.distributed.tensor._utils import compute_local_shape_and_global_offset

    class Mesh:
        def __init__(self, *coordinate):
            self.coordinate = coordinate

        def get_coordinate(self):
            return list(self.coordinate)

        def size(self, dim):
            return (2, 3)[dim]

    share = compute_local_shape_and_global_offset
    assert share((8, 7), Mesh(1, 2), [Shard(0), Shard(1)]) == ((4, 1), (4, 6))
    assert share((8, 7), Mesh(1, 2), [Replicate(), Shard(0)]) == ((2, 7), (6, 0))
    assert share((1, 7), Mesh(0, 2), [Shard(1), Shard(0)]) == ((0, 4), (1, 0))


@pytest.mark.skipif(not torch.distributed.is_available(), reason="this build has no process groups")
def test_sharding_over_one_process_keeps_the_module(tmp_path):
    from rushlight import distributed
    from rushlight.distributed.fsdp import FullyShardedDataParallel, fully_shard

    distributed.init_process_group("gloo", rank=0, world_size=1, init_method=f"file://{tmp_path / 'store'}")
    try:
        layer, x = torch.nn.Linear(3, 2), torch.ones(1, 3)
        sharded = torch.nn.Linear(3, 2)
        assert fully_shard(sharded) is sharded and sharded(x).shape == (1, 2)
        wrapped = FullyShardedDataParallel(layer)
        assert wrapped.module is layer and torch.equal(wrapped(x), layer(x))
    finally:
        distributed.destroy_process_group()
