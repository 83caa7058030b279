"""What the ranks of test_program_backends.py run: process groups that a program writes."""

from datetime import timedelta

from distributed_programs import _join

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.nn.parallel import DistributedDataParallel

calls: list = []


class Done(dist.Work):
    """A call that is over; it counts how often it was waited for."""

    def __init__(self, result):
        super().__init__()
        self.given, self.waits = result, 0

    def wait(self, timeout):
        self.waits += 1
        return True

    def get_future(self):
        future = torch.futures.Future()
        future.set_result(self.given)
        return future


class Wrapped(dist.ProcessGroup):
    """Collectives of a group of Gloo, by the methods of PyTorch's process groups."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        from rushlight.distributed._gloo_group import GlooGroup

        self.inner = GlooGroup(store, rank, size, timeout)

    def getBackendName(self):
        return "wrapped"

    def allreduce(self, tensors, options):
        calls.append(("allreduce", options.reduceOp))
        return self.inner.all_reduce(tensors, options.reduceOp, True)

    def broadcast(self, tensors, options):
        calls.append(("broadcast", options.rootRank, options.rootTensor))
        return self.inner.broadcast(tensors[0], options.rootRank, True)

    def allgather(self, lists, tensors, options):
        calls.append(("allgather", len(lists), len(tensors)))
        return self.inner.all_gather(lists[0], tensors[0], True)

    def reduce_scatter(self, tensors, lists, options):
        calls.append(("reduce_scatter", len(lists[0])))
        return self.inner.reduce_scatter(tensors[0], torch.cat(lists[0]), options.reduceOp, True)

    def scatter(self, tensors, lists, options):
        calls.append(("scatter", len(lists)))
        return self.inner.scatter(tensors[0], lists[0] if lists else None, options.rootRank, True)

    def alltoall_base(self, output, input, output_rows, input_rows, options):
        calls.append(("alltoall_base", output_rows, input_rows))
        return self.inner.all_to_all(output, input, output_rows, input_rows, True)

    def barrier(self, options):
        calls.append(("barrier", options.timeout))
        return self.inner.barrier(True)

    def send(self, tensors, rank, tag):
        return self.inner.send(tensors[0], rank, tag)

    def recv(self, tensors, rank, tag):
        return self.inner.receive(tensors[0], rank, tag)


def registered(rank, size, file):
    """Every collective reaches the methods; what is not defined is named."""
    torch.set_num_threads(1)
    dist.Backend.register_backend("wrapped", Wrapped)
    dist.init_process_group("wrapped", store=dist.FileStore(file, size), rank=rank, world_size=size)
    assert dist.get_backend() == "wrapped"
    x = torch.tensor([1.0, 2.0]) * (rank + 1)
    total = x.clone()
    dist.all_reduce(total)
    assert total.tolist() == [3.0, 6.0] and calls.pop() == ("allreduce", dist.ReduceOp.SUM)
    work = dist.all_reduce(x.clone(), dist.ReduceOp.MAX, async_op=True)
    work.wait()
    dist.broadcast(x, 1)
    assert x.tolist() == [2.0, 4.0] and calls.pop() == ("broadcast", 1, 0)
    stacked = torch.zeros(2 * size)
    dist.all_gather_into_tensor(stacked, x + rank)
    assert stacked.tolist() == [2.0, 4.0, 3.0, 5.0] and calls.pop() == ("allgather", 1, 1)
    part = torch.zeros(2)
    dist.reduce_scatter_tensor(part, torch.arange(4.0))
    assert part.tolist() == [4.0 * rank, 4.0 * rank + 2] and calls.pop() == ("reduce_scatter", size)
    dist.scatter(part, [x, x + 1] if rank == 0 else None, src=0)
    assert part.tolist() == [2.0 + rank, 4.0 + rank] and calls.pop() == ("scatter", int(rank == 0))
    swapped = [torch.zeros(1), torch.zeros(1)]
    dist.all_to_all(swapped, [torch.tensor([10.0 * rank]), torch.tensor([10.0 * rank + 1])])
    assert [t.item() for t in swapped] == [float(rank), 10.0 + rank]
    dist.barrier()
    assert calls.pop() == ("barrier", timedelta(0))
    found = [None] * size
    dist.all_gather_object(found, {"rank": rank})
    assert found == [{"rank": r} for r in range(size)]
    if rank == 0:
        dist.send(x, 1)
    else:
        dist.recv(x, 0)
    try:
        dist.reduce(x, 0)
    except NotImplementedError as error:
        assert "Backend Wrapped does not support reduce: define Wrapped.reduce" in str(error)
    else:
        raise AssertionError("a call that no method serves")
    _trains(DistributedDataParallel(_net()), rank, size)
    dist.destroy_process_group()


def _net():
    torch.manual_seed(0)
    return nn.Linear(3, 2)


def _trains(net, rank, size):
    rows = torch.arange(6.0 * size).view(2 * size, 3)
    net(rows.chunk(size)[rank]).square().mean().backward()
    whole = _net()
    whole(rows).square().mean().backward()
    assert torch.allclose(net.module.weight.grad, whole.weight.grad)


class Lonely(dist.ProcessGroup):
    """A group of one that nobody registered."""

    def __init__(self):
        super().__init__(0, 1)
        self.works = []

    def getBackendName(self):
        return "lonely"

    def _finished(self, result):
        self.works.append(Done(result))
        return self.works[-1]

    def allreduce(self, tensors, options):
        return self._finished(tensors)

    def broadcast(self, tensors, options):
        return self._finished(tensors)

    def allgather(self, lists, tensors, options):
        for output, tensor in zip(lists[0], tensors):
            output.copy_(tensor)
        return self._finished(lists)


def given(rank, size, file):
    """A group that is passed to DistributedDataParallel and to collectives, beside those of a job."""
    _join(rank, size, file)
    group = Lonely()
    _trains(DistributedDataParallel(_net(), process_group=group), 0, 1)
    assert group.works and any(work.waits for work in group.works)
    outputs = [torch.zeros(2)]
    dist.all_gather(outputs, torch.ones(2), group=group)
    assert outputs[0].tolist() == [1, 1] and group.size() == 1 and group.name() == "lonely"
    assert dist.get_world_size(group) == 1 and dist.get_world_size() == size
    assert dist.get_backend_config(group) == "lonely" and dist.get_backend_config() == "cpu:gloo"


def flattened(rank, size, file):
    """A flattened dimension beside another one, and meshes of groups that do not fit."""
    _join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", (1, 2, 2), mesh_dim_names=("copies", "shards", "parts"))
    line = mesh["shards", "parts"]._flatten("both")
    both = mesh["copies", "both"]
    assert both.mesh.tolist() == [[0, 1, 2, 3]] and both.get_coordinate() == [0, rank]
    assert both.get_group("both") is mesh.get_group("both") is line.get_group()
    assert mesh["both"] is line
    world = dist.group.WORLD
    for groups, ranks, words in (
        (world, [[0, 1], [2, 3]], "Invalid mesh [[0, 1], [2, 3]] for ProcessGroup with ranks [0, 1, 2, 3]"),
        ([world, world], [0, 1, 2, 3], "Expects mesh with ndim equal to number of ProcessGroups"),
    ):
        try:
            dist.DeviceMesh.from_group(groups, "cpu", ranks)
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
