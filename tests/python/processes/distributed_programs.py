"""What the ranks of test_distributed.py run; each function is called as program(rank, size, file)."""

import os
import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist


def _join(rank, size, file, seconds=60):
    torch.set_num_threads(1)
    store = dist.FileStore(file, size)
    backend = os.environ.get("RUSHLIGHT_TEST_BACKEND", "gloo")
    dist.init_process_group(
        backend, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=seconds)
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
    z = torch.tensor([rank + 1j])
    dist.all_reduce(z.conj())  # a view whose memory holds other numbers
    _same(z, [complex(total, size)])
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
    _refuses(RuntimeError, "input tensor list size 1", dist.all_to_all, received, uneven[:1])
    _refuses(RuntimeError, "output tensor list size 1", dist.all_to_all, received[:1], uneven)
    mixed = [uneven[0].double(), *uneven[1:]]
    _refuses(ValueError, "different dtypes", dist.all_to_all, received, mixed)
    _refuses(ValueError, "different dtypes", dist.all_to_all_single, swapped.double(), swapped)
    _sums_of_sparse(rank, size)
    _refused_roots_and_lists(rank, size)
    dist.barrier()
    dist.destroy_process_group()
    assert not dist.is_initialized()


def _sums_of_sparse(rank, size):
    """Ranks hold different numbers of elements, one of them none."""
    for dense in ((), (3,)):
        entries = list(range(rank))
        own = torch.sparse_coo_tensor(
            torch.tensor([entries]).view(1, -1).long(), torch.ones(len(entries), *dense), (size + 1, *dense)
        )
        dist.all_reduce(own)
        want = torch.tensor([float(size - 1 - n) if n < size else 0.0 for n in range(size + 1)])
        assert own.is_coalesced() and own._nnz() == size - 1
        _same(own.to_dense().view(size + 1, -1)[:, 0], want.tolist())
    later = torch.eye(2).to_sparse()
    dist.all_reduce(later, async_op=True).wait()
    _same(later.to_dense(), [[size, 0.0], [0.0, size]])
    _refuses(RuntimeError, "only works with ReduceOp.SUM", dist.all_reduce, later, dist.ReduceOp.MAX)


def _refused_roots_and_lists(rank, size):
    """Every rank is refused before anything is sent, so that the group goes on."""
    one, many, fits = torch.ones(2), [torch.ones(2)] * (size + 1), [torch.ones(2)] * size
    for call in (dist.broadcast, dist.reduce):
        for root in (size, -1):
            _refuses(RuntimeError, f"invalid root rank: {root}", call, one, root)
        _refuses(ValueError, "Must specify global_rank or group_rank", call, one)
        _refuses(TypeError, "", call, one, 0.0)
    for call in (dist.gather, dist.scatter):
        _refuses(RuntimeError, f"invalid root rank: {size}", call, one, None, size)
        if rank == 0:
            _refuses(RuntimeError, f"list size {size + 1}", call, one, many)
            _refuses(RuntimeError, "invalid tensor size at index 0", call, torch.ones(3), fits)
    _refuses(RuntimeError, f"expected length {size}, got {size + 1}", dist.all_gather, many, one)
    _refuses(RuntimeError, "invalid tensor size at index 0", dist.all_gather, fits, torch.ones(3))
    _refuses(ValueError, "different dtypes", dist.all_gather, fits, one.double())
    _refuses(RuntimeError, "must be equal to world_size", dist.all_gather_into_tensor, one, torch.ones(7))
    _refuses(RuntimeError, "must be world size", dist.reduce_scatter, one, many)
    _refuses(RuntimeError, "invalid tensor size", dist.reduce_scatter, torch.ones(3), fits)
    _refuses(RuntimeError, "must be the same size", dist.reduce_scatter_tensor, one, torch.ones(7))
    rows, call = torch.ones(size + 1), dist.all_to_all_single
    _refuses(RuntimeError, "does not divide equally", call, rows, rows)
    _refuses(RuntimeError, "not equal to group size", call, rows, rows, [size + 1], [size + 1])
    _refuses(RuntimeError, "doesn't match total dim 0", call, rows, rows, [1] * size, [1] * size)
    negative = [-1, size + 2] + [0] * (size - 2)
    _refuses(RuntimeError, "doesn't match total dim 0", call, rows, rows, negative, negative)
    for call in (dist.send, dist.recv):
        _refuses(RuntimeError, f"{size} is no rank", call, one, size)


