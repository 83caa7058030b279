"""Sparse tensors against PyTorch: parts, conversions, arithmetic, products, gradients, optimizers, files."""

import io

import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

INDICES = [[0, 1, 1, 0], [2, 0, 2, 2]]
VALUES = [3.0, 4.0, 5.0, -1.0]
BOTH = [rushlight, oracle]


def coo(t, **options):
    return t.sparse_coo_tensor(t.tensor(INDICES), t.tensor(VALUES), (2, 3), **options)


def hybrid(t):
    return t.sparse_coo_tensor(t.tensor([[0, 2, 0]]), t.arange(6.0).view(3, 2), (4, 2))


def shown(x):
    """A value, sparse or not, in a form that compares across both libraries."""
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    if hasattr(x, "layout"):
        layout = str(x.layout)
        dense = (x.to_dense() if "sparse" in layout else x).detach()
        return layout, tuple(x.shape), str(x.dtype), rounded(dense.tolist())
    return x


def rounded(values):
    if isinstance(values, list):
        return [rounded(v) for v in values]
    return round(values, 5) if isinstance(values, float) else values


CASES = {
    "parts": lambda t: [
        coo(t)._indices(),
        coo(t)._values(),
        coo(t)._nnz(),
        coo(t).sparse_dim(),
        coo(t).dense_dim(),
    ],
    "coalesce": lambda t: [coo(t).coalesce().indices(), coo(t).coalesce().values(), coo(t).is_coalesced()],
    "hybrid": lambda t: [hybrid(t), hybrid(t).coalesce().values(), hybrid(t).dense_dim()],
    "bool": lambda t: t.sparse_coo_tensor([[1, 1]], t.tensor([True, False]), (3,)),
    "empty": lambda t: [t.sparse_coo_tensor((2, 3)), t.sparse_coo_tensor((2, 3))._nnz()],
    "inferred size": lambda t: t.sparse_coo_tensor([[0, 4]], [1, 2]),
    "to_sparse": lambda t: [t.eye(3).to_sparse(), t.arange(12.0).view(2, 3, 2).to_sparse(2)._indices()],
    "to_csr": lambda t: [coo(t).to_sparse_csr().crow_indices(), coo(t).to_sparse_csr().col_indices()],
    "to_csc": lambda t: [coo(t).to_sparse_csc().ccol_indices(), coo(t).to_sparse_csc().row_indices()],
    "csr": lambda t: [csr(t), csr(t).values(), csr(t).t().layout == t.sparse_csc, csr(t).to_sparse_coo()],
    "csr round": lambda t: t.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr(),
    "add": lambda t: [coo(t) + coo(t), coo(t) - coo(t) * 3, t.ones(2, 3) + coo(t)],
    "add csr": lambda t: csr(t) + csr(t),
    "mul": lambda t: [coo(t) * 2, coo(t) * t.arange(6.0).view(2, 3), coo(t) * coo(t), coo(t) / 2],
    "unary": lambda t: [
        -coo(t),
        coo(t).sin(),
        coo(t).abs(),
        coo(t).tanh(),
        (coo(t) * coo(t)).sqrt(),
        coo(t) ** 2,
    ],
    "in place": lambda t: [in_place(t)],
    "sum": lambda t: [
        coo(t).sum(),
        t.sparse.sum(coo(t)),
        t.sparse.sum(coo(t), 0),
        t.sparse.sum(hybrid(t), [0]),
    ],
    "sum dense dims": lambda t: t.sparse.sum(hybrid(t), 1),
    "mm": lambda t: [
        coo(t) @ t.ones(3, 2),
        t.sparse.mm(coo(t), t.ones(3, 2)),
        t.mv(coo(t), t.ones(3)),
        csr(t) @ t.eye(3),
    ],
    "mm sparse": lambda t: [t.sparse.mm(coo(t), coo(t).t()), t.sparse.mm(csr(t), csr(t).t().to_sparse_csr())],
    "addmm": lambda t: t.sparse.addmm(t.ones(2, 2), coo(t), t.ones(3, 2), beta=0.5, alpha=2.0),
    "transpose": lambda t: [
        coo(t).t(),
        hybrid(t).transpose(0, 0),
        coo(t).transpose(0, 1).coalesce().indices(),
    ],
    "mask": lambda t: [t.arange(6.0).view(2, 3).sparse_mask(coo(t).coalesce())],
    "index_select": lambda t: [
        coo(t).index_select(0, t.tensor([1, 1, 0])),
        coo(t).index_select(1, t.tensor([2])),
    ],
    "cat": lambda t: [t.cat([coo(t), coo(t)]), t.cat([coo(t), coo(t)], 1)],
    "softmax": lambda t: [
        t.sparse.softmax(coo(t), 1),
        t.sparse.log_softmax(coo(t), 0),
        t.sparse.softmax(hybrid(t), 1),
    ],
    "cast": lambda t: [coo(t).double(), coo(t).to(t.int64), coo(t).clone(), coo(t).detach()],
    "like": lambda t: [t.zeros_like(coo(t)), coo(t).zero_()],
    "spdiags": lambda t: t.sparse.spdiags(t.arange(6.0).view(2, 3), t.tensor([0, -1]), (3, 3)),
    "facts": lambda t: [
        coo(t).is_sparse,
        csr(t).is_sparse,
        csr(t).is_sparse_csr,
        t.ones(1).is_sparse,
        t.ones(1).dense_dim(),
    ],
    "repr": lambda t: [repr(coo(t)), repr(coo(t).coalesce()), repr(hybrid(t)), repr(csr(t))],
}


