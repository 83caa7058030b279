"""Compressed sparse layouts in blocks and batches against PyTorch; reduced products, sampled products, sizes
changed in place and legacy constructors."""

import io

import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*sparse.*is deprecated")

BOTH = [rushlight, oracle]
LAYOUTS = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def dense(t):
    values = t.arange(16.0).view(4, 4)
    return values * (t.arange(16).view(4, 4) % 3 != 0)


def batch(t):
    return t.stack([dense(t), dense(t) * 2])


def made(t, x, layout):
    return x.to_sparse(layout=getattr(t, layout), blocksize=(2, 2) if "_bs" in layout else None)


def indices(x):
    by_rows = str(x.layout)[-1] == "r"
    return (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())


def shown(x):
    """A value with all its parts, in a form that compares across both libraries."""
    if isinstance(x, (list, tuple)):
        return [shown(v) for v in x]
    if not hasattr(x, "layout"):
        return x
    facts = [str(x.layout), tuple(x.shape), str(x.dtype)]
    if "coo" in facts[0]:
        return [*facts, x._indices().tolist(), rounded(x._values().tolist())]
    if "sparse" in facts[0]:
        return [*facts, [i.tolist() for i in indices(x)], rounded(x.values().tolist())]
    return [*facts, rounded(x.tolist())]


def rounded(values):
    if isinstance(values, list):
        return [rounded(v) for v in values]
    return round(values, 4) if isinstance(values, float) else values


def same(case):
    ours, theirs = (shown(case(t)) for t in BOTH)
    assert ours == theirs


def through_values(t, x, function):
    """The gradient of a function of a compressed tensor with respect to its values."""
    values = x.values().clone().requires_grad_()
    tensor = t.sparse_compressed_tensor(*indices(x), values, x.shape, layout=x.layout)
    (function(tensor) ** 2).sum().backward()
    return values.grad


@pytest.mark.parametrize("layout", LAYOUTS)
def test_from_dense(layout):
    same(lambda t: made(t, dense(t), layout))
    same(lambda t: made(t, batch(t), layout))
    same(lambda t: made(t, batch(t).unsqueeze(0), layout).to_dense())
    same(lambda t: repr(made(t, batch(t), layout)))
    hybrid = dict(dense_dim=1, blocksize=(2, 1) if "_bs" in layout else None)
    same(lambda t: (dense(t).unsqueeze(2) * t.ones(3)).to_sparse(layout=getattr(t, layout), **hybrid))


@pytest.mark.parametrize("source", LAYOUTS)
@pytest.mark.parametrize("target", LAYOUTS)
def test_conversions(source, target):
    if "_bs" in source and "_cs" in target:
        pytest.skip("PyTorch does not take blocks apart")
    same(lambda t: made(t, made(t, dense(t), source), target))
    if "_bs" in source or "_cs" in target:
        same(lambda t: made(t, made(t, batch(t), source), target))


def test_blocks_taken_apart():
    blocks = dense(rushlight).to_sparse_bsr((2, 2))
    assert shown(blocks.to_sparse_coo().to_sparse_csr().to_dense()) == shown(dense(rushlight))
    assert shown(blocks.to_sparse_bsr((1, 4)).to_dense()) == shown(dense(rushlight))


