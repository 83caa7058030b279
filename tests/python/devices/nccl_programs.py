"""What the ranks of test_nccl.py run: python nccl_programs.py NAME,NAME... SIZE, on any devices.

Every program is called as program(rank, size), the process group made, with a device of its own.
"""

import os
import sys
import tempfile
import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.cuda import nccl

LIBRARY = os.environ.get("RUSHLIGHT_NCCL_LIBRARY")


def _fail_next(code):
    import ctypes

    ctypes.CDLL(LIBRARY).emulated_nccl_fail(code)


def premultiplied(rank, size):
    total = sum(range(1, size + 1))
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        t = torch.full((3,), 2.0, dtype=dtype, device="cuda")
        on_device = torch.tensor([rank + 1], dtype=dtype, device="cuda")
        for factor in (float(rank + 1), on_device):  # the ranks' own factors
            op = dist._make_nccl_premul_sum(factor)
            assert op == dist.ReduceOp.PREMUL_SUM
            summed, parts, first = t.clone(), torch.zeros(1, dtype=dtype, device="cuda"), t.clone()
            dist.all_reduce(summed, op)
            assert summed.tolist() == [2 * total] * 3, summed
            dist.reduce_scatter_tensor(parts, torch.full((size,), 3.0, dtype=dtype, device="cuda"), op)
            assert parts.tolist() == [3 * total], parts
            dist.reduce(first, 0, op)
            assert first.tolist() == [2 * total if rank == 0 else 2] * 3, first
    for wrong, operand in ((2.0, torch.ones(2, dtype=torch.int64)), (torch.ones(2), torch.ones(2))):
        try:
            dist.all_reduce(operand.cuda(), dist._make_nccl_premul_sum(wrong))
        except (TypeError, ValueError) as error:
            assert "PREMUL_SUM" in str(error), error
        else:
            raise AssertionError("a factor that does not fit was taken")


def collectives(rank, size):
    numbers, total = list(range(size)), size * (size - 1) // 2
    assert dist.get_backend() == "nccl" and dist.is_nccl_available() and nccl.is_available()
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.complex64, torch.float64):
        t = torch.full((2, 3), rank, dtype=dtype, device="cuda").t()  # not contiguous
        dist.all_reduce(t)
        assert t.tolist() == [[total] * 2] * 3, (dtype, t)
    for op, expected in [("MAX", size - 1), ("MIN", 0), ("PRODUCT", 0), ("AVG", total / size)]:
        t = torch.tensor([float(rank)], device="cuda")
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        assert t.item() == expected
    premultiplied(rank, size)
    flags = torch.tensor([rank == 0, False, True], device="cuda")
    dist.all_reduce(flags)  # of booleans: any
    assert flags.tolist() == [True, False, True]
    t = torch.tensor([float(rank)], device="cuda")
    dist.broadcast(t, size - 1)
    assert t.item() == size - 1
    t = torch.tensor([float(rank)], device="cuda")
    dist.reduce(t, 0)
    assert t.item() == (total if rank == 0 else rank)
    parts = [torch.empty(2, device="cuda") for _ in numbers]
    assert dist.all_gather(parts, torch.full((2,), float(rank), device="cuda"), async_op=True).wait()
    assert [p.tolist() for p in parts] == [[r, r] for r in numbers]
    together = torch.empty(2 * size, device="cuda")
    dist.all_gather_into_tensor(together, torch.full((2,), float(rank), device="cuda"))
    assert together.tolist() == [r for r in numbers for _ in range(2)]
    mine = torch.empty(2, device="cuda")
    dist.reduce_scatter(mine, [torch.full((2,), float(r + rank), device="cuda") for r in numbers])
    assert mine.tolist() == [total + size * rank] * 2
    given = [torch.full((2,), float(r), device="cuda") for r in numbers] if rank == 0 else None
    dist.scatter(mine, given)
    assert mine.tolist() == [rank] * 2
    parts = [torch.empty(1, device="cuda") for _ in numbers] if rank == 1 else None
    dist.gather(torch.tensor([float(rank)], device="cuda"), parts, dst=1)
    assert parts is None or [p.item() for p in parts] == numbers
    swapped = torch.empty(size, device="cuda")
    dist.all_to_all_single(swapped, torch.arange(size, device="cuda") + 10.0 * rank)
    assert swapped.tolist() == [10.0 * r + rank for r in numbers]
    received = [torch.empty(rank + 1, device="cuda") for _ in numbers]
    dist.all_to_all(received, [torch.full((r + 1,), float(rank), device="cuda") for r in numbers])
    assert [t.tolist() for t in received] == [[float(r)] * (rank + 1) for r in numbers]
    names = [None] * size
    dist.all_gather_object(names, {"rank": rank})
    assert names == [{"rank": r} for r in numbers]
    box = [f"from {rank}"]
    dist.broadcast_object_list(box, src=1)
    assert box == ["from 1"]
    dist.barrier()
    for wrong, said in [
        (lambda: dist.all_reduce(torch.ones(1)), "takes dense CUDA tensors"),
        (lambda: dist.all_reduce(torch.ones(1, dtype=torch.int16).cuda()), "not supported for NCCL"),
        (lambda: dist.all_reduce(torch.ones(1).long().cuda(), dist.ReduceOp.BXOR), "ReduceOp.BXOR with NCCL"),
    ]:
        try:
            wrong()
        except (RuntimeError, TypeError) as error:
            assert said in str(error), error
        else:
            raise AssertionError(said)