def csr(t):
    return t.sparse_csr_tensor(t.tensor([0, 1, 3]), t.tensor([2, 0, 2]), t.tensor([1.0, 2.0, 3.0]), (2, 3))


def in_place(t):
    x = coo(t)
    x.mul_(2)
    x.add_(coo(t))
    y = t.zeros(2, 3)
    y.add_(coo(t), alpha=3)
    return [x, y]


@pytest.mark.parametrize("case", CASES)
def test_as_pytorch(case):
    ours, theirs = (shown(CASES[case](t)) for t in BOTH)
    assert ours == theirs


GRADIENTS = {
    "coo values": lambda t, v: t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)).to_dense(),
    "coalesced values": lambda t, v: t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)).coalesce().values(),
    "mm": lambda t, v: t.sparse.mm(
        t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)), t.arange(6.0).view(3, 2)
    ),
    "mul": lambda t, v: (t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)) * 3).to_dense(),
    "sum": lambda t, v: t.sparse.sum(t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)), 0).to_dense(),
    "softmax": lambda t, v: t.sparse.softmax(t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)), 1).to_dense(),
    "add": lambda t, v: t.sparse_coo_tensor(t.tensor(INDICES), v, (2, 3)).to_dense() + v.sum(),
    "from dense": lambda t, v: (v.view(2, 2).to_sparse() * 2).to_dense(),
    "csr": lambda t, v: t.sparse_csr_tensor([0, 2, 4], [0, 1, 0, 2], v, (2, 3)).to_dense(),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradients(case):
    results = []
    for t in BOTH:
        v = t.tensor(VALUES, requires_grad=True)
        out = GRADIENTS[case](t, v)
        weight = t.arange(float(out.numel())).view(out.shape) + 1
        (grad,) = t.autograd.grad((out * weight).sum(), v)
        results.append(grad.tolist())
    assert results[0] == pytest.approx(results[1])


def test_gradients_of_sparse_leaves():
    for t in BOTH:
        s = coo(t).coalesce().requires_grad_()
        d = t.arange(6.0).view(3, 2).requires_grad_()
        t.sparse.mm(s, d).sum().backward()
        assert s.grad.is_sparse
        assert s.grad.to_dense().tolist() == [[0, 0, 9], [1, 0, 9]]
        assert d.grad.tolist() == [[4, 4], [0, 0], [7, 7]]
        s.grad = None
        (s * 2).to_dense().sum().backward()
        assert s.grad.to_dense().tolist() == [[0, 0, 2], [2, 0, 2]]


def test_embedding_gradients():
    results = []
    for t in BOTH:
        t.manual_seed(0)
        table = t.nn.Embedding(5, 3, sparse=True, padding_idx=1)
        for _ in range(2):  # twice: gradients accumulate
            (table(t.tensor([[0, 2], [2, 1]])) * 2).sum().backward()
        grad = table.weight.grad
        results.append((grad.is_sparse, grad.coalesce().indices().tolist(), grad.to_dense().tolist()))
    assert results[0] == results[1]


@pytest.mark.parametrize(
    "name,options",
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9}),
        ("SGD", {"momentum": 0.9, "nesterov": True, "maximize": True}),
        ("SGD", {"momentum": 0.5, "dampening": 0.3}),
        ("Adagrad", {}),
        ("SparseAdam", {}),
    ],
)
def test_optimizers_take_sparse_gradients(name, options):
    results = []
    for t in BOTH:
        t.manual_seed(0)
        table = t.nn.Embedding(6, 2, sparse=True)
        optimizer = getattr(t.optim, name)(table.parameters(), lr=0.1, **options)
        for step in range(3):
            optimizer.zero_grad()
            table(t.tensor([0, step, 5])).pow(2).sum().backward()
            optimizer.step()
        results.append(table.weight.flatten().tolist())
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    dense = rushlight.nn.Parameter(rushlight.ones(2))
    dense.grad = rushlight.ones(2).to_sparse()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        rushlight.optim.RMSprop([dense]).step()


def test_files_of_both(tmp_path):
    for writer, reader in (BOTH, BOTH[::-1]):
        writer.save({"coo": coo(writer).coalesce(), "csr": csr(writer)}, tmp_path / "x.pt")
        state = reader.load(tmp_path / "x.pt")
        assert shown(state["coo"]) == shown(coo(reader).coalesce())
        assert shown(state["csr"]) == shown(csr(reader))
        assert state["coo"].is_coalesced()
    buffer = io.BytesIO()
    rushlight.save(hybrid(rushlight), buffer)
    buffer.seek(0)
    assert shown(rushlight.load(buffer)) == shown(hybrid(rushlight))


