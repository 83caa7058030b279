"""Storages and planners of one's own, and what the ranks of test_checkpoint_planners.py run."""

import io
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight.distributed import checkpoint as dcp
from rushlight.distributed.checkpoint.storage import WriteResult
from rushlight.futures import Future


def done(value):
    future = Future()
    future.set_result(value)
    return future


class Memory(dcp.StorageWriter, dcp.StorageReader):
    """A storage in a dict, which counts what it is asked."""

    def __init__(self, contents):
        self.contents, self.asked = contents, []

    def reset(self, checkpoint_id=None):
        self.asked.append("reset")

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.asked.append(f"set up {is_coordinator}")

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self.metadata = metadata

    def prepare_local_plan(self, plan):
        self.asked.append("local")
        return plan

    def prepare_global_plan(self, plans):
        self.asked.append(f"global {len(plans)}")
        return plans

    def write_data(self, plan, planner):
        results = []
        for item in plan.items:
            data = planner.resolve_data(item)
            self.contents[item.index] = data.getvalue() if isinstance(data, io.BytesIO) else data.clone()
            results.append(WriteResult(item.index, 1, None))
        return done(results)

    def finish(self, metadata, results):
        self.contents["index"] = metadata

    def read_metadata(self):
        return self.contents["index"]

    def read_data(self, plan, planner):
        for item in plan.items:
            data = self.contents[item.storage_index]
            if item.type.name == "BYTE_IO":
                planner.load_bytes(item, io.BytesIO(data))
                continue
            for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths)):
                data = data.narrow(dim, begin, length)
            target = planner.resolve_tensor(item)
            target.copy_(data)
            planner.commit_tensor(item, target)
        return done(None)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return True


class Renames(dcp.DefaultSavePlanner):
    """Every name gets a prefix."""

    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        super().set_up_planner({f"old.{k}": v for k, v in state_dict.items()}, storage_meta, is_coordinator)


class Halves(dcp.DefaultSavePlanner):
    """Floating tensors are written as half."""

    def transform_object(self, write_item, object):
        value = super().transform_object(write_item, object)
        return value.half().to(value.dtype) if torch.is_tensor(value) else value


class Doubles(dcp.DefaultLoadPlanner):
    """Tensors are doubled after reading."""

    def commit_tensor(self, read_item, tensor):
        tensor.mul_(2)


class Fails(dcp.FileSystemWriter):
    def write_data(self, plan, planner):
        if dist.get_rank() == 1:
            raise OSError("disk full")
        return super().write_data(plan, planner)


def together(rank, size, file):
    torch.set_num_threads(1)
    store = dist.FileStore(file, size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    mesh = dist.init_device_mesh("cpu", (size,))
    whole = torch.arange(10.0)
    spread = dist.tensor.distribute_tensor(whole, mesh, [dist.tensor.Shard(0)])
    try:
        dcp.save({"x": spread}, storage_writer=Fails(f"{file}_failed"))
        raise AssertionError("a rank could not write")
    except (OSError, dcp.CheckpointException) as error:
        assert "disk full" in str(error)
        assert isinstance(error, OSError if rank == 1 else dcp.CheckpointException)
    dcp.save({"x": spread, "n": rank}, checkpoint_id=f"{file}_good", planner=Renames())
    state = {"old": {"x": torch.zeros(10), "n": None}}
    dcp.load(state, checkpoint_id=f"{file}_good", planner=Doubles())
    assert state["old"]["x"].tolist() == (2 * whole).tolist() and state["old"]["n"] in range(size)
    memory = Memory({})
    dcp.save({"x": torch.ones(3)}, storage_writer=memory)
    first = ["reset", f"set up {rank == 0}", "local"]
    assert memory.asked == first + ([f"global {size}"] if rank == 0 else []), memory.asked