def _refuses(error, words, function, *args):
    try:
        function(*args)
    except error as e:
        assert words in str(e), e
    else:
        raise AssertionError(f"{function.__name__} took {args}")


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
            assert "all_reduce (float32[3, 4]; call number 1 of rank 0 of 2, at" in str(error), error
        assert time.monotonic() - started < 20
    else:
        time.sleep(6)


def one_dies(rank, size, file):
    import signal

    _join(rank, size, file)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.barrier()
        raise AssertionError("the other rank is dead")
    except dist.DistBackendError as error:
        assert "barrier" in str(error)


def _net(**kwargs):
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(6, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 40), nn.Linear(40, 3))


def _train(net, batches, optimizer_type=torch.optim.SGD):
    optimizer = optimizer_type(net.parameters(), lr=0.1)
    for x, y in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()


def _data(steps=5, rows=8):
    generator = torch.Generator().manual_seed(1)
    return [
        (torch.randn(rows, 6, generator=generator), torch.randint(3, (rows,), generator=generator))
        for _ in range(steps)
    ]


def _assert_equal_everywhere(net):
    for name, p in net.state_dict().items():
        copy = p.clone()
        dist.broadcast(copy, 0)
        assert torch.equal(copy, p), name


def data_parallel(rank, size, file):
    """The ranks' halves of each batch give the step of the whole batch (batch norm in evaluation mode)."""
    _join(rank, size, file)
    from rushlight.nn.parallel import DistributedDataParallel as DDP

    whole = _net().eval()
    _train(whole, _data())
    for options in (
        {},
        {"gradient_as_bucket_view": True},
        {"bucket_cap_mb": 0.001},
        {"find_unused_parameters": True},
    ):
        net = _net().eval()
        if rank:
            with torch.no_grad():
                for p in net.parameters():
                    p.add_(1)  # what rank 0 has counts
        parallel = DDP(net, **options)
        _train(parallel, [(x[rank::size], y[rank::size]) for x, y in _data()])
        for mine, theirs in zip(net.parameters(), whole.parameters()):
            torch.testing.assert_close(mine, theirs)
        _assert_equal_everywhere(net)
        assert list(parallel.state_dict())[0] == "module.0.weight"
    training = DDP(_net())
    _train(training, [(x[rank::size], y[rank::size]) for x, y in _data()])
    training(torch.zeros(2, 6))  # gives out the buffers
    for p in training.module.parameters():
        copy = p.detach().clone()
        dist.broadcast(copy, 0)
        assert torch.equal(copy, p)


def _normalised():
    torch.manual_seed(1)
    layers = torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
    net = torch.nn.Sequential(*layers).double()
    return net, torch.optim.AdamW(net.parameters(), 1e-2, eps=1e-3)


def statistics(rank, size, file):
    """Statistics of batches by rank, buffers by rank 0: what one process computes that plays all ranks.

    A bias before a batch norm has the gradient zero; the large eps keeps Adam from enlarging its rounding."""
    _join(rank, size, file)
    net, optimizer = _normalised()
    parallel = torch.nn.parallel.DistributedDataParallel(net)
    same, its_optimizer = _normalised()
    target = torch.arange(8) % 2
    for i in range(4):
        batches = [torch.linspace(-1, 1, 32).double().view(8, 4).sin() * (r + 1 + i) for r in range(size)]
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(parallel(batches[rank]), target).backward()
        optimizer.step()
        its_optimizer.zero_grad()
        before, after = {k: b.clone() for k, b in same.named_buffers()}, []
        for batch in batches:
            for k, b in same.named_buffers():
                b.copy_(before[k])
            (torch.nn.functional.cross_entropy(same(batch), target) / size).backward()
            after.append({k: b.clone() for k, b in same.named_buffers()})
        its_optimizer.step()
        for k, b in net.named_buffers():
            torch.testing.assert_close(b, after[rank][k], rtol=1e-10, atol=1e-12)
        for k, b in same.named_buffers():
            b.copy_(after[0][k])
        for p, q in zip(net.parameters(), same.parameters()):
            torch.testing.assert_close(p, q, rtol=1e-9, atol=1e-11)
            torch.testing.assert_close(p.grad, q.grad, rtol=1e-9, atol=1e-12)


def accumulation(rank, size, file):
    _join(rank, size, file)
    net = torch.nn.Linear(3, 2, bias=False)
    parallel = torch.nn.parallel.DistributedDataParallel(net)
    x = torch.full((1, 3), float(rank + 1))
    with parallel.no_sync():
        parallel(x).sum().backward()
    _same(net.weight.grad, [[rank + 1.0] * 3] * 2)
    parallel(x).sum().backward()
    mean = 2 * sum(r + 1 for r in range(size)) / size
    _same(net.weight.grad, [[mean] * 3] * 2)


