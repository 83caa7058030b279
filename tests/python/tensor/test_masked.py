"""torch.masked against PyTorch's, and MaskedTensor's rules."""

import pytest

import rushlight as torch
from rushlight import masked

CALLS = [
    (name, kwargs)
    for name in "sum mean prod amax amin argmax argmin var std logsumexp norm".split()
    for kwargs in ({}, {"dim": 1}, {"dim": -1, "keepdim": True})
] + [(name, {"dim": 1}) for name in "cumsum cumprod softmax log_softmax softmin median".split()]
ROWS = [[0.5, -1.0, 3.0, 2.0], [1.5, 4.0, -2.0, 0.25], [1.0, 2.0, 3.0, 4.0]]
MASK = [[True, False, True, True], [True, True, False, True], [False, False, False, True]]


@pytest.mark.parametrize("name, kwargs", CALLS, ids=lambda v: v if isinstance(v, str) else "-".join(v))
@pytest.mark.parametrize("with_mask", [True, False])
def test_as_pytorch(name, kwargs, with_mask):
    oracle = pytest.importorskip("torch")
    for dtype in ("float64", "int64"):
        if dtype == "int64" and name in "mean softmax log_softmax softmin norm logsumexp".split():
            continue
        results = []
        for lib in (torch, oracle):
            data = lib.tensor(ROWS).to(getattr(lib, dtype))
            mask = lib.tensor(MASK) if with_mask else None
            function = getattr(lib.masked if lib is oracle else masked, name)
            results.append(function(data, mask=mask, **kwargs))
        ours, theirs = results
        assert str(ours.dtype) == str(theirs.dtype)
        assert torch.allclose(ours.double(), torch.from_numpy(theirs.double().numpy()), equal_nan=True), (
            dtype,
            ours,
            theirs,
        )


def test_gradients_stay_where_the_mask_is():
    x = torch.tensor(ROWS, requires_grad=True)
    masked.sum(x * x, 1, mask=torch.tensor(MASK)).sum().backward()
    assert torch.equal(x.grad, 2 * x.detach() * torch.tensor(MASK))


def test_masked_tensor():
    data, mask = torch.tensor(ROWS), torch.tensor(MASK)
    m = masked.masked_tensor(data, mask)
    assert masked.is_masked_tensor(m) and not masked.is_masked_tensor(data)
    total = (m * m + 1).sum(1)
    assert total.get_data().tolist() == masked.sum(data * data + 1, 1, mask=mask).tolist()
    assert total.get_mask().all()
    assert m.t().get_mask().tolist() == mask.t().tolist()
    assert m.to_tensor(0.0).tolist() == (data * mask).tolist()
    assert "--" in repr(m)
    with pytest.raises(ValueError, match="Input masks must match"):
        m + masked.masked_tensor(data, ~mask)
    with pytest.raises(TypeError, match="bool"):
        masked.masked_tensor(data, mask.int())
    with pytest.raises(ValueError, match="data.size"):
        masked.masked_tensor(data, mask[:, :2])
    with pytest.raises(ValueError, match="data.dim"):
        masked.masked_tensor(data, mask[0])


def test_refusals():
    x = torch.tensor(ROWS)
    with pytest.raises(IndexError, match="out of range"):
        masked.sum(x, 2)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        masked.amax(x, (0, -2))
    with pytest.raises(IndexError, match="broadcastable"):
        masked.mean(x, mask=torch.ones(1, 3, 4, dtype=torch.bool))


def test_masked_leaves_get_gradients_and_where_takes_other_masks():
    x = torch.tensor([-1.0, 0.0, 2.0, 90.0])
    there = x <= 0
    a = masked.masked_tensor(x, there, requires_grad=True)
    b = masked.masked_tensor(torch.ones(4), ~there, requires_grad=True)
    y = torch.where(there, torch.exp(a), b)
    assert y.get_mask().all() and torch.equal(y.get_data()[2:], torch.ones(2))
    y.sum().backward()
    assert torch.allclose(a.grad.get_data()[:2], torch.tensor([0.3679, 1]), atol=1e-4)
    assert torch.equal(a.grad.get_mask(), there) and torch.equal(b.grad.get_mask(), ~there)
    a.grad = None
    assert a.grad is None