BAD = {
    "negative": lambda t: t.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)),
    "outside": lambda t: t.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)),
    "nnz": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0], (3,)),
    "dims": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (3, 3)),
    "uncoalesced": lambda t: coo(t).values(),
    "dense": lambda t: t.ones(2).coalesce(),
    "crow": lambda t: t.sparse_csr_tensor([0, 3, 2], [0, 1], [1.0, 2.0], (2, 2)),
    "columns": lambda t: t.sparse_csr_tensor([0, 1, 2], [0, 5], [1.0, 2.0], (2, 2)),
    "unsorted": lambda t: t.sparse_csr_tensor([0, 2, 2], [1, 0], [1.0, 2.0], (2, 2), check_invariants=True),
    "shapes": lambda t: coo(t) @ t.ones(2, 2),
    "sizes": lambda t: coo(t) + t.sparse_coo_tensor((2, 4)),
    "no rule": lambda t: coo(t).cumsum(0),
    "exp": lambda t: coo(t).exp(),
}


@pytest.mark.parametrize("case", BAD)
def test_refused_with_reasons(case):
    with pytest.raises((RuntimeError, NotImplementedError, ValueError)) as error:
        BAD[case](rushlight)
    assert str(error.value)
    if case == "no rule":
        with pytest.raises(NotImplementedError, match=r"cumsum has no rule for sparse tensors.*to_dense"):
            BAD[case](rushlight)


def test_products_of_every_dtype():
    for dtype in ("float64", "float16", "bfloat16", "complex64", "int64"):
        kind = getattr(rushlight, dtype)
        s, d = coo(rushlight).to(kind), rushlight.ones(3, 2, dtype=kind)
        assert rushlight.mm(s, d).equal(rushlight.mm(s.to_dense(), d))


def test_large_product_in_parallel():
    rushlight.manual_seed(0)
    dense = rushlight.rand(300, 200) * (rushlight.rand(300, 200) > 0.9)
    other = rushlight.rand(200, 64)
    for s in (dense.to_sparse(), dense.to_sparse_csr(), dense.to_sparse_csc()):
        rushlight.testing.assert_close(s @ other, dense @ other)
    product = rushlight.sparse.mm(dense.to_sparse(), dense.t().to_sparse())
    rushlight.testing.assert_close(product.to_dense(), dense @ dense.t())


def test_gradcheck():
    check = rushlight.sparse.as_sparse_gradcheck(rushlight.autograd.gradcheck)
    s = coo(rushlight).double().coalesce().requires_grad_()
    d = rushlight.rand(3, 2, dtype=rushlight.float64, requires_grad=True)
    assert check(rushlight.sparse.mm, (s, d))
    assert check(lambda s: rushlight.sparse.softmax(s, 1), (s,))


def test_modes_see_sparse_calls():
    from rushlight.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    s = coo(rushlight)
    with Watch():
        product = s @ rushlight.ones(3, 2)
    assert product.tolist() == [[2, 2], [9, 9]]
    assert any("mm" in name for name in seen)


def test_a_size_alone_makes_an_empty_tensor():
    assert rushlight.sparse_coo_tensor(size=(2, 3)).to_dense().tolist() == [[0.0] * 3] * 2
    with pytest.raises(TypeError, match="indices and values, or a size"):
        rushlight.sparse_coo_tensor()


@pytest.mark.parametrize("elements", [0, 1, 2])
def test_fewer_than_two_elements_are_coalesced(elements):
    ours, theirs = (
        t.sparse_coo_tensor(t.zeros(1, elements, dtype=t.int64), t.ones(elements), (2,)) for t in BOTH
    )
    assert ours.is_coalesced() == theirs.is_coalesced() == (elements < 2)
    assert (ours * 2).is_coalesced() == (elements < 2)
    if elements < 2:
        assert ours.indices().tolist() == theirs.indices().tolist()
        assert ours.values().tolist() == theirs.values().tolist()


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_joined_matrices_keep_their_layout(layout, dim):
    layout = getattr(rushlight, layout)
    dense = rushlight.arange(24.0).view(4, 6) % 5
    blocks = (2, 2) if layout in (rushlight.sparse_bsr, rushlight.sparse_bsc) else None
    parts = [(dense * k).to_sparse(layout=layout, blocksize=blocks) for k in (1, 2)]
    joined = rushlight.cat(parts, dim)
    assert joined.layout == layout
    assert joined.to_dense().tolist() == rushlight.cat([dense, dense * 2], dim).tolist()


def test_a_dense_tensor_does_not_take_the_storage_of_a_sparse_one():
    for lib in BOTH:
        dense, listed = lib.ones(2, 2), lib.eye(2).to_sparse()
        for target, source in ((dense, listed), (listed, dense)):
            with pytest.raises(NotImplementedError, match="Sparse"):
                target.set_(source)
        assert dense.tolist() == [[1, 1], [1, 1]]
