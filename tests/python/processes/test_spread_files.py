"""Files of tensors that are spread over processes: PyTorch's here, and ours there."""

import subprocess
import sys

import pytest

import rushlight as rl
from rushlight._command.names import is_aliased
from rushlight.distributed._mesh_layout import layout_of, ranks_of

PROGRAM = """
import sys
import {name} as torch
from {name}.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from {name}.distributed.device_mesh import DeviceMesh

mode, path, rank = sys.argv[1], sys.argv[2], int(sys.argv[3])
ranks = torch.arange(4).view(2, 2)
mesh = DeviceMesh("cpu", ranks, mesh_dim_names=("dp", "tp"), _init_backend=False, _rank=rank)
line = DeviceMesh("cpu", [0, 1, 2, 3], _init_backend=False, _rank=rank)
if mode == "save":
    whole = torch.arange(24.0).reshape(4, 6)
    cut = distribute_tensor(whole, mesh, [Shard(0), Shard(1)], src_data_rank=None)
    rows = distribute_tensor(whole, line, [Shard(0)], src_data_rank=None)
    term = DTensor.from_local(whole, mesh, [Partial(), Replicate()])
    torch.save({{"cut": torch.nn.Parameter(cut), "rows": rows, "term": term}}, path)
else:
    for name, x in torch.load(path).items():
        assert isinstance(x, DTensor) and x.device_mesh == (line if name == "rows" else mesh)
        print(name, isinstance(x, torch.nn.Parameter), tuple(x.shape), x.stride(), x.requires_grad, end=" ")
        print(*x.placements, x.to_local().tolist(), x.device_mesh.mesh.tolist(), x.device_mesh.mesh_dim_names)
"""


def _run(name, *arguments):
    command = [sys.executable, "-c", PROGRAM.format(name=name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(is_aliased(), reason="needs PyTorch itself")
def test_files_of_spread_tensors_read_the_same_on_both_sides(tmp_path, rank=3):
    pytest.importorskip("torch")
    for writer in ("rushlight", "torch"):
        path = tmp_path / f"{writer}.pt"
        _run(writer, "save", path, rank)
        ours, theirs = (_run(reader, "load", path, rank) for reader in ("rushlight", "torch"))
        assert ours == theirs and ours.count("\n") == 3


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4), (2, 1, 3), (2, 2, 2)])
def test_a_layout_gives_back_the_ranks(shape):
    root = rl.arange(rl.Size(shape).numel()).view(shape) * 3
    ranks = root.flatten().tolist()
    for rank in ranks:
        at = (root == rank).nonzero()[0].tolist()
        for dim in range(len(shape)):
            index = tuple(slice(None) if d == dim else at[d] for d in range(len(shape)))
            assert ranks_of(layout_of(root[index], ranks), ranks, rank) == root[index].tolist()
    assert ranks_of(layout_of(root, ranks), ranks, ranks[-1]) == ranks


def test_ranks_that_no_strides_describe_have_no_layout():
    assert layout_of(rl.tensor([0, 1, 3]), [0, 1, 2, 3]) is None
    assert layout_of(rl.tensor([0, 5]), [0, 1, 2, 3]) is None
