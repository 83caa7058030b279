"""What the ranks of test_fsdp.py run: sharded training equals that of one process on all of the data."""

import copy
import functools

import parallel_programs as models
from parallel_programs import Block, Net, assert_same, batches, join, loss_of, net, train, whole

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed import checkpoint
from rushlight.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from rushlight.distributed.checkpoint import state_dict as states
from rushlight.distributed.checkpoint.state_dict import StateDictOptions
from rushlight.distributed.fsdp import (
    FSDPModule,
    FullStateDictConfig,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
)
from rushlight.distributed.fsdp import FullyShardedDataParallel as FSDP
from rushlight.distributed.fsdp.wrap import (
    ModuleWrapPolicy,
    size_based_auto_wrap_policy,
    transformer_auto_wrap_policy,
)
from rushlight.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from rushlight.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

_PREFIX = "_checkpoint_wrapped_module."


def _adam(model):
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def _reference():
    model = net()
    train(model, batches(), _adam(model), clip=0.5)
    return model


def _shares(rank, size):
    return [x[rank::size] for x in batches()]


def _sharded(model=None, **options):
    model = model or net()
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def _recomputing(model):
    apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, Block))
    return model


def _wrap_blocks(model):
    for i, block in enumerate(model.blocks):
        model.blocks[i] = checkpoint_wrapper(block)
    return model


def _prefetching(model):
    model.blocks[0].set_modules_to_forward_prefetch([model.blocks[1]])
    model.blocks[2].set_modules_to_backward_prefetch([model.blocks[1], model.blocks[0]])
    return model


def per_parameter(rank, size, file):
    """`fully_shard` in all its forms."""
    join(rank, size, file)
    reference = _reference()
    expected = reference.state_dict()
    makes = {
        "blocks": _sharded,
        "root alone": lambda: fully_shard(net()),
        "kept after forward": lambda: _sharded(reshard_after_forward=False),
        "last dimension": lambda: _sharded(shard_placement_fn=lambda p: Shard(p.dim() - 1)),
        "recomputed within": lambda: _sharded(_recomputing(net())),
        "recomputed around": lambda: fully_shard(_wrap_blocks(_sharded_blocks())),
        "prefetching": lambda: _prefetching(_sharded()),
    }
    for name, make in makes.items():
        model = make()
        train(model, _shares(rank, size), _adam(model), clip=0.5)
        found = {key.replace(_PREFIX, ""): value for key, value in whole(model.state_dict()).items()}
        assert_same(found, expected), name
    model = _sharded()
    assert isinstance(model, FSDPModule) and isinstance(model, Net) and type(model).__name__ == "FSDPNet"
    assert isinstance(model.head.weight, nn.Parameter) and model.head.weight.placements == (Shard(0),)
    held = sum(p.to_local().numel() for p in model.parameters())
    assert held < sum(p.numel() for p in reference.parameters()) / size * 1.1
    model(batches()[0])
    assert isinstance(model.blocks[0].up.weight, DTensor) and not isinstance(model.head.weight, DTensor)
    freed = model.blocks[0]._fsdp_state.group.parameters[0].whole
    assert freed.untyped_storage().nbytes() == 0 and freed.numel() > 0
    assert isinstance(model.state_dict()["head.weight"], DTensor)
    _accumulated(rank, size)
    _half(rank, size, expected)
    _from_meta(expected)
    _tied_and_frozen(rank, size)
    dist.destroy_process_group()


def _sharded_blocks():
    model = net()
    for block in model.blocks:
        fully_shard(block)
    return model


def _accumulated(rank, size):
    model, reference = _sharded(), net()
    for step in (0, 1):
        model.set_requires_gradient_sync(step == 1)
        loss_of(model, batches()[step][rank::size]).backward()
        loss_of(reference, batches()[step]).backward()
    for p, q in zip(model.parameters(), reference.parameters()):
        torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-5, atol=1e-6)


def _half(rank, size, expected):
    model = net()
    policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32)
    for block in model.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32))
    seen = []
    model.blocks[0].up.register_forward_hook(lambda m, args, out: seen.append((m.weight.dtype, out.dtype)))
    train(model, _shares(rank, size), _adam(model), clip=0.5)
    assert set(seen) == {(torch.bfloat16, torch.bfloat16)} and model.head.weight.dtype == torch.float32
    assert_same(whole(model.state_dict()), expected, tolerance=0.1)