class _Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = (torch.nn.Linear(2, 2) for _ in range(3))

    def forward(self, x, left):
        return {"out": self.left(x) if left else self.right(x)}


def unused_parameters(rank, size, file):
    _join(rank, size, file)
    parallel = torch.nn.parallel.DistributedDataParallel(_Branches(), find_unused_parameters=True)
    for _ in range(3):
        parallel.zero_grad()
        parallel(torch.ones(1, 2), left=rank == 0)["out"].sum().backward()
        net = parallel.module
        assert net.never.weight.grad is None
        for branch in (net.left, net.right):
            _same(branch.weight.grad, [[1 / size] * 2] * 2)
    strict = torch.nn.parallel.DistributedDataParallel(_Branches())
    strict(torch.ones(1, 2), left=True)["out"].sum().backward()
    try:
        strict(torch.ones(1, 2), left=True)
        raise AssertionError("the right branch got no gradients")
    except RuntimeError as error:
        assert "find_unused_parameters=True" in str(error) and "right.weight" in str(error), error


def hooks(rank, size, file):
    _join(rank, size, file)
    from rushlight.distributed.algorithms.ddp_comm_hooks import (
        debugging_hooks,
        default_hooks,
        post_localSGD_hook,
        powerSGD_hook,
    )

    reference = _net().eval()
    _train(reference, _data())
    powers = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    squares = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    whole = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=1000, start_powerSGD_iter=2)
    for state, hook, tolerance in [
        (None, default_hooks.allreduce_hook, 1e-6),
        (None, default_hooks.bf16_compress_hook, 1e-2),
        (None, default_hooks.fp16_compress_hook, 1e-2),
        (None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook), 1e-2),
        (powers, powerSGD_hook.powerSGD_hook, 0.2),
        (squares, powerSGD_hook.batched_powerSGD_hook, 0.5),
        (whole, powerSGD_hook.batched_powerSGD_hook, 1e-4),  # as many factors as rows lose nothing
        (
            post_localSGD_hook.PostLocalSGDState(None, torch.distributed.group.WORLD, 1),
            post_localSGD_hook.post_localSGD_hook,
            1e-6,
        ),
    ]:
        net = _net().eval()
        parallel = torch.nn.parallel.DistributedDataParallel(net)
        parallel.register_comm_hook(state, hook)
        _train(parallel, [(x[rank::size], y[rank::size]) for x, y in _data()])
        _assert_equal_everywhere(net)
        for mine, theirs in zip(net.parameters(), reference.parameters()):
            assert (mine - theirs).abs().max() < tolerance, (hook, (mine - theirs).abs().max())
    alone = post_localSGD_hook.PostLocalSGDState(None, None, 0, post_local_gradient_allreduce=False)
    for state, hook in (None, debugging_hooks.noop_hook), (alone, post_localSGD_hook.post_localSGD_hook):
        parallel = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1, bias=False))
        parallel.register_comm_hook(state, hook)
        parallel(torch.full((1, 2), rank + 1.0)).sum().backward()
        assert parallel.module.weight.grad.tolist() == [[rank + 1.0] * 2]  # each rank's own


def different_models(rank, size, file):
    _join(rank, size, file)
    try:
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2 + rank))
        raise AssertionError("the shapes differ")
    except RuntimeError as error:
        assert "weight" in str(error) and "[3, 3]" in str(error), error


def checkpoints(rank, size, file):
    _join(rank, size, file)
    from rushlight.distributed import checkpoint

    folder = file + ".checkpoint"
    net, optimizer = _net(), None
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    _train(net, _data(2), lambda parameters, lr: optimizer)
    own = torch.full((3,), float(rank))
    state = {"net": net.state_dict(), "optimizer": optimizer, "epoch": 3, f"own of {rank}": own}
    index = checkpoint.save(state, checkpoint_id=folder)
    files = {where.relative_path for where in index.storage_data.values()}
    assert len(files) == size  # the work is shared out
    other = _net()
    with torch.no_grad():
        for p in other.parameters():
            p.zero_()
    read = {"net": other.state_dict(), "epoch": 0, f"own of {size - 1 - rank}": torch.zeros(3)}
    checkpoint.load(read, checkpoint_id=folder)
    assert read["epoch"] == 3
    _same(read[f"own of {size - 1 - rank}"], [size - 1 - rank] * 3)
    for mine, theirs in zip(net.parameters(), other.parameters()):
        assert torch.equal(mine, theirs)