def test_masked_numbers_are_shown():
    assert repr(masked.masked_tensor(torch.tensor(1.5), torch.tensor(True))) == "MaskedTensor(  1.5000, True)"
    assert repr(masked.masked_tensor(torch.tensor(1.5), torch.tensor(False))) == "MaskedTensor(--, False)"
    line = repr(masked.masked_tensor(torch.tensor([3, 4]), torch.tensor([True, False])))
    assert line == "MaskedTensor(\n  [3,       --]\n)"


@pytest.mark.parametrize("kwargs", [{}, {"dtype": "int64"}], ids=["input", "dtype"])
def test_mean_of_integers_is_refused(kwargs):
    oracle = pytest.importorskip("torch")
    words = []
    for m in (torch, oracle):
        given = {name: getattr(m, value) for name, value in kwargs.items()}
        with pytest.raises(ValueError) as refused:
            m.masked.mean(m.arange(3), mask=m.tensor([True, False, True]), **given)
        words.append(str(refused.value).split("\n")[0])
    assert words[0].replace("rushlight", "torch") == words[1]
    assert masked.mean(torch.arange(3), dtype=torch.float32).item() == 1.0


@pytest.mark.parametrize(
    "name", ["amax", "amin", "argmax", "argmin", "logsumexp", "softmax", "log_softmax", "softmin"]
)
def test_truth_values_have_no_identity(name):
    """Masked-out truth values: there is nothing that they could count as."""
    oracle = pytest.importorskip("torch")
    for p in (oracle, torch):
        x = p.tensor([[True, False], [True, True]])
        with pytest.raises(
            NotImplementedError, match="identity of a.* on torch.bool input|identity of logsumexp"
        ):
            getattr(p.masked, name)(x, 0, mask=x)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "softmax", "log_softmax", "softmin", "median"])
def test_the_first_of_several_dimensions(name):
    oracle = pytest.importorskip("torch")
    results = []
    for p in (oracle, torch):
        x = p.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 1.0]])
        results.append([getattr(p.masked, name)(x, dim).tolist() for dim in (None, (0, 1), 1)])
    for expected, got in zip(*results, strict=True):
        oracle.testing.assert_close(oracle.tensor(got), oracle.tensor(expected))


def test_integers_have_no_logarithm_of_sums():
    oracle = pytest.importorskip("torch")
    for p in (oracle, torch):
        x = p.tensor([1, 2])
        for options in ({}, {"input_mask": x > 1, "other_mask": x > 1}):
            with pytest.raises(NotImplementedError, match="logaddexp_cpu"):
                p.masked._ops.logaddexp(x, x, **options)
    with pytest.raises(TypeError, match="not iterable"):
        torch.masked.sum(torch.ones(2, 2), 2.5)


LAYOUTS = {"sparse_coo": lambda t: t.to_sparse(), "sparse_csr": lambda t: t.to_sparse_csr()}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_sparse_tensors_are_reduced_in_their_layout(layout, name, dim):
    x = torch.tensor([[1.0, 0.0, -2.0], [0.0, 0.0, 3.0]])
    mask = torch.tensor([[True, False, True], [False, False, False]])
    reduce = getattr(torch.masked, name)
    found = reduce(LAYOUTS[layout](x), dim, keepdim=True, mask=LAYOUTS[layout](mask))
    assert str(found.layout) == f"torch.{layout}"
    wanted = reduce(x, dim, keepdim=True, mask=mask)
    outside = ~mask.any(dim, keepdim=True)
    torch.testing.assert_close(found.to_dense(), wanted.masked_fill(outside, 0))
    torch.testing.assert_close(
        reduce(x, dim, keepdim=True, mask=LAYOUTS[layout](mask)), wanted, equal_nan=True
    )


def test_sparse_reductions_that_mean_nothing_are_refused():
    x = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="masked prod expects explicit mask for sparse_coo"):
        torch.masked.prod(x.to_sparse())
    with pytest.raises(ValueError, match="keepdim=False is unsupported"):
        torch.masked.sum(x.to_sparse_csr(), 0)
    with pytest.raises(ValueError, match="expects a strided, sparse_coo or sparse_csr"):
        torch.masked.sum(x.to_sparse_csc(), 0)
    assert torch.masked.sum(x.to_sparse(), 0).to_dense().tolist() == [1.0, 2.0]