def _from_meta(expected):
    with torch.device("meta"):
        model = Net()
    _sharded(model)
    model.to_empty(device="cpu")
    state = {
        key: distribute_tensor(value, model.get_parameter(key).device_mesh, [Shard(0)])
        for key, value in expected.items()
    }
    model.load_state_dict(state, assign=True)
    reference = net()
    reference.load_state_dict(expected)
    x = batches()[0]
    torch.testing.assert_close(model(x), reference(x))


def _tied():
    model = net()
    model.head = nn.Linear(10, models.VOCABULARY, bias=False)
    model.head.weight = model.embedding.weight
    model.blocks[1].up.weight.requires_grad_(False)
    model.blocks[2].requires_grad_(False)
    return model


def _tied_and_frozen(rank, size):
    """Shared and frozen parameters, passes without gradients in between, two forward passes for one
    backward."""
    reference = _tied()
    train(
        reference,
        batches(),
        torch.optim.AdamW([p for p in reference.parameters() if p.requires_grad], lr=0.01),
    )
    for make in (_sharded, lambda model: FSDP(model, auto_wrap_policy=_POLICY, use_orig_params=True)):
        model = make(_tied())
        optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=0.01)
        for x in batches():
            with torch.no_grad():
                model.eval()(x)
            train(model.train(), [x[rank::size]], optimizer)
        assert_same(whole(model.state_dict()), reference.state_dict())
    model, plain = _sharded(_tied()), _tied()
    sum(loss_of(model, x[rank::size]) for x in batches()).backward()
    sum(loss_of(plain, x) for x in batches()).backward()
    for p, q in zip(model.parameters(), plain.parameters()):
        assert (p.grad is None) == (q.grad is None)
        if q.grad is not None:
            torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-6)


def own_collectives(rank, size, file):
    """Collectives of the program's, synchronous and with memory that is kept, give the same model."""
    join(rank, size, file)
    from rushlight.distributed.fsdp._fully_shard._fsdp_api import AllGather, ReduceScatter

    class Kept:
        made, calls = 0, 0

        def allocate(self, size, *, dtype, device):
            self.made += 1
            return torch.zeros(size, dtype=dtype, device=device)

    class Gather(Kept, AllGather):
        def __call__(self, output_tensor, input_tensor, group, async_op=False):
            self.calls += 1
            parts = list(output_tensor.chunk(group.size()))
            dist.all_gather(parts, input_tensor, group)

    class Scatter(Kept, ReduceScatter):
        def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
            self.calls += 1
            whole = input_tensor.clone()
            dist.all_reduce(whole, op, group)
            output_tensor.copy_(whole.chunk(group.size())[group.rank()])

    model, gather, scatter = _sharded(), Gather(), Scatter()
    for module in (model, *model.blocks):
        module.set_custom_all_gather(gather)
        module.set_custom_reduce_scatter(scatter)
    train(model, _shares(rank, size), _adam(model), clip=0.5)
    assert_same(whole(model.state_dict()), _reference().state_dict())
    assert gather.calls == gather.made > len(model.blocks) and scatter.calls == scatter.made > 0
    dist.destroy_process_group()


def two_dimensions(rank, size, file):
    """Copies of shards, and shards of tensor-parallel parameters."""
    join(rank, size, file)
    copies = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("copies", "parts"))
    model = _sharded(mesh=copies)
    assert model.head.weight.placements == (Replicate(), Shard(0))
    train(model, _shares(rank, size), _adam(model), clip=0.5)
    assert_same(whole(model.state_dict()), _reference().state_dict())

    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    model = net()
    for block in model.blocks:
        parallelize_module(block, mesh["tp"], {"up": ColwiseParallel(), "down": RowwiseParallel()})
        fully_shard(block, mesh=mesh["dp"])
    parallelize_module(model, mesh["tp"], {"head": ColwiseParallel(output_layouts=Replicate())})
    fully_shard(model, mesh=mesh["dp"])
    assert str(model.head.weight.placements) == "(_StridedShard(dim=0, sf=2), Shard(dim=0))"
    train(model, _shares(mesh["dp"].get_local_rank(), 2), _adam(model))
    reference = net()
    train(reference, batches(), _adam(reference))
    assert_same(whole(model.state_dict()), reference.state_dict())

    strategy = ShardingStrategy.HYBRID_SHARD
    model = FSDP(net(), sharding_strategy=strategy, device_mesh=copies, use_orig_params=True)
    _train_wrapped(model, _shares(rank, size), _adam(model))
    assert_same(model.state_dict(), _reference().state_dict())
    dist.destroy_process_group()


