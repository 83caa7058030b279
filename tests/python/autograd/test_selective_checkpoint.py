"""Checkpoints that keep some results, and the rest of torch.utils.checkpoint."""

import functools

import pytest

import rushlight as torch
from rushlight.utils import checkpoint as module
from rushlight.utils._python_dispatch import TorchDispatchMode
from rushlight.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    create_selective_checkpoint_contexts,
)

MM, SIN = torch.ops.aten.mm.default, torch.ops.aten.sin.default


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(func)
        return func(*args, **(kwargs or {}))


def model(x, w):
    return ((x @ w).sin() @ w).cos()


@pytest.fixture
def operands():
    torch.manual_seed(0)
    return [torch.randn(4, 4, requires_grad=True) for _ in range(2)]


def gradients(operands, context_fn=None, **options):
    if context_fn is None:
        return torch.autograd.grad(model(*operands).sum(), operands)
    result = checkpoint(model, *operands, use_reentrant=False, context_fn=context_fn, **options)
    return torch.autograd.grad(result.sum(), operands)


def policy(ctx, op, *args, **kwargs):
    return CheckpointPolicy.MUST_SAVE if op is MM else CheckpointPolicy.PREFER_RECOMPUTE


@pytest.mark.parametrize("kept", [[MM], [SIN], [MM, SIN], [], policy, lambda ctx, op, *args: op is MM])
def test_gradients_do_not_depend_on_what_is_kept(operands, kept):
    context_fn = functools.partial(create_selective_checkpoint_contexts, kept)
    expected = gradients(operands)
    for early_stop in (True, False):
        for mine, other in zip(gradients(operands, context_fn, early_stop=early_stop), expected):
            assert torch.equal(mine, other)


def test_what_is_kept_is_not_computed_again(operands):
    def products_in_backward(kept):
        context_fn = functools.partial(create_selective_checkpoint_contexts, kept)
        loss = checkpoint(model, *operands, use_reentrant=False, context_fn=context_fn).sum()
        with Count() as count:
            torch.autograd.grad(loss, operands)
        return count.calls.count(MM), count.calls.count(SIN)

    assert products_in_backward([MM]) == (4, 2)  # the derivatives' own products; cos brings a sin
    assert products_in_backward([SIN]) == (6, 1)


def test_policies_are_told_of_the_second_computation(operands):
    seen = []

    def look(ctx, op, *args, **kwargs):
        seen.append((ctx.is_recompute, op))
        return op is MM

    gradients(operands, functools.partial(create_selective_checkpoint_contexts, look))
    assert (False, MM) in seen and (True, MM) in seen


def test_results_that_changed_meanwhile_are_refused():
    def run(may_change):
        x = torch.ones(3, requires_grad=True)

        def f(x):
            y = x.sin()
            z = y.exp()
            kept.append(y)
            return z.cos()

        kept = []
        context_fn = functools.partial(
            create_selective_checkpoint_contexts, [SIN], allow_cache_entry_mutation=may_change
        )
        out = checkpoint(f, x, use_reentrant=False, context_fn=context_fn)
        with torch.no_grad():
            kept[0].detach().add_(1)
        out.sum().backward()

    run(True)
    with pytest.raises(RuntimeError, match="has been mutated"):
        run(False)


def test_bad_policies(operands):
    for bad, error, text in [
        ([torch.ops.aten.mm], ValueError, "OpOverload"),
        (3, TypeError, "function or a list"),
    ]:
        with pytest.raises(error, match=text):
            create_selective_checkpoint_contexts(bad)
    with pytest.raises(ValueError, match="CheckpointPolicy"):
        gradients(operands, functools.partial(create_selective_checkpoint_contexts, lambda *a, **k: "yes"))


def test_a_group_of_backward_passes_computes_once(operands):
    x, w = operands
    runs = []

    def f(x, w):
        runs.append(1)
        return (x @ w).sin(), (x * w).cos()

    a, b = checkpoint(f, x, w, use_reentrant=False, early_stop=False)
    with GraphExecGroup():
        first = torch.autograd.grad(a.sum(), operands, retain_graph=True)
        second = torch.autograd.grad(a.sum(), operands, retain_graph=True)
        torch.autograd.grad(b.sum(), operands)
    assert len(runs) == 2 and all(torch.equal(p, q) for p, q in zip(first, second))
    with GraphExecGroup(), pytest.raises(RuntimeError, match="nested"), GraphExecGroup():
        pass


def test_debugging_lists_the_operators():
    state = {"first": True}

    def fickle(x):
        y = x.sin()
        if state.pop("first", False):
            y = y.exp()
        return y.cos()

    for enable in (None, True):
        state["first"] = True
        with module.set_checkpoint_debug_enabled(enable):
            out = checkpoint(fickle, torch.ones(2, requires_grad=True), use_reentrant=False)
        with pytest.raises(CheckpointError, match="recomputation") as caught:
            out.sum().backward()
        assert ("aten.exp" in str(caught.value)) == (enable is True)
        assert ("Tip: " in str(caught.value)) == (enable is None)
        assert ("because you passed `debug=True`" in str(caught.value)) == (enable is True)


@pytest.mark.parametrize("reentrant", [False, True])
def test_autocast_holds_in_the_second_computation(reentrant):
    x, dtypes = torch.randn(4, 4, requires_grad=True), []

    def f(x):
        y = x @ x
        dtypes.append(y.dtype)
        return y.float().sin()

    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = checkpoint(f, x, use_reentrant=reentrant, early_stop=False)
    out.sum().backward()
    assert not torch.is_autocast_enabled("cpu")
    assert dtypes == [torch.bfloat16, torch.bfloat16]


def test_helpers():
    x = torch.ones(2, requires_grad=True) * 2
    alone, number = module.detach_variable((x, 3))
    assert alone.is_leaf and alone.requires_grad and number == 3
    with pytest.raises(RuntimeError, match="Only tuple"):
        module.detach_variable([x])
    with pytest.warns(UserWarning, match="requires_grad=True"):
        module.check_backward_validity((torch.ones(2), 1))
    assert module.get_device_states(torch.ones(2), [torch.ones(1)]) == ([], [])
    module.set_device_states([], [])
    assert torch.ops.aten.detach.default in module.SAC_IGNORED_OPS
    assert module.DefaultDeviceType.get_device_type() == "cuda"
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(torch.sin, x, use_reentrant=False, determinism_check="some")


def test_what_is_kept_can_be_looked_at():
    from rushlight.utils.checkpoint import _CachedTorchDispatchMode, _CachingTorchDispatchMode

    modes = create_selective_checkpoint_contexts([torch.ops.aten.exp.default])
    assert [type(m) for m in modes] == [_CachingTorchDispatchMode, _CachedTorchDispatchMode]
    x = torch.ones(2, requires_grad=True)
    with modes[0]:
        y = x.exp()
    kept = modes[0].storage[torch.ops.aten.exp.default][0].val
    assert torch.equal(kept, y) and not kept.requires_grad