def test_where_keeps_what_a_sparse_mask_names():
    x = torch.tensor([[1.0, 2.0, 0.0], [4.0, 0.0, 6.0]])
    mask = torch.tensor([[True, False, True], [False, False, True]])
    for make in LAYOUTS.values():
        found = torch.masked._where(make(mask), make(x), torch.tensor(9.0))
        assert found.layout is make(x).layout
        assert found._nnz() == 3
        assert found.to_dense().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 6.0]]
    rows = torch.masked._where(mask.to_sparse(1), x.to_sparse(1), torch.tensor(9.0))
    assert rows.to_dense().tolist() == [[1.0, 9.0, 0.0], [9.0, 9.0, 6.0]]
    assert torch.masked._where(mask, x, torch.tensor(9.0)).tolist() == rows.to_dense().tolist()


def test_masks_of_operands_and_results():
    x = torch.ones(2, 3)
    mask = torch.tensor([[True, False, True], [False, False, False]])
    assert torch.masked._input_mask(x, mask=mask[0]).tolist() == [[True, False, True]] * 2
    assert torch.masked._input_mask(x.to_sparse(), mask=mask).layout is torch.sparse_coo
    assert torch.masked._output_mask(torch.masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert torch.masked._output_mask(torch.masked.norm, x, 2.0, 1, mask=mask).tolist() == [True, False]
    assert torch.masked._output_mask(torch.masked.softmax, x, 1, mask=mask).tolist() == mask.tolist()
    with pytest.raises(ValueError, match="expected masked operation"):
        torch.masked._output_mask(torch.add, x, mask=mask)
    with pytest.raises(ValueError, match="requires explicit mask"):
        torch.masked._input_mask(x)


def test_no_dimensions_given_are_all_of_them():
    x = torch.tensor([1.0, 0.0, -2.0])
    mask = torch.tensor([True, True, False])
    assert masked._canonical_dim((), 2) == masked._canonical_dim([], 2) == (0, 1)
    assert masked._output_mask(masked.sum, x, (), mask=mask).shape == ()
    for name in ("sum", "prod", "amax", "amin"):
        reduce = getattr(masked, name)
        found = reduce(x.to_sparse(), (), mask=mask.to_sparse())
        assert found.to_dense() == reduce(x, (), mask=mask) == reduce(x, mask=mask)


def test_gradients_of_masked_tensors_are_masked():
    data, mask = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True])
    x, unused = masked.masked_tensor(data, mask, requires_grad=True), torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(g.sum(), x)
    for found, values in ((g, [3, 27]), (second, [6, 18])):
        assert masked.is_masked_tensor(found) and found.get_mask().equal(mask)
        assert found.get_data()[mask].tolist() == values
    squares = x * x
    weights = masked.masked_tensor(torch.tensor([1.0, 5.0, 2.0]), mask)
    found = torch.autograd.grad(squares, [x, unused], weights, allow_unused=True)
    assert found[0].to_tensor(0).tolist() == [2, 0, 12] and found[1] is None
    (inner,) = torch.autograd.grad(squares.exp().sum(), squares, retain_graph=True)
    assert torch.allclose(inner.to_tensor(0), torch.tensor([1.0, 0, 9]).exp() * mask)
    plain = data.clone().requires_grad_()
    doubled = masked.as_masked_tensor(plain, mask) * 2
    assert torch.autograd.grad(doubled.sum(), plain)[0].to_tensor(0).tolist() == [2, 0, 2]


MASKED_PROGRAMS = {
    "by indices": lambda m: (m * 2).to_sparse().to_dense().sum(),
    "rows": lambda m: m.to_sparse_csr().sin().to_dense().mean(1),
    "softmax": lambda m: m.softmax(-1),
    "largest": lambda m: m.amax(dim=0),
    "pieces": lambda m: m.unfold(1, 2, 2),
    "product": lambda m: m.prod(),
}


