"""What the ranks of test_distributed.py run; each function is called as program(rank, size, file)."""

import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist


def _join(rank, size, file, seconds=60):
    torch.set_num_threads(1)
    store = dist.FileStore(file, size)
    dist.init_process_group(
        "gloo", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds)
    )


def _same(tensor, expected):
    assert tensor.tolist() == expected, (tensor, expected)


def collectives(rank, size, file):
    _join(rank, size, file)
    numbers = list(range(size))
    total = sum(numbers)
    for dtype in (torch.float32, torch.bfloat16, torch.int16, torch.complex64, torch.float64):
        t = torch.full((2, 3), rank, dtype=dtype).t()  # not contiguous
        dist.all_reduce(t)
        _same(t, [[total] * 2] * 3)
    for op, expected in [("MAX", size - 1), ("MIN", 0), ("PRODUCT", 0), ("AVG", total / size)]:
        t = torch.tensor([float(rank)])
        dist.all_reduce(t, getattr(dist.ReduceOp, op))
        _same(t, [expected])
    bits = torch.tensor([1 << rank])
    dist.all_reduce(bits, dist.ReduceOp.BOR)
    _same(bits, [(1 << size) - 1])
    t = torch.tensor([float(rank)])
    dist.broadcast(t, size - 1)
    _same(t, [size - 1])
    t = torch.tensor([float(rank)])
    dist.reduce(t, 0)
    _same(t, [total if rank == 0 else rank])
    parts = [torch.empty(2) for _ in numbers]
    assert dist.all_gather(parts, torch.full((2,), float(rank)), async_op=True).wait()
    assert [p.tolist() for p in parts] == [[r, r] for r in numbers]
    together = torch.empty(2 * size)
    dist.all_gather_into_tensor(together, torch.full((2,), float(rank)))
    _same(together, [r for r in numbers for _ in range(2)])
    mine = torch.empty(2)
    dist.reduce_scatter(mine, [torch.full((2,), float(r + rank)) for r in numbers])
    _same(mine, [total + size * rank] * 2)
    dist.scatter(mine, [torch.full((2,), float(r)) for r in numbers] if rank == 0 else None)
    _same(mine, [rank] * 2)
    parts = [torch.empty(1) for _ in numbers] if rank == 1 else None
    dist.gather(torch.tensor([float(rank)]), parts, dst=1)
    assert parts is None or [p.item() for p in parts] == numbers
    swapped = torch.empty(size)
    dist.all_to_all_single(swapped, torch.arange(size) + 10.0 * rank)
    _same(swapped, [10.0 * r + rank for r in numbers])
    uneven = [torch.full((r + 1,), float(rank)) for r in numbers]
    received = [torch.empty(rank + 1) for _ in numbers]
    dist.all_to_all(received, uneven)
    assert [t.tolist() for t in received] == [[float(r)] * (rank + 1) for r in numbers]
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def messages(rank, size, file):
    _join(rank, size, file)
    after, before = (rank + 1) % size, (rank - 1) % size
    box = torch.empty(1)
    ops = [
        dist.P2POp(dist.isend, torch.tensor([float(rank)]), after),
        dist.P2POp(dist.irecv, box, before),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    _same(box, [before])
    if rank == 0:
        senders = {dist.recv(box) for _ in range(size - 1)}
        assert senders == set(range(1, size))
    else:
        dist.send(torch.tensor([1.0]), 0)
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank, "text": "x" * rank})
    assert gathered == [{"rank": r, "text": "x" * r} for r in range(size)]
    objects = [{"a": 1}, "b"] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    assert objects == [{"a": 1}, "b"]
    own = [None]
    dist.scatter_object_list(own, [f"of {r}" for r in range(size)] if rank == 0 else None)
    assert own == [f"of {rank}"]
    collected = [None] * size if rank == 0 else None
    dist.gather_object(rank, collected)
    assert collected in (None, list(range(size)))


def groups(rank, size, file):
    _join(rank, size, file)
    even = dist.new_group(range(0, size, 2))
    t = torch.tensor([1.0])
    if rank % 2 == 0:
        dist.all_reduce(t, group=even)
        assert dist.get_process_group_ranks(even) == list(range(0, size, 2))
        assert dist.get_global_rank(even, dist.get_rank(even)) == rank
    else:
        assert even == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(even) == -1
    _same(t, [(size + 1) // 2 if rank % 2 == 0 else 1])
    mesh = dist.init_device_mesh("cpu", (2, size // 2), mesh_dim_names=("dp", "tp"))
    assert mesh.get_coordinate() == [rank // (size // 2), rank % (size // 2)]
    t = torch.tensor([float(rank)])
    dist.all_reduce(t, group=mesh["dp"].get_group())
    _same(t, [sum(r for r in range(size) if r % (size // 2) == rank % (size // 2))])
    flat = mesh["dp", "tp"]._flatten("all")
    assert flat.size() == size and flat.get_local_rank() == rank
    dist.monitored_barrier(timeout=timedelta(seconds=30))


def derivatives(rank, size, file):
    _join(rank, size, file)
    x = torch.full((2,), float(rank + 1), requires_grad=True)
    parts = dist.nn.all_gather(x)
    sum((r + 1) * part.sum() for r, part in enumerate(parts)).backward()
    _same(x.grad, [size * (rank + 1)] * 2)
    x.grad = None
    (dist.nn.all_reduce(x) * (rank + 1)).sum().backward()
    _same(x.grad, [size * (size + 1) / 2] * 2)


def one_is_late(rank, size, file):
    _join(rank, size, file, seconds=2)
    if rank == 0:
        try:
            dist.monitored_barrier(wait_all_ranks=True)
            raise AssertionError("nobody was missed")
        except RuntimeError as error:
            assert "Ranks 1 failed to pass monitoredBarrier in 2000 ms" in str(error), error
        started = time.monotonic()
        try:
            dist.all_reduce(torch.ones(3, 4))
            raise AssertionError("the other rank never came")
        except dist.DistBackendError as error:
            assert "all_reduce (float32[3, 4]; call number 1 of rank 0 of 2)" in str(error), error
        assert time.monotonic() - started < 20
    else:
        time.sleep(6)


def one_dies(rank, size, file):
    import os
    import signal

    _join(rank, size, file)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.barrier()
        raise AssertionError("the other rank is dead")
    except dist.DistBackendError as error:
        assert "barrier" in str(error)
