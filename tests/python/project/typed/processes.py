"""One process as a job: groups, collectives, stores, meshes, tensors spread over them, checkpoints."""

import datetime
import tempfile

import rushlight as torch
import rushlight.distributed as dist
from rushlight.distributed import checkpoint
from rushlight.distributed.device_mesh import DeviceMesh, init_device_mesh
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from rushlight.nn.parallel import DistributedDataParallel


def average(x: torch.Tensor, group: dist.ProcessGroup | None = None) -> torch.Tensor:
    dist.all_reduce(x, op=dist.ReduceOp.SUM, group=group)
    return x / dist.get_world_size(group)


def run(folder: str) -> None:
    store = dist.HashStore()
    store.set("key", "value")
    text: bytes = store.get("key")
    dist.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=datetime.timedelta(seconds=30))
    rank: int = dist.get_rank()
    mean = average(torch.ones(3))
    parts = [torch.zeros(3)]
    dist.all_gather(parts, mean)
    mesh: DeviceMesh = init_device_mesh("cpu", (1,), mesh_dim_names=("data",))
    spread: DTensor = distribute_tensor(torch.ones(4, 2), mesh, [Shard(0)])
    whole: torch.Tensor = spread.redistribute(mesh, [Replicate()]).full_tensor()
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    model(parts[0][None]).sum().backward()
    checkpoint.save({"weight": torch.ones(2)}, checkpoint_id=folder)
    state = {"weight": torch.zeros(2)}
    checkpoint.load(state, checkpoint_id=folder)
    assert text == b"value" and rank == 0 and mesh.size() == 1
    assert whole.shape == (4, 2) and state["weight"].sum().item() == 2
    dist.destroy_process_group()


if dist.is_gloo_available():
    with tempfile.TemporaryDirectory() as folder:
        run(folder)
