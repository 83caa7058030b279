"""Programs of ranks for test_distributed.py: optimizers and models that are spread over processes."""

import itertools
from datetime import timedelta

from distributed_programs import _data, _join, _net

import rushlight as torch
from rushlight import distributed as dist


def zero_redundancy(rank, size, file):
    _join(rank, size, file)
    from rushlight.distributed.optim import ZeroRedundancyOptimizer
    from rushlight.nn.parallel import DistributedDataParallel as DDP

    whole, net = _net().eval(), _net().eval()
    optimizer = torch.optim.AdamW(whole.parameters(), lr=0.1)
    parallel = DDP(net)
    zero = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.AdamW, lr=0.1)
    for x, y in _data():
        for model, rows, steps in (
            (whole, slice(None), optimizer),
            (parallel, slice(rank, None, size), zero),
        ):
            steps.zero_grad()
            torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            steps.step()
    for p, q in zip(net.parameters(), whole.parameters()):
        torch.testing.assert_close(p, q)
    held = sum(v.numel() for s in zero.optim.state.values() for v in s.values())
    total = sum(v.numel() for s in optimizer.state.values() for v in s.values())
    assert held < total * 0.8, (held, total)
    try:
        zero.state_dict()
        raise AssertionError("nothing was consolidated")
    except RuntimeError as error:
        assert "consolidate_state_dict(to=" in str(error)
    zero.consolidate_state_dict(to=0)
    box = [zero.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(box, 0)
    plain = optimizer.state_dict()
    assert box[0]["param_groups"][0]["params"] == plain["param_groups"][0]["params"]
    for key, state in plain["state"].items():
        for name, value in state.items():
            torch.testing.assert_close(box[0]["state"][key][name], value)
    again = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.AdamW, lr=0.5)
    again.load_state_dict(box[0])
    assert again.param_groups[0]["lr"] == 0.1
    for p in again.optim.param_groups[0]["params"]:
        assert torch.equal(again.optim.state[p]["exp_avg"], zero.optim.state[p]["exp_avg"])


def overlapped_steps(rank, size, file):
    """Steps within the backward pass give what steps after it give, from the first one on."""
    _join(rank, size, file)
    from rushlight.distributed.algorithms.ddp_comm_hooks import ddp_zero_hook, default_hooks
    from rushlight.distributed.optim import ZeroRedundancyOptimizer
    from rushlight.nn.parallel import DistributedDataParallel as DDP

    makers = (ddp_zero_hook.hook_with_zero_step, ddp_zero_hook.hook_with_zero_step_interleaved)
    for make, several, views in itertools.product(makers, (False, True), (False, True)):
        whole, net = _net().eval(), _net().eval()
        optimizer = torch.optim.AdamW(whole.parameters(), lr=0.1)
        parallel = DDP(net, bucket_cap_mb=1e-4, gradient_as_bucket_view=views)
        zero = ZeroRedundancyOptimizer(
            parallel.parameters(), torch.optim.AdamW, overlap_with_ddp=True, lr=0.1
        )
        try:
            zero.consolidate_state_dict()
            raise AssertionError("nobody knows the buckets")
        except RuntimeError as error:
            assert "fully initialized" in str(error)
        parallel.register_comm_hook(None, make(default_hooks.allreduce_hook, parallel, zero, several))
        for number, (x, y) in enumerate(_data()):
            for model, rows, steps in (
                (whole, slice(None), optimizer),
                (parallel, slice(rank, None, size), zero),
            ):
                steps.param_groups[0]["lr"] = 0.1 / (number + 1)
                steps.zero_grad()
                torch.nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
                steps.step()
        for p, q in zip(net.parameters(), whole.parameters()):
            torch.testing.assert_close(p, q)
            torch.testing.assert_close(p.grad, q.grad)
        held = sum(v.numel() for s in zero.optim.state.values() for v in s.values())
        assert held < 0.8 * sum(v.numel() for s in optimizer.state.values() for v in s.values())
        zero.consolidate_state_dict(to=1)
        if rank == 1:
            state = zero.state_dict()["state"]
            assert sorted(state) == sorted(optimizer.state_dict()["state"])
    plain = ZeroRedundancyOptimizer(parallel.parameters(), torch.optim.AdamW)
    for bad in (
        lambda: makers[0](default_hooks.allreduce_hook, parallel, plain),
        lambda: zero.add_param_group({"params": [torch.nn.Parameter(torch.ones(1))]}),
    ):
        try:
            bad()
            raise AssertionError("should be refused")
        except (ValueError, RuntimeError) as error:
            assert "overlap_with_ddp=True" in str(error)


class _Deep(torch.nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(depth))

    def forward(self, x):
        skip = x
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x + skip