def _train_wrapped(model, xs, optimizer):
    for x in xs:
        optimizer.zero_grad()
        loss_of(model, x).backward()
        norm = model.clip_grad_norm_(0.5)
        optimizer.step()
    return norm


def checkpoints(rank, size, file, folder):
    """Four ranks save, two and one load, however the model is spread there."""
    join(rank, size, file)
    reference = net()
    own = _adam(reference)
    train(reference, batches(), own)
    if size == 4:
        _save(rank, size, folder, reference)
        dist.destroy_process_group()
        return
    for saved in ("sharded", "wrapped"):
        for make in (_sharded, _wrapped, lambda model: model):
            model = make(Net())
            optimizer = _adam(model)
            state = dict(zip(("model", "optimizer"), states.get_state_dict(model, optimizer)))
            checkpoint.load(state, checkpoint_id=f"{folder}/{saved}")
            states.set_state_dict(
                model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"]
            )
            expected = net()
            expected.load_state_dict(reference.state_dict())
            plain = _adam(expected)
            plain.load_state_dict(copy.deepcopy(own.state_dict()))
            if size == 1 or isinstance(model, (FSDPModule, FSDP)):
                train(model, _shares(rank, size), optimizer)
                train(expected, batches(), plain)
            whole_state = states.get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
            assert_same(whole_state, expected.state_dict())
    dist.destroy_process_group()


def _wrapped(model):
    return FSDP(model, auto_wrap_policy=_POLICY)


def _save(rank, size, folder, reference):
    for name, make in (("sharded", _sharded), ("wrapped", _wrapped)):
        model = make(net())
        optimizer = _adam(model)
        train(model, _shares(rank, size), optimizer)
        state = dict(zip(("model", "optimizer"), states.get_state_dict(model, optimizer)))
        future = checkpoint.async_save(state, checkpoint_id=f"{folder}/{name}")
        if name == "sharded":
            with torch.no_grad():
                for p in model.parameters():
                    p.zero_()  # what is saved was copied before
        index = future.result(60)
        chunks = index.state_dict_metadata["model.embedding.weight"].chunks
        assert [tuple(c.sizes) for c in chunks] == [(3, 10)] * 4
        assert index.planner_data["model.head.bias"] == ("model", "head.bias")
    full, optimizer_state = states.get_state_dict(
        model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    assert bool(full) == bool(optimizer_state) == (rank == 0)
    if rank == 0:
        assert_same(full, reference.state_dict())
    other = _sharded(Net())
    states.set_model_state_dict(
        other, full, options=StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    )
    assert_same(whole(other.state_dict()), reference.state_dict())


_POLICY = ModuleWrapPolicy({Block})
_BY_CLASS = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Block})
_BY_SIZE = functools.partial(size_based_auto_wrap_policy, min_num_params=300)


def wrapped(rank, size, file):
    """`FullyShardedDataParallel` in all its forms."""
    join(rank, size, file)
    reference = net()
    optimizer = _adam(reference)
    for x in batches():
        optimizer.zero_grad()
        loss_of(reference, x).backward()
        norm = nn.utils.clip_grad_norm_(reference.parameters(), 0.5)
        optimizer.step()
    for options in (
        {"auto_wrap_policy": _POLICY},
        {"auto_wrap_policy": _POLICY, "use_orig_params": True},
        {"auto_wrap_policy": _BY_SIZE, "use_orig_params": True, "backward_prefetch": None},
        {"auto_wrap_policy": _BY_CLASS, "sharding_strategy": ShardingStrategy.SHARD_GRAD_OP},
        {"auto_wrap_policy": _POLICY, "sharding_strategy": ShardingStrategy.NO_SHARD},
        {"sync_module_states": True},
    ):
        model = net()
        if rank and "sync_module_states" in options:
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(1)
        model = FSDP(model, **options)
        own = _adam(model)
        found = _train_wrapped(model, _shares(rank, size), own)
        torch.testing.assert_close(found, norm, rtol=1e-4, atol=1e-5)
        assert_same(model.state_dict(), reference.state_dict())
        _states(model, own, reference, optimizer, options, rank, size)
    _halves_and_recomputation(reference, rank, size)
    _unsynchronised(rank, size)
    dist.destroy_process_group()