UNARY = {
    "sign": lambda t, x: [-x, x.abs(), x.sgn(), x.relu(), x.sqrt(), x.isnan(), x.round()],
    "scaled": lambda t, x: x * 2,
    "types": lambda t, x: [x.double(), x.bool()],
    "copies": lambda t, x: [x.clone(), x.clone().copy_(x), t.ones_like(x)],
    "zeros": lambda t, x: [t.zeros_like(x), x.clone().zero_()],
    "add": lambda t, x: x + x,
    "transpose": lambda t, x: x.transpose(-1, -2),
    "facts": lambda t, x: [x._nnz(), x.sparse_dim(), x.dense_dim(), x.is_sparse, x.is_sparse_csr],
    "to_coo": lambda t, x: x.to_sparse(),
    "to_dense": lambda t, x: x.to_dense(),
    "sum": lambda t, x: x.sum(),
    "mask": lambda t, x: t.arange(x.numel()).view(x.shape).sparse_mask(x),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", UNARY)
def test_operators(layout, name):
    same(lambda t: UNARY[name](t, made(t, dense(t), layout)))
    same(lambda t: UNARY[name](t, made(t, batch(t), layout)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_selected_batch(layout):
    same(lambda t: made(t, batch(t), layout)[1])


@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc", "sparse_bsr"])
def test_products(layout):
    other = lambda t: t.arange(12.0).view(4, 3)  # noqa: E731
    same(lambda t: made(t, dense(t), layout) @ other(t))
    same(lambda t: made(t, dense(t), layout) @ t.arange(4.0))
    same(lambda t: t.addmm(t.ones(4, 3), made(t, dense(t), layout), other(t), beta=2, alpha=0.5))
    same(lambda t: through_values(t, made(t, dense(t), layout), lambda x: x @ other(t)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradient_of_to_dense(layout):
    same(lambda t: through_values(t, made(t, dense(t), layout), lambda x: x.to_dense()))


def test_products_beyond_pytorch():
    """Blocks by columns, and batches, give what dense matrices give."""
    other = rushlight.arange(12.0).view(4, 3)
    for layout in LAYOUTS:
        x, many = made(rushlight, dense(rushlight), layout), made(rushlight, batch(rushlight), layout)
        assert shown(x @ other) == shown(dense(rushlight) @ other)
        assert shown(other.T @ x) == shown(other.T @ dense(rushlight))
        assert shown(rushlight.bmm(many, other.expand(2, 4, 3))) == shown(batch(rushlight) @ other)
    blocks = dense(rushlight).to_sparse_bsr((2, 2))
    with pytest.raises(NotImplementedError, match="two sparse matrices in block layouts"):
        blocks @ blocks


CONSTRUCTORS = {
    "bsr": lambda t: t.sparse_bsr_tensor([0, 1, 2], [0, 1], t.ones(2, 2, 3)),
    "bsc": lambda t: t.sparse_bsc_tensor([0, 1, 2], [0, 1], t.ones(2, 2, 3), dtype=t.float64),
    "int32": lambda t: t.sparse_bsr_tensor(
        t.tensor([0, 1]).int(), t.tensor([1]).int(), t.ones(1, 2, 2), (2, 6)
    ).crow_indices(),
    "batch": lambda t: t.sparse_csr_tensor([[0, 1], [0, 1]], [[0], [1]], t.ones(2, 1), size=(2, 1, 3)),
    "hybrid": lambda t: t.sparse_csr_tensor([0, 1, 1], [2], t.ones(1, 4)),
    "empty": lambda t: t.sparse_csr_tensor([0, 0], [], t.ones(0), (1, 3)),
}


@pytest.mark.parametrize("name", CONSTRUCTORS)
def test_constructors(name):
    same(CONSTRUCTORS[name])


BAD_PARTS = [
    lambda t: t.sparse_bsr_tensor([0, 1], [0], t.ones(1, 2)),  # no blocks
    lambda t: t.sparse_bsr_tensor([0, 1], [0], t.ones(1, 2, 2), (3, 2)),
    lambda t: t.sparse_csr_tensor([[0, 1]], [0], t.ones(1)),
    lambda t: t.sparse_csr_tensor([[0, 1], [0, 2]], [[0], [1]], t.ones(2, 1)),
    lambda t: t.sparse_csr_tensor([[0, 2], [0, 2]], [[0, 1], [1, 0]], t.ones(2, 2)),
    lambda t: t.sparse_bsc_tensor([0, 1], [5], t.ones(1, 2, 2), (2, 2)),
    lambda t: t.ones(3, 3).to_sparse_bsr((2, 2)),
    lambda t: t.ones(4, 4).to_sparse_bsr((0, 2)),
    lambda t: t.ones(4, 4).to_sparse(layout=t.sparse_bsr),
    lambda t: t.stack([t.eye(3), t.ones(3, 3)]).to_sparse_csr(),
    lambda t: t.ones(4).to_sparse_csr(),
]


@pytest.mark.parametrize("number", range(len(BAD_PARTS)))
def test_parts_that_do_not_fit(number):
    for t in BOTH:
        with pytest.raises((RuntimeError, ValueError, IndexError)):
            case = BAD_PARTS[number](t)
            oracle._validate_sparse_compressed_tensor_args(
                *indices(case), case.values(), case.shape, case.layout
            )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files(layout):
    for source, target in (BOTH, BOTH[::-1]):
        file = io.BytesIO()
        source.save(made(source, batch(source), layout), file)
        file.seek(0)
        assert shown(target.load(file)) == shown(made(target, batch(target), layout))


# --- reduced and sampled products -------------------------------------------------------------------


def reduced(t, reduce):
    left = t.tensor([[0, 2.0, 0, -1], [0, 0, 0, 0], [3, 0, 4, 5]]).to_sparse_csr()
    values = left.values().clone().requires_grad_()
    other = t.tensor([[1.0, -2], [3, 0.5], [-1, 2], [0.5, 3]]).requires_grad_()
    product = t.sparse.mm(t.sparse_csr_tensor(*indices(left), values, left.shape), other, reduce)
    (product * t.arange(6.0).view(3, 2)).sum().backward()
    return product.detach(), values.grad, other.grad


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_reduced_products(reduce):
    same(lambda t: reduced(t, reduce))


def test_reduced_product_refuses():
    for t in BOTH:
        with pytest.raises(RuntimeError, match="reduce"):
            reduced(t, "prod")
        with pytest.raises(RuntimeError):
            t.sparse.mm(t.eye(2).to_sparse_csc(), t.eye(2), "sum")


@pytest.mark.parametrize("starts, columns", [([0, 1], [99]), ([0, 9], [0]), ([1, 0], [0]), ([0, 1], [-1])])
def test_unchecked_parts_cannot_reach_outside(starts, columns):
    """Products look at the indices of tensors that were put together without checks."""
    parts = rushlight.tensor(starts), rushlight.tensor(columns), rushlight.ones(1), [1, 2]
    bad = rushlight._sparse_compressed_tensor_unsafe(*parts, layout=rushlight.sparse_csr)
    for product in (
        lambda: bad @ rushlight.ones(2, 3),
        lambda: rushlight.sparse.mm(bad, rushlight.ones(2, 3), "amax"),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            product()


def sampled(t, many):
    pattern = made(t, batch(t) if many else dense(t), "sparse_csr").requires_grad_()
    lead = (2,) if many else ()
    left, right = (t.arange(8.0 * (1 + many)).view(*lead, *s).requires_grad_() for s in ((4, 2), (2, 4)))
    y = t.sparse.sampled_addmm(pattern, left, right, beta=0.5, alpha=2)
    if many:  # PyTorch has no gradient of batches
        return [y.detach()]
    return [y.detach(), *t.autograd.grad(y.to_dense().sum(), [pattern, left, right])]


@pytest.mark.parametrize("many", [False, True])
def test_sampled_product(many):
    same(lambda t: sampled(t, many))


# --- COO: sizes in place, sums, elements, older names -----------------------------------------------


def coo(t):
    return t.sparse_coo_tensor([[0, 1, 1, 0], [2, 0, 2, 2]], [3.0, 4.0, 5.0, -1.0], (2, 3))


def hybrid(t):
    return t.sparse_coo_tensor(t.tensor([[0, 2, 0]]), t.arange(6.0).view(3, 2), (4, 2))


OLDER = {
    "resize": lambda t: coo(t).sparse_resize_((4, 5), 2, 0),
    "resize empty": lambda t: t.sparse_coo_tensor((2, 3)).sparse_resize_((4, 5, 6), 1, 2),
    "clear": lambda t: coo(t).sparse_resize_and_clear_((2, 3, 4), 1, 2),
    "sum": lambda t: [coo(t).sum(0), coo(t).sum((0, 1)), hybrid(t).sum(1), hybrid(t).sum(0)],
    "sum csr": lambda t: dense(t).to_sparse_csr().sum(-1, keepdim=True),
    "select": lambda t: [coo(t)[1], coo(t).select(1, 2), hybrid(t)[0], hybrid(t).select(1, 0)],
    "bmm": lambda t: t.bmm(batch(t).to_sparse(), t.arange(24.0).view(2, 4, 3)),
    "smm": lambda t: [t.smm(coo(t), t.ones(3, 2)), coo(t).smm(t.ones(3, 2))],
    "hspmm": lambda t: [t.hspmm(coo(t), t.ones(3, 2)), t.hsmm(coo(t), t.ones(3, 2))],
    "dsmm": lambda t: [t.dsmm(coo(t), t.ones(3, 2)), t.spmm(coo(t), t.ones(3, 2))],
    "sspaddmm": lambda t: t.sspaddmm(
        coo(t).coalesce(), coo(t).coalesce(), t.eye(3), beta=2, alpha=3
    ).to_dense(),
    "legacy": lambda t: [
        t.sparse.FloatTensor(t.tensor([[0, 1], [1, 0]]), t.tensor([1.0, 2]), t.Size([2, 2])),
        t.sparse.DoubleTensor(t.tensor([[0, 1], [1, 0]]), t.tensor([1.0, 2]).double()),
        t.sparse.HalfTensor(2, 3),
        t.sparse.FloatTensor(),
        t.sparse.LongTensor(t.Size([2, 3])),
    ],
    "legacy types": lambda t: [
        coo(t).type(),
        coo(t).type(t.sparse.DoubleTensor),
        isinstance(coo(t), t.sparse.FloatTensor),
        isinstance(t.ones(1), t.sparse.FloatTensor),
    ],
}


@pytest.mark.parametrize("name", OLDER)
def test_older_forms(name):
    same(OLDER[name])


@pytest.mark.parametrize(
    "size, dims", [((1, 3), (2, 0)), ((2, 3, 4), (3, 0)), ((2, 3), (1, 0)), ((2,), (-1, 2))]
)
def test_resize_refuses(size, dims):
    for t in BOTH:
        with pytest.raises(RuntimeError):
            coo(t).sparse_resize_(size, *dims)


def test_gradient_of_a_dense_tensor_through_a_mask_is_dense():
    layouts = []
    for t in BOTH:
        x, g = t.eye(3, requires_grad=True), t.ones(3, 3, requires_grad=True)
        (first,) = t.autograd.grad(x.to_sparse().to_dense(), x, g, create_graph=True)
        layouts.append(str(t.autograd.grad(first, g, t.ones(3, 3))[0].layout))
    assert layouts == ["torch.strided"] * 2