def _deep():
    torch.manual_seed(0)
    return _Deep()


def pipelines(rank, size, file):
    """Every schedule gives the gradients of the whole batch."""
    _join(rank, size, file)
    from rushlight.distributed import pipelining as pp

    x, y = torch.randn(8, 4, generator=torch.Generator().manual_seed(1)), torch.ones(8, 4)
    loss_fn = torch.nn.functional.mse_loss
    whole = _deep()
    expected = whole(x)
    loss_fn(expected, y).backward()
    gradients = {name: p.grad for name, p in whole.named_parameters()}

    def check(schedule, stages):
        losses = []
        first = any(stage.is_first for stage in stages)
        last = any(stage.is_last for stage in stages)
        for _ in range(2):  # shapes are told once
            for stage in stages:
                stage.submod.zero_grad()
            out = schedule.step(*([x] if first else []), target=y if last else None, losses=losses)
        if last:
            torch.testing.assert_close(out, expected)
            assert len(losses) == 4 and abs(sum(losses) / 4 - loss_fn(expected, y)) < 1e-6
            assert not schedule.eval(*([x] if first else [])).requires_grad
        else:
            assert out is None and schedule.eval(*([x] if first else [])) is None
        for stage in stages:
            for name, p in stage.submod.named_parameters():
                torch.testing.assert_close(p.grad, gradients[name])

    spec = {"layers.2": pp.SplitPoint.BEGINNING}
    for kind in (pp.ScheduleGPipe, pp.Schedule1F1B):
        pipe = pp.pipeline(_deep(), (x[:2],), split_spec=spec)
        assert pipe.num_stages == 2 and torch.equal(pipe(x), expected)
        stage = pipe.build_stage(rank, torch.device("cpu"))
        assert {name for name, _ in stage.submod.named_parameters()} == {
            f"layers.{i}.{kind}" for i in (2 * rank, 2 * rank + 1) for kind in ("weight", "bias")
        }
        check(kind(stage, 4, loss_fn), [stage])
    spec = {f"layers.{i}": pp.SplitPoint.BEGINNING for i in (1, 2, 3)}
    looped, folded = (rank, rank + 2), (rank, 3 - rank)
    for kind, own in (
        (pp.ScheduleInterleaved1F1B, looped),
        (pp.ScheduleLoopedBFS, looped),
        (pp.ScheduleInterleavedZeroBubble, looped),
        (pp.ScheduleZBVZeroBubble, folded),
        (pp.ScheduleDualPipeV, folded),
    ):
        pipe = pp.pipeline(_deep(), (x[:2],), split_spec=spec)
        stages = [pipe.build_stage(i, torch.device("cpu")) for i in own]
        check(kind(stages, 4, loss_fn), stages)
    by_hand = pp.PipelineStage(torch.nn.Sequential(*_deep().layers[2 * rank : 2 * rank + 2]), rank, 2, "cpu")
    out = pp.ScheduleGPipe(by_hand, 4, loss_fn).step(*([x] if rank == 0 else []), target=y if rank else None)
    assert (out is None) == (rank == 0)


def own_groups(rank, size, file):
    """Groups of processes that met by themselves, without a default group and beside one."""
    from rushlight.distributed import distributed_c10d as c10d

    torch.set_num_threads(1)
    store = dist.FileStore(file, size)

    def join(name):
        return c10d._new_process_group_helper(
            size, rank, [], dist.Backend("gloo"), store, group_name=name, timeout=timedelta(seconds=60)
        )[0]

    first = join("trainer to server")
    c10d._world.pg_group_ranks[first] = {i: i for i in range(size)}  # as packages write it
    weights = torch.full((3,), float(rank + 1))
    dist.broadcast(weights, src=1, group=first)
    assert weights.tolist() == [2.0] * 3 and not dist.is_initialized()
    dist.all_reduce(weights, group=first)
    assert weights.tolist() == [2.0 * size] * 3
    try:
        join("trainer to server")
    except ValueError as error:
        assert "already been created" in str(error)
    else:
        raise AssertionError("two groups of one name")
    dist.init_process_group("gloo", store=dist.PrefixStore("job", store), rank=rank, world_size=size)
    others = join("turned round")
    gathered = [None] * size
    dist.all_gather_object(gathered, ("of", rank), group=others)
    assert gathered == [("of", r) for r in range(size)]
    minute = timedelta(seconds=60)
    alone, keys = c10d._new_process_group_helper(1, 0, [0], "gloo", store, "one", timeout=minute)
    if rank == 0:
        assert alone.size() == 1 and keys is not None
    else:
        assert alone is c10d.GroupMember.NON_GROUP_MEMBER and keys is None
    dist.destroy_process_group(first)
    dist.barrier()
    dist.destroy_process_group()