def _states(model, own, reference, optimizer, options, rank, size):
    options = {key: value for key, value in options.items() if key != "sync_module_states"}
    other = FSDP(Net(), **options)
    for kind in (StateDictType.SHARDED_STATE_DICT, StateDictType.LOCAL_STATE_DICT):
        with FSDP.state_dict_type(model, kind):
            state = model.state_dict()
        if kind is StateDictType.SHARDED_STATE_DICT:
            assert_same(whole(state), reference.state_dict())
        other = FSDP(Net(), **options)
        with FSDP.state_dict_type(other, kind):
            other.load_state_dict(state)
        assert_same(other.state_dict(), reference.state_dict())
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, FullStateDictConfig(rank0_only=True)):
        assert len(model.state_dict()) == (len(reference.state_dict()) if rank == 0 else 0)
    state = FSDP.optim_state_dict(model, own)
    plain = {name: optimizer.state[p] for name, p in reference.named_parameters()}
    assert set(state["state"]) == set(plain)
    for name, values in plain.items():
        for key, value in values.items():
            torch.testing.assert_close(state["state"][name][key], value, rtol=1e-4, atol=1e-5)
    again, reference_again = _adam(other), net()
    again.load_state_dict(FSDP.optim_state_dict_to_load(other, again, state))
    reference_again.load_state_dict(reference.state_dict())
    plain_again = _adam(reference_again)
    plain_again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    train(other, _shares(rank, size), again)
    train(reference_again, batches(), plain_again)
    assert_same(other.state_dict(), reference_again.state_dict())
    with FSDP.summon_full_params(model):
        assert [name for name, _ in model.named_parameters()] == [n for n, _ in reference.named_parameters()]
        with torch.no_grad():
            model.head.bias.fill_(3)
    assert (model.state_dict()["head.bias"] == 3).all()


def _halves_and_recomputation(reference, rank, size):
    mixed = MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = FSDP(net(), auto_wrap_policy=_POLICY, mixed_precision=mixed, use_orig_params=True)
    _train_wrapped(model, _shares(rank, size), _adam(model))
    assert_same(model.state_dict(), reference.state_dict(), tolerance=0.1)
    for model in (
        _recomputing(FSDP(net(), auto_wrap_policy=_POLICY, use_orig_params=True)),
        FSDP(_recomputing(net()), auto_wrap_policy=_POLICY),
    ):
        _train_wrapped(model, _shares(rank, size), _adam(model))
        found = {key.replace(_PREFIX, ""): value for key, value in model.state_dict().items()}
        assert_same(found, reference.state_dict())


def _unsynchronised(rank, size):
    model, plain = FSDP(net(), auto_wrap_policy=_POLICY), net()
    with model.no_sync():
        loss_of(model, batches()[0][rank::size]).backward()
    loss_of(model, batches()[1][rank::size]).backward()
    for step in (0, 1):
        loss_of(plain, batches()[step]).backward()
    expected = nn.utils.clip_grad_norm_(plain.parameters(), 1e9)
    torch.testing.assert_close(model.clip_grad_norm_(1e9), expected)


def spread_over_neighbours(rank, size, file):
    """After the forward pass parameters stay among two neighbours, of whom the backward pass gets them."""
    from rushlight.distributed import flight_recorder

    join(rank, size, file)
    reference, model = _reference(), _sharded(reshard_after_forward=2)
    near = model.blocks[0]._fsdp_state.group.near
    assert dist.get_process_group_ranks(near) == [rank // 2 * 2, rank // 2 * 2 + 1]
    flight_recorder.reset()
    with torch.no_grad():
        model(batches()[0])  # keeps nothing
    train(model, _shares(rank, size), _adam(model), clip=0.5)
    assert_same(whole(model.state_dict()), reference.state_dict())
    calls = [e for e in flight_recorder.contents()["entries"] if "all_gather_into" in e["profiling_name"]]
    of_near = [e for e in calls if e["process_group"][0] == near.group_name]
    assert len(of_near) >= len(batches()) * len(model.blocks), (len(of_near), len(calls))
    for bad in (3, 0):
        try:
            fully_shard(nn.Linear(4, 4), reshard_after_forward=bad)
            raise AssertionError("should be refused")
        except ValueError as error:
            assert "should divide" in str(error)