def order(rank, size):
    """Collectives wait for the stream of their caller, and it waits for them only when asked to."""
    x = torch.ones(1 << 16, device="cuda")
    for _ in range(5):
        y = x * (rank + 1)  # memory that the next turn's y would get, were it given back too early
        work = dist.all_reduce(y, async_op=True)
        z = torch.full_like(y, -1.0)
        work.wait()
        assert (y + z).sum().item() == (size * (size + 1) / 2 - 1) * x.numel()
    works = [dist.all_reduce(torch.full((9,), float(i), device="cuda"), async_op=True) for i in range(20)]
    assert [w.result()[0][0].item() for w in works] == [size * i for i in range(20)]
    work.wait(timedelta(seconds=60))  # of the host
    assert work.is_completed() and work.is_success()
    future = dist.all_reduce(torch.ones(4, device="cuda"), async_op=True).get_future()
    doubled = future.then(lambda f: f.value()[0] * 2)
    assert doubled.wait().tolist() == [2.0 * size] * 4
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        t = torch.full((1000,), float(rank), device="cuda")
        dist.all_reduce(t)
        assert t[-1].item() == size * (size - 1) / 2


def messages(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    box = torch.empty(3, device="cuda")
    ops = [
        dist.P2POp(dist.isend, torch.full((3,), float(rank), device="cuda"), after),
        dist.P2POp(dist.irecv, box, before),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert box.tolist() == [before] * 3
    if rank == 0:
        dist.send(torch.arange(4.0, device="cuda"), 1)
    elif rank == 1:
        assert dist.recv(box := torch.empty(4, device="cuda"), 0) == 0
        assert box.tolist() == [0, 1, 2, 3]
    tensors = [torch.full((i + 1,), float(rank + i), device="cuda") for i in range(3)]
    with dist._coalescing_manager(device="cuda", async_ops=True) as manager:
        for t in tensors:
            dist.all_reduce(t)
    manager.wait()
    assert [t[0].item() for t in tensors] == [size * (size - 1) / 2 + size * i for i in range(3)]
    sums = [torch.ones(2, device="cuda"), torch.ones(3, device="cuda")]
    dist.all_reduce_coalesced(sums)
    assert sums[1].tolist() == [size] * 3


def several_backends(rank, size):
    assert str(dist.get_backend_config()) == "cpu:gloo,cuda:nccl"
    for device in ("cpu", "cuda"):
        t = torch.tensor([float(rank)], device=device)
        dist.all_reduce(t)
        assert t.item() == size * (size - 1) / 2
    recorded = [entry["profiling_name"] for entry in dist.flight_recorder.contents()["entries"]]
    assert recorded[-2:] == ["gloo:all_reduce", "nccl:all_reduce"]
    mine, all_groups = dist.new_subgroups()  # as many ranks as there are devices
    assert mine in all_groups and dist.get_world_size(mine) == torch.cuda.device_count()
    names = [None] * size
    dist.all_gather_object(names, rank)
    assert names == list(range(size))
    half = dist.new_group([0], backend="nccl")
    if rank == 0:
        t = torch.ones(2, device="cuda")
        dist.all_reduce(t, group=half)
        assert t.tolist() == [1, 1]


def data_parallel(rank, size):
    """DistributedDataParallel on devices computes what one process does with all of the data."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(6, 32), torch.nn.BatchNorm1d(32), torch.nn.Tanh(), torch.nn.Linear(32, 2)]
    model = torch.nn.Sequential(*layers).cuda()
    alone = torch.nn.Sequential(torch.nn.Linear(6, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)).cuda()
    data = torch.randn(4 * size, 6)
    for wrapped, views in ((alone, False), (alone, True)):
        import copy

        single, shared = copy.deepcopy(wrapped), copy.deepcopy(wrapped)
        parallel = torch.nn.parallel.DistributedDataParallel(
            shared,
            device_ids=[torch.cuda.current_device()],
            gradient_as_bucket_view=views,
            bucket_cap_mb=0.001,
        )
        one = torch.optim.SGD(single.parameters(), lr=0.1)
        many = torch.optim.SGD(parallel.parameters(), lr=0.1)
        for _ in range(3):
            one.zero_grad(), many.zero_grad()
            single(data.cuda()).square().mean().backward()
            parallel(data[4 * rank : 4 * rank + 4]).square().mean().backward()
            one.step(), many.step()
        for a, b in zip(single.parameters(), shared.parameters()):
            assert a.cpu().allclose(b.cpu(), atol=1e-6)
    hooked = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])

    def average(state, bucket):
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda f: f.value()[0].div_(size))

    hooked.register_comm_hook(None, average)
    hooked(data[4 * rank : 4 * rank + 4]).sum().backward()
    grads = [torch.empty_like(layers[0].weight) for _ in range(size)]
    dist.all_gather(grads, layers[0].weight.grad)
    assert all(g.equal(grads[0]) for g in grads) and grads[0].abs().sum().item() > 0


def a_late_rank(rank, size):
    """Who waits too long is told by the watchdog, and the group is of no more use."""
    dist.all_reduce(torch.ones(1, device="cuda"))  # connects
    torch.cuda.synchronize()
    dist.group.WORLD.set_timeout(timedelta(seconds=1))
    if rank == 1:
        time.sleep(4)
        return
    t = torch.ones(3, device="cuda")
    work = dist.all_reduce(t, async_op=True)
    deadline = time.monotonic() + 20
    while not work.is_completed() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert work.is_completed() and not work.is_success()
    for call in (work.wait, lambda: dist.all_reduce(t)):
        try:
            call()
        except dist.DistBackendError as error:
            assert "Watchdog caught" in str(error) and "OpType=ALL_REDUCE" in str(error), error
            assert "Missing ranks: 1" in str(error) or "rank 1" in str(error), error
        else:
            raise AssertionError("a call after the failure")
    torch.cuda.synchronize()  # what was given up holds nobody


def never_connected(rank, size):
    if rank == 1:
        time.sleep(3)
        return
    try:
        dist.all_reduce(torch.ones(1, device="cuda"))
    except dist.DistBackendError as error:
        assert "waits for the others to connect" in str(error), error
    else:
        raise AssertionError("connected to nobody")


def remote_failure(rank, size):
    t = torch.ones(1, device="cuda")
    dist.all_reduce(t)
    torch.cuda.synchronize()
    if rank == 1:
        time.sleep(2)
        return
    work = dist.all_reduce(t, async_op=True)
    _fail_next(6)
    deadline = time.monotonic() + 20
    while not work.is_completed() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "remote process exited" in str(work.exception()), work.exception()


def _rank(rank, names, size, file):

    torch.set_num_threads(1)
    torch.cuda.set_device(rank % torch.cuda.device_count())
    seconds = 1 if names == "never_connected" else 60
    backend = None if names == "several_backends" else "nccl"
    store = dist.FileStore(file, size)
    dist.init_process_group(
        backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds)
    )
    for name in names.split(","):
        globals()[name](rank, size)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        size = int(sys.argv[2])
        mp.spawn(_rank, args=(sys.argv[1], size, os.path.join(folder, "store")), nprocs=size)
