"""Batching rules of neural-network operators: as one example after the other, gradients too."""

import itertools

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.func import grad, vmap
from rushlight.nn import functional as F


def resize(**options):
    return lambda x: F.interpolate(x, **options)


def masked(x, mask):
    return F.scaled_dot_product_attention(x, x + 1, x - 1, attn_mask=mask)


torch.manual_seed(0)
IMAGES = torch.randn(3, 2, 4, 5, 6)
LSTM, GRU = nn.LSTMCell(4, 6), nn.GRUCell(4, 6)
CASES = {
    "nearest": (resize(size=(7, 9)), IMAGES),
    "bicubic": (resize(size=(7, 9), mode="bicubic"), IMAGES),
    "antialias": (resize(size=(3, 4), mode="bilinear", antialias=True), IMAGES),
    "linear": (resize(scale_factor=2, mode="linear"), IMAGES[:, :, 0]),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        IMAGES,
        torch.rand(3, 2, 4, 4, 2) * 2 - 1,
    ),
    "unfold": (lambda x: F.unfold(x, 3, padding=1), IMAGES),
    "unfold one": (lambda x: F.unfold(x, 3, padding=1), IMAGES[:, 0]),
    "fold": (lambda x: F.fold(x, (5, 6), 2), torch.randn(3, 2, 8, 20)),
    "fold one": (lambda x: F.fold(x, (5, 6), 2), torch.randn(3, 8, 20)),
    "attention": (lambda q, v: F.scaled_dot_product_attention(q, q, v), *torch.randn(2, 3, 2, 4, 5, 8)),
    "attention, masks": (masked, torch.randn(3, 2, 4, 5, 8), torch.randn(3, 5, 5)),
    "attention, a mask each": (masked, torch.randn(3, 2, 4, 5, 8), torch.randn(3, 2, 1, 5, 5)),
    "lstm": (LSTM, torch.randn(3, 5, 4)),
    "lstm one": (LSTM, torch.randn(3, 4)),
    "gru": (GRU, torch.randn(3, 5, 4)),
    "cdist": (torch.cdist, torch.randn(3, 5, 4), torch.randn(3, 6, 4)),
}


def leaves(result):
    return result if isinstance(result, tuple) else (result,)


def one_by_one(f, args, dims):
    results = [leaves(f(*(x if d is None else x[i] for x, d in zip(args, dims)))) for i in range(3)]
    return [torch.stack(parts) for parts in zip(*results)]


@pytest.mark.parametrize("name", CASES)
def test_examples_at_once(name):
    f, *inputs = CASES[name]

    def loss(*args):
        return sum(r.square().sum() for r in leaves(f(*args)))

    for dims in itertools.product(*[(0, None)] * len(inputs)):
        if not any(d == 0 for d in dims):
            continue
        args = [x if d == 0 else x[0] for x, d in zip(inputs, dims)]
        for g in (f, grad(loss, tuple(range(len(inputs))))):
            for ours, expected in zip(leaves(vmap(g, in_dims=dims)(*args)), one_by_one(g, args, dims)):
                torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["cholesky_ex", "lu_factor_ex", "inv", "qr", "svd", "eigh", "det"])
def test_examples_that_are_no_matrices_are_refused(name):
    call = getattr(torch.linalg, name)
    with pytest.raises(RuntimeError, match="dimension"):
        torch.vmap(lambda a: call(a))(torch.eye(3))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int32, torch.float16])
@pytest.mark.parametrize("name", ["dot", "vdot", "inner", "matmul"])
def test_products_of_vectors_keep_their_dtype(name, dtype):
    call, x = getattr(torch, name), torch.tensor([[100, 100, 3], [1, 2, 3]]).to(dtype)
    torch.testing.assert_close(vmap(call)(x, x), torch.stack([call(row, row) for row in x]))


def _answer(call):
    try:
        return call().tolist()
    except RuntimeError as problem:
        return str(problem)


def _counts(t):
    numbers = t.tensor([[2, 1], [1, 2]])
    flags = t.tensor([[True, False], [True, True]])
    return {
        "bincount": lambda: t.vmap(t.bincount)(t.tensor([[0, 1], [1, 1]])),
        "bincount of weights": lambda: t.vmap(t.bincount, (0, None))(numbers, t.tensor([0.5, 1.0])),
        "bincount, shorter": lambda: t.vmap(lambda x: t.bincount(x, minlength=5))(t.tensor([[0, 1], [3, 3]])),
        "repeat_interleave": lambda: t.vmap(lambda x, n: x.repeat_interleave(n))(numbers, numbers),
        "masked_select": lambda: t.vmap(t.masked_select, (1, None))(t.arange(6).view(2, 3), flags),
        "masked_select, masks": lambda: t.vmap(t.masked_select)(t.arange(4).view(2, 2), flags),
        "gradient": lambda: t.vmap(t.func.grad(lambda x: (x.masked_select(flags[0]) ** 2).sum()))(
            t.ones(2, 2)
        ),
    }


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", _counts(torch))
def test_sizes_that_depend_on_values_and_agree(name):
    oracle = pytest.importorskip("torch")
    assert _answer(_counts(torch)[name]) == _answer(_counts(oracle)[name])


def test_sizes_that_differ_are_refused():
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        vmap(torch.bincount)(torch.tensor([[0, 1], [1, 3]]))


LOOPED = {
    "unsafe_chunk": lambda a: torch.unsafe_chunk(a, 2, 0)[0] * 2,
    "jvp of unsafe_chunk": lambda a: torch.func.jvp(lambda b: torch.unsafe_chunk(b, 2, 0)[1], (a,), (a,))[1],
    "index_add": lambda a: torch.func.jvp(
        lambda b: b.index_add(0, torch.tensor([0]), b.index_select(0, torch.tensor([0]))), (a,), (a.cos(),)
    )[1],
    "several": lambda a: torch.stack(torch.frexp(a)[:1]) + a,
}


@pytest.mark.parametrize("name", LOOPED)
def test_no_examples_have_the_shapes_of_one(name):
    function = LOOPED[name]
    x = torch.ones(0, 4, dtype=torch.float64, requires_grad=True)
    found, one = vmap(function)(x), function(torch.ones(4, dtype=torch.float64))
    assert found.shape == (0, *one.shape) and found.dtype == one.dtype
    found.sum().backward()
    assert x.grad.shape == (0, 4)
    assert vmap(function, 1, 1)(x.detach().t()).shape == (one.shape[0], 0, *one.shape[1:])


def test_coordinates_of_each_example():
    alike, unlike = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[1.0, 0], [1, 1]])
    assert vmap(torch.argwhere)(alike).tolist() == [[[0]], [[1]]]
    with pytest.raises(
        RuntimeError, match=r"stack expects each tensor to be equal size, but got \[1, 1\] at"
    ):
        vmap(torch.argwhere)(unlike)
    with pytest.raises(RuntimeError, match=r"Attempted to vmap over aten::where\."):
        vmap(torch.where)(alike)
