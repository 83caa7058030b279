"""multi_margin_loss and multilabel_margin_loss beside PyTorch, and their derivatives."""

import pytest

import rushlight as rl

oracle = pytest.importorskip("torch")
F = rl.nn.functional


def _both(values, dtype="float32"):
    theirs = oracle.tensor(values, dtype=getattr(oracle, dtype))
    return theirs, rl.from_numpy(theirs.to(oracle.float64).numpy()).to(getattr(rl, dtype))


def _listed(rows, classes):
    """Up to four classes a row, one of them twice, then -1 and what does not count."""
    target = oracle.stack([oracle.randperm(classes) for _ in range(rows)])
    target[:, 4:] = target[:, :1]
    for row in range(rows):
        target[row, row % 5] = -1
    target[0] = oracle.arange(classes)  # all of them: nothing is left to compare with
    return target


CASES = {
    "plain": lambda lib, f, x, t, w: f.multi_margin_loss(x, t),
    "squared": lambda lib, f, x, t, w: f.multi_margin_loss(x, t, p=2, margin=0.3, reduction="none"),
    "weights": lambda lib, f, x, t, w: f.multi_margin_loss(x, t, weight=w, reduction="sum"),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", [*CASES, "listed"])
def test_values_and_gradients(case, dtype):
    oracle.manual_seed(0)
    x, ours = _both(oracle.randn(300, 37).tolist(), dtype)
    w, our_w = _both(oracle.rand(37).tolist(), dtype)
    target = _listed(300, 37) if case == "listed" else oracle.randint(0, 37, (300,))
    our_target = rl.from_numpy(target.numpy())
    x.requires_grad_(), ours.requires_grad_()
    if case == "listed":
        theirs = oracle.nn.functional.multilabel_margin_loss(x, target, reduction="none")
        found = F.multilabel_margin_loss(ours, our_target, reduction="none")
    else:
        theirs = CASES[case](oracle, oracle.nn.functional, x, target, w)
        found = CASES[case](rl, F, ours, our_target, our_w)
    assert found.shape == theirs.shape
    assert rl.allclose(found, rl.from_numpy(theirs.detach().numpy()), rtol=1e-5)
    seed = oracle.rand(theirs.shape, dtype=theirs.dtype)
    theirs.backward(seed), found.backward(rl.from_numpy(seed.numpy()))
    assert rl.allclose(ours.grad, rl.from_numpy(x.grad.numpy()), rtol=1e-4, atol=1e-7)


def test_halves_are_rounded_once():
    x = rl.randn(20, 50).bfloat16()
    target = rl.randint(0, 50, (20,))
    exact = F.multi_margin_loss(x.float(), target, reduction="none")
    assert rl.equal(F.multi_margin_loss(x, target, reduction="none"), exact.bfloat16())


def test_further_derivatives():
    x = rl.randn(4, 6, dtype=rl.float64, requires_grad=True)
    w = rl.rand(6, dtype=rl.float64)
    one, listed = rl.tensor([0, 5, 2, 2]), rl.tensor([[0, 3, -1, 0, 0, 0]] * 4)
    for loss in (
        lambda x: F.multi_margin_loss(x, one, p=2, weight=w),
        lambda x: F.multilabel_margin_loss(x, listed),
    ):
        assert rl.autograd.gradcheck(loss, (x,), check_forward_ad=True)
        assert rl.autograd.gradgradcheck(lambda x, loss=loss: loss(x) ** 2, (x,))
    by_example = rl.func.vmap(lambda row, t: F.multi_margin_loss(row, t))(x, one)
    assert rl.allclose(by_example, F.multi_margin_loss(x, one, reduction="none"))


def test_classes_outside():
    for target in ([3], [-1]):
        with pytest.raises((RuntimeError, IndexError), match="out of range"):
            F.multi_margin_loss(rl.randn(1, 3), rl.tensor(target))
    with pytest.raises((RuntimeError, IndexError), match="out of range"):
        F.multilabel_margin_loss(rl.randn(1, 3), rl.tensor([[0, 3, -1]]))


def test_threads_change_nothing():
    x, target = rl.randn(4000, 50), rl.randint(0, 50, (4000,))
    threads = rl.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            rl.set_num_threads(n)
            results.append(F.multi_margin_loss(x, target, reduction="none"))
    finally:
        rl.set_num_threads(threads)
    assert rl.equal(*results)
