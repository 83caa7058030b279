"""State dicts of wrapped models, and modules that recompute their activations."""

import copy

import pytest

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers
from rushlight.distributed.checkpoint import state_dict as states


def _net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 3), nn.Tanh()))


def _recomputing(**kwargs):
    net = _net()
    chosen = lambda module: isinstance(module, nn.Sequential)
    wrappers.apply_activation_checkpointing(net, check_fn=chosen, **kwargs)
    return net


@pytest.mark.parametrize("kind", wrappers.CheckpointImpl)
def test_recomputed_activations_give_the_same_gradients(kind):
    wrap = lambda module: wrappers.checkpoint_wrapper(module, kind)
    plain, recomputing = _net(), _recomputing(checkpoint_wrapper_fn=wrap)
    assert isinstance(recomputing[2], wrappers.CheckpointWrapper)
    assert list(recomputing.state_dict()) == list(plain.state_dict())
    x = torch.randn(4, 2)
    for net in (plain, recomputing):
        net(x).sum().backward()
    for (name, p), (same_name, q) in zip(plain.named_parameters(), recomputing.named_parameters()):
        assert name == same_name.replace("_checkpoint_wrapped_module.", "")
        assert torch.equal(p.grad, q.grad)
    assert [name for name, _ in recomputing[2].named_parameters()] == ["0.weight", "0.bias"]
    assert not recomputing.load_state_dict(plain.state_dict()).missing_keys
    assert recomputing[2][0].weight.shape == (3, 3)  # what the wrapper lacks is the module's


def test_offloaded_activations():
    x = torch.randn(4, 2, requires_grad=True)
    net = wrappers.offload_wrapper(_net())
    net(x).sum().backward()
    y = x.detach().requires_grad_()
    _net()(y).sum().backward()
    assert torch.equal(x.grad, y.grad)


@pytest.fixture
def parallel():
    if not dist.is_available():
        pytest.skip("this build has no Gloo (libgloo-dev)")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield nn.parallel.DistributedDataParallel(_recomputing())
    dist.destroy_process_group()


def _step(model, optimizer):
    model(torch.ones(4, 2)).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("flat", [False, True])
def test_states_have_the_plain_models_names(parallel, flat):
    options = states.StateDictOptions(flatten_optimizer_state_dict=flat)
    optimizer = torch.optim.Adam(parallel.parameters(), lr=0.1)
    _step(parallel, optimizer)
    saved, saved_optimizer = states.get_state_dict(parallel, optimizer, options=options)
    assert list(saved) == list(_net().state_dict())
    saved, saved_optimizer = copy.deepcopy((saved, saved_optimizer))
    _step(parallel, optimizer)
    after = {key: value.clone() for key, value in parallel.module.state_dict().items()}

    fresh = _net()
    fresh_optimizer = torch.optim.Adam(fresh.parameters(), lr=0.5)
    keys = states.set_state_dict(
        fresh, fresh_optimizer, model_state_dict=saved, optim_state_dict=saved_optimizer, options=options
    )
    assert not keys.missing_keys and not keys.unexpected_keys
    assert fresh_optimizer.param_groups[0]["lr"] == 0.1
    for name, p in fresh.named_parameters():
        p.grad = dict(_unwrapped(parallel))[name].grad.clone()
    fresh_optimizer.step()
    for name, p in fresh.named_parameters():
        torch.testing.assert_close(p, after[name])


def _unwrapped(parallel):
    for name, p in parallel.module.named_parameters():
        yield name.replace("_checkpoint_wrapped_module.", ""), p


def test_what_does_not_fit_is_listed(parallel):
    with pytest.raises(RuntimeError, match="wrong: unexpected\n  0.weight: missing"):
        states.set_model_state_dict(parallel, {"wrong": torch.ones(1)})
    relaxed = states.StateDictOptions(strict=False)
    keys = states.set_model_state_dict(parallel, {"0.bias": torch.zeros(3)}, options=relaxed)
    assert "0.weight" in keys.missing_keys and torch.equal(parallel.module[0].bias, torch.zeros(3))
    with pytest.raises(RuntimeError, match=r"0.bias: its shape is \[2\], the model's \[3\]"):
        states.set_model_state_dict(parallel, {"0.bias": torch.zeros(2)}, options=relaxed)
    other = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1)
    with pytest.raises(KeyError):
        states.get_optimizer_state_dict(parallel, other) or states.set_optimizer_state_dict(
            parallel, other, {}
        )


def test_checkpoints_of_one_process(tmp_path):
    from rushlight.distributed import checkpoint

    net, folder = _net(), tmp_path / "checkpoint"
    with pytest.raises(checkpoint.CheckpointException, match="no complete checkpoint"):
        checkpoint.load({"x": 1}, checkpoint_id=folder)
    checkpoint.save({"net": net, "list": [1, {"deep": torch.arange(3)}]}, checkpoint_id=folder)
    fresh = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.Sequential(nn.Linear(3, 3), nn.Tanh()))
    state = {"net": fresh, "list": [0, {"deep": torch.zeros(3, dtype=torch.int64)}]}
    checkpoint.load(state, checkpoint_id=folder)
    assert state["list"][0] == 1 and state["list"][1]["deep"].tolist() == [0, 1, 2]
    for mine, theirs in zip(net.parameters(), fresh.parameters()):
        assert torch.equal(mine, theirs)
    with pytest.raises(RuntimeError, match="Missing key in checkpoint state_dict: new"):
        checkpoint.load({"new": 1}, checkpoint_id=folder)
    checkpoint.load(
        {"new": 1}, checkpoint_id=folder, planner=checkpoint.DefaultLoadPlanner(allow_partial_load=True)
    )
    with pytest.raises(ValueError, match="Size mismatch"):
        checkpoint.load({"net": {"0": {"bias": torch.ones(2)}}}, checkpoint_id=folder)
    writer = checkpoint.FileSystemWriter(folder, overwrite=False)
    with pytest.raises(checkpoint.CheckpointException, match="holds a checkpoint already"):
        checkpoint.save({"x": 1}, storage_writer=writer)
    (folder / ".metadata").write_text("{")
    with pytest.raises(checkpoint.CheckpointException, match="damaged"):
        checkpoint.load({"x": 1}, checkpoint_id=folder)


@pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
@pytest.mark.parametrize("extended", [False, True])
def test_backends_of_the_program_are_told_of_their_group(monkeypatch, extended):
    from rushlight.distributed._gloo_group import GlooGroup

    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    told = []

    def make(*given):
        told.append(given)
        if not extended:
            return GlooGroup(*given)
        options = given[0]
        assert (options.group_rank, options.group_size, options.global_ranks_in_group) == (0, 1, [0])
        return GlooGroup(options.store, options.group_rank, options.group_size, options.timeout)

    name = f"own{extended}".lower()
    dist.Backend.register_backend(name, make, extended_api=extended)
    dist.init_process_group(name, store=dist.HashStore(), rank=0, world_size=1)
    try:
        x = torch.ones(2)
        dist.all_reduce(x)
        assert x.tolist() == [1, 1] and len(told) == 1 and len(told[0]) == (2 if extended else 4)
    finally:
        dist.destroy_process_group()