@pytest.mark.parametrize("name", MASKED_PROGRAMS)
def test_masked_tensors_of_all_layouts_as_pytorchs(name):
    """Data, masks and gradients of masked tensors, some of them sparse."""
    oracle = pytest.importorskip("torch")
    results = []
    for lib in (torch, oracle):
        m = lib.masked.masked_tensor(lib.tensor(ROWS), lib.tensor(MASK), requires_grad=True)
        y = MASKED_PROGRAMS[name](m)
        y.sum().backward()
        there = y.get_mask()
        results.append(
            [
                there.tolist(),
                y.get_data().masked_fill(~there, 0).tolist(),
                m.grad.get_mask().tolist(),
                m.grad.to_tensor(0.0).tolist(),
            ]
        )
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(torch.tensor(here), torch.tensor(there))


@pytest.mark.parametrize(
    "move",
    [
        lambda t: t.flip(0),
        lambda t: t.roll(1, 1),
        lambda t: t.take(torch.tensor([0, 3, 5])),
        lambda t: torch.masked_select(t, torch.tensor([True, False, True, True])),
        lambda t: torch.diag_embed(t),
    ],
)
def test_masks_go_the_way_of_elements(move):
    data, mask = torch.tensor(ROWS), torch.tensor(MASK)
    moved = move(masked.masked_tensor(data, mask))
    assert torch.equal(moved.get_mask(), move(mask))
    assert torch.equal(moved.to_tensor(-1.0), torch.where(move(mask), move(data), -1.0))


def test_masked_tensors_join_and_are_written():
    a = masked.masked_tensor(torch.tensor([1.0, 4.0]), torch.tensor([True, False]), requires_grad=True)
    b = masked.masked_tensor(torch.tensor([2.0, 3.0]), torch.tensor([False, True]))
    rows = torch.stack([a, b])
    assert rows.get_mask().tolist() == [[True, False], [False, True]]
    rows.sum().backward()
    assert a.grad.to_tensor(0).tolist() == [1, 0]
    assert torch.cat([b, torch.ones(1)]).get_mask().tolist() == [False, True, True]
    b.mul_(2)
    assert b.get_data().tolist() == [4, 6]
    with pytest.raises(TypeError, match="plain tensor"):
        torch.ones(2).add_(b)
    with pytest.raises(TypeError, match="aten.max.default"):
        b.max()


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr], ids=str)
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "argmax", "mean"])
def test_sparse_masked_tensors_reduce_as_dense_ones(layout, name):
    found = []
    for m in (masked.masked_tensor(torch.tensor(ROWS), torch.tensor(MASK), requires_grad=True) for _ in "ab"):
        other = m._to_layout(layout) if found else m
        y = getattr(other * 2, name)()
        if y.requires_grad:
            y.backward()
        found.append((y.get_data().item(), None if m.grad is None else m.grad.to_tensor(0.0).tolist()))
    assert found[0] == found[1]


def test_sparse_masks_fit_their_data():
    at, other = torch.tensor([[0, 1], [2, 0]]), torch.tensor([[0, 1], [2, 1]])
    data = torch.sparse_coo_tensor(at, torch.tensor([3.0, 4.0]), (2, 4))
    truths = torch.tensor([True, True])
    m = masked.masked_tensor(data, torch.sparse_coo_tensor(at, truths, (2, 4)))
    assert m.layout is torch.sparse_coo and m.to_tensor(0).tolist() == data.to_dense().tolist()
    assert "4.0000" in repr(m)
    with pytest.raises(ValueError, match="same indices"):
        masked.masked_tensor(data, torch.sparse_coo_tensor(other, truths, (2, 4)))
    with pytest.raises(TypeError, match="same layout"):
        masked.masked_tensor(data, torch.ones(2, 4, dtype=torch.bool))


@pytest.mark.parametrize(
    "dtype", ["complex64", "complex128", "bfloat16", "uint8", "float16", "int16", "bool"]
)
@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors")
def test_types_that_are_taken(dtype):
    oracle = pytest.importorskip("torch")
    answers = []
    for t in (torch, oracle):
        try:
            masked = t.masked.masked_tensor(t.ones(2).to(getattr(t, dtype)), t.tensor([True, False]))
            answers.append(str(masked.dtype))
        except TypeError as problem:
            answers.append(str(problem))
    assert answers[0] == answers[1]