def uneven_inputs(rank, size, file):
    """Processes with 2 and 4 batches: those done do not keep the others waiting, and end with their model."""
    _join(rank, size, file)
    from rushlight.distributed.algorithms.join import Join
    from rushlight.distributed.optim import ZeroRedundancyOptimizer
    from rushlight.nn.parallel import DistributedDataParallel as DDP

    mine = _data(2 + 2 * rank)
    for divides_by_all in (True, False):
        net, alone = _net(), _net()
        parallel = DDP(net, find_unused_parameters=not divides_by_all)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with parallel.join(divide_by_initial_world_size=divides_by_all):
            for x, y in mine:
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(parallel(x), y).backward()
                optimizer.step()
        _assert_equal_everywhere(net)
        _train_uneven(alone, divides_by_all)
        if not divides_by_all:
            for p, q in zip(net.parameters(), alone.parameters()):
                torch.testing.assert_close(p, q)
    net = _net().eval()
    parallel = DDP(net)
    zero = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.AdamW, lr=0.1)
    with Join([parallel, zero]):
        for x, y in mine:
            torch.nn.functional.cross_entropy(parallel(x), y).backward()
            zero.step()
            zero.zero_grad()
    _assert_equal_everywhere(net)
    try:
        with parallel.join(throw_on_early_termination=True):
            for x, y in mine:
                torch.nn.functional.cross_entropy(parallel(x), y).backward()
        raise AssertionError("one rank had fewer inputs")
    except RuntimeError as error:
        assert "exhausted" in str(error)


def _train_uneven(net, divides_by_all):
    """What both processes compute, in one: each batch through its own batch statistics."""
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    batches = [_data(2), _data(4)]
    for step in range(4):
        active = [share[step] for share in batches if step < len(share)]
        optimizer.zero_grad()
        state = {k: v.clone() for k, v in net.state_dict().items() if "running" in k or "num" in k}
        for x, y in active:
            net.load_state_dict(state, strict=False)
            loss = torch.nn.functional.cross_entropy(net(x), y)
            (loss / (2 if divides_by_all else len(active))).backward()
        optimizer.step()


def shrinks(rank, size, file):
    """Rank 1 leaves; the others go on without it."""
    _join(rank, size, file, seconds=20)
    pair = dist.new_group([0, 2, 3])
    for bad, kind in [((1,), TypeError), ([], ValueError), ([1, 1], ValueError), ([9], ValueError),
                      ([0, 1, 2, 3], ValueError), ([rank], RuntimeError)]:  # fmt: skip
        try:
            dist.shrink_group(bad)
            raise AssertionError(f"{bad} should be refused")
        except kind:
            pass
    t = torch.tensor([float(rank)])
    dist.all_reduce(t)
    _same(t, [6.0])
    if rank == 1:
        return
    if rank != 3:
        small = dist.shrink_group([2], pair)
        t = torch.tensor([float(rank)])
        dist.all_reduce(t, group=small)
        _same(t, [2.0])
        assert dist.get_process_group_ranks(small) == [0, 2]
    made = dist.shrink_group([1])
    assert made is dist.group.WORLD and dist.get_world_size() == 3
    assert dist.get_rank() == {0: 0, 2: 1, 3: 2}[rank]
    t = torch.tensor([float(rank)])
    dist.all_reduce(t)
    _same(t, [5.0])
    again = dist.shrink_group([0]) if rank != 0 else None
    if again is not None:
        dist.barrier()
        assert dist.get_world_size() == 2


def local_steps(rank, size, file):
    """Models part and meet again every third step, after one step in common."""
    from rushlight.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from rushlight.distributed.optim import PostLocalSGDOptimizer

    _join(rank, size, file)
    p = torch.zeros(2, requires_grad=True)
    averager = PeriodicModelAverager(period=3, warmup_steps=1)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD([p], lr=1.0), averager)
    seen = []
    for _ in range(6):
        optimizer.zero_grad()
        (p * -(rank + 1.0)).sum().backward()
        optimizer.step()
        seen.append(p[0].item())
    # Averages after steps 2 and 5.
    common, own = 1.5, rank + 1.0
    first = 2 * common
    assert seen == [own, first, first + own, first + 2 * own, first + 3 * common, first + 3 * common + own]
    state = optimizer.state_dict()
    assert state["step"] == 6
    averager.step = 0
    optimizer.load_state_dict(state)
    assert averager.step == 6
