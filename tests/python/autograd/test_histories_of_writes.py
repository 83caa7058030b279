"""Every method that writes in place, beside PyTorch's: the gradient of what was there before, and leaves."""

import pytest

import rushlight as rl
from rushlight._command.names import is_aliased

# They change what a tensor is, or take functions.
LEFT_OUT = {
    *("apply_", "map_", "map2_", "detach_", "requires_grad_", "rename_", "share_memory_", "set_"),
    *("resize_", "resize_as_", "resize_as_sparse_", "sparse_resize_", "sparse_resize_and_clear_"),
    "as_strided_",
}
# Where PyTorch keeps the history of what was overwritten, as if it were still there.
KEPT_BY_PYTORCH = {"logical_and_", "logical_or_", "logical_xor_", "logical_not_"}
DEPRECATED = {("subtract_", (0.2, 0.7)), ("subtract_", (0, 1))}  # a factor that is not named


def argument_lists(lib):
    y, at = lib.tensor([0.3, 0.6, 0.2], dtype=lib.float64), lib.tensor([0, 2, 1])
    yield from ((), (0.5,), (0.2, 0.7), (0,), (0, 1), (1,), (2, 0, 1.0), (y,), (y, y), (0, at, y))
    yield from ((0, at, 0.5), (y > 0.3, y), (y > 0.3, 0.5), (at, y), ((at,), y), (0, at, y, "mean"))


def outcome(lib, name, arguments, kind):
    """The gradient of what a write leaves, or that it was refused."""
    lib.manual_seed(0)
    x = lib.tensor([0.2, 0.4, 0.45], dtype=lib.float64, requires_grad=True)
    whole = x if kind == "leaf" else x * 2
    target = whole.view(3) if kind == "view" else whole
    try:
        getattr(target, name)(*arguments)
        if not whole.requires_grad:
            return "no gradient"
        grad = lib.autograd.grad(whole.sum(), x, allow_unused=True)[0]
    except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
        return "refused"
    numbers = lib.zeros(3, dtype=lib.float64) + (0 if grad is None else grad)  # PyTorch's may have no memory
    return [pytest.approx(v, nan_ok=True) for v in numbers.tolist()]


@pytest.mark.skipif(is_aliased(), reason="import torch is this library")
@pytest.mark.parametrize("kind", ["whole", "view", "leaf"])
def test_writes_leave_the_gradients_of_pytorch(kind):
    torch = pytest.importorskip("torch")
    names = {n for n in dir(torch.Tensor) if n.endswith("_") and not n.startswith("_")}
    compared = 0
    for name in sorted(names - LEFT_OUT - KEPT_BY_PYTORCH):
        for theirs, ours in zip(argument_lists(torch), argument_lists(rl)):
            if (name, ours) in DEPRECATED:
                continue
            wanted = outcome(torch, name, theirs, kind)
            if wanted == "refused" and kind != "leaf":
                continue
            compared += wanted != "refused"
            assert outcome(rl, name, ours, kind) == wanted, (name, ours)
    assert compared >= (250 if kind != "leaf" else 0)
