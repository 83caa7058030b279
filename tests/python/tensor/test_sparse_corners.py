"""Sparse tensors where programs forget that they are: memory, numbers, writes in place, factories."""

import copy
import math

import numpy as np
import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
BOTH = [rushlight, oracle]


def coo(t, dtype=None):
    return t.tensor([[0, 1, 0], [2, 0, 3]], dtype=dtype or t.float32).to_sparse()


def csr(t):
    return coo(t).to_dense().to_sparse_csr()


def shown(x):
    layout = str(x.layout).rpartition(".")[2]
    return layout, str(x.dtype).rpartition(".")[2], tuple(x.shape), x.to_dense().tolist()


@pytest.mark.parametrize("make", [coo, csr])
def test_no_memory_is_read_where_there_is_none(make):
    for t in BOTH:
        for read in (lambda x: x.numpy(), lambda x: x.numpy(force=True), np.asarray):
            with pytest.raises(TypeError, match="layout tensor to numpy. Use Tensor.to_dense"):
                read(make(t))
        with pytest.raises(RuntimeError, match="Cannot access data pointer"):
            make(t).tolist()
    with pytest.raises(BufferError, match="sparse"):
        memoryview(make(rushlight))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.reshape(6),
        lambda x: x.flatten(),
        lambda x: x.repeat_interleave(2),
        lambda x: x.apply_(lambda v: v),
        lambda x: x.quantile(0.5),
        lambda x: rushlight.kron(x, x),
    ],
)
def test_shapes_are_refused_and_not_guessed(call):
    for x in (coo(rushlight), csr(rushlight)):
        with pytest.raises((RuntimeError, NotImplementedError), match="sparse|Sparse"):
            call(x)


def test_one_element_reads_as_a_number():
    for value in (3.0, 0.0):
        x = rushlight.tensor(value).to_sparse()
        assert x.item() == value and bool(x) == bool(value)


def test_strides():
    assert coo(rushlight).stride() == coo(oracle).stride() == (0, 0)
    with pytest.raises(RuntimeError, match="do not have strides"):
        csr(rushlight).stride()


def test_deepcopy_keeps_the_elements():
    x = coo(rushlight)
    assert shown(copy.deepcopy(x)) == shown(x)
    module = rushlight.nn.Module()
    module.register_buffer("adjacency", csr(rushlight))
    assert shown(copy.deepcopy(module).adjacency) == shown(csr(rushlight))


def test_writes_in_place_keep_the_dtype():
    for t in BOTH:
        for write in (
            lambda x: x.sin_(),
            lambda x: x.mul_(1.5),
            lambda x: x.div_(2),
            lambda x, other=coo(t): x.add_(other),
        ):
            with pytest.raises(RuntimeError):
                write(coo(t, t.int64))
        with pytest.raises(RuntimeError, match="Can't convert result type"):
            t.zeros(2, 3, dtype=t.int64).add_(coo(t))
        assert coo(t, t.float16).add_(coo(t)).dtype == t.float16


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_factories_of_sparse_layouts(layout):
    def made(t):
        kind = getattr(t, layout)
        return [
            t.zeros(2, 3, layout=kind, dtype=t.int32),
            t.zeros(2, 2, 3, layout=kind),
            t.zeros_like(t.ones(2, 2), layout=kind),
            t.ones(2).new_zeros((2, 3), layout=kind),
        ]

    for a, b in zip(made(rushlight), made(oracle), strict=True):
        assert shown(a) == shown(b)
    assert rushlight.empty(2, 3, layout=getattr(rushlight, layout))._nnz() == 0


def test_sums_have_the_dtypes_of_dense_ones():
    for dtype in ("bool", "int8", "float16", "bfloat16"):
        for dim in (0, 1, (0, 1)):
            ours, theirs = (coo(t, getattr(t, dtype)).sum(dim) for t in BOTH)
            assert shown(ours) == shown(theirs)
    ours = rushlight.full((200,), 0.1, dtype=rushlight.float16)
    assert abs(float(ours.to_sparse().sum(0)) - float(ours.sum())) < 0.01


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x * t.tensor(2.0).to_sparse(),
        lambda t, x: t.tensor(2.0).to_sparse() * x,
        lambda t, x: x * t.arange(12.0).view(2, 2, 3),
        lambda t, x: t._sparse_broadcast_to(x, (2, 2, 3)),
        lambda t, x: t._sparse_broadcast_to(t.tensor([[0.0], [5.0]]).to_sparse(), (2, 3)),
        lambda t, x: +x,
        lambda t, x: t.nan_to_num(x * float("nan")),
        lambda t, x: x.permute(1, 0),
        lambda t, x: x.unsqueeze(0),
        lambda t, x: x.unsqueeze(-1),
        lambda t, x: t.stack([x, x]),
        lambda t, x: x.any(),
        lambda t, x: x.new_zeros(2, 2),
        lambda t, x: t.zeros(2, 2, out=x.clone()),
        lambda t, x: x.to_sparse(layout=t.strided),
        lambda t, x: t.full_like(x.to_sparse_csr(), 2.0),
    ],
)
def test_operators_on_listed_elements(call):
    assert shown(call(rushlight, coo(rushlight))) == shown(call(oracle, coo(oracle)))


def test_permute_of_many_dimensions():
    for order in ((2, 0, 1), (1, 2, 0), (2, 1, 0), (0, 1, 2)):
        ours, theirs = (t.arange(24.0).view(2, 3, 4).to_sparse().permute(order) for t in BOTH)
        assert shown(ours) == shown(theirs)


def test_empty_indices_keep_their_dtype():
    t = rushlight
    rows, columns = t.tensor([0, 0], dtype=t.int32), t.tensor([], dtype=t.int32)
    x = t.sparse_csr_tensor(rows, columns, t.tensor([]), (1, 2))
    assert x.col_indices().dtype == t.int32


def test_parts_are_checked_by_name():
    for t in BOTH:
        x, c = coo(t), csr(t)
        t._validate_sparse_coo_tensor_args(x.indices(), x.values(), x.shape)
        with pytest.raises(RuntimeError):
            t._validate_sparse_coo_tensor_args(x.indices() + 5, x.values(), x.shape)
        t._validate_sparse_compressed_tensor_args(
            c.crow_indices(), c.col_indices(), c.values(), c.shape, t.sparse_csr
        )
        with pytest.raises(RuntimeError):
            t._validate_sparse_csr_tensor_args(c.crow_indices(), c.col_indices() + 5, c.values(), c.shape)
        assert x.clone()._coalesced_(False).is_coalesced() is False


def test_zeros_and_empty_tensors_take_other_layouts():
    matrix = rushlight.tensor([[1.0, 0.0], [2.0, 3.0]])
    for source in (matrix.to_sparse(), matrix.to_sparse_csr(), matrix.to_sparse_bsr((1, 1))):
        for layout in (rushlight.sparse_coo, rushlight.sparse_csr, rushlight.sparse_csc, rushlight.strided):
            made = rushlight.zeros_like(source, layout=layout)
            assert (made.layout, made.shape) == (layout, source.shape)
            assert not made.to_dense().any()
    blocks = rushlight.zeros_like(matrix.to_sparse_bsr((2, 1)), layout=rushlight.sparse_bsc)
    assert blocks.layout is rushlight.sparse_bsc
    assert blocks.values().shape[1:] == (2, 1)
    with pytest.raises(RuntimeError, match="non-block"):
        rushlight.zeros_like(matrix.to_sparse_csr(), layout=rushlight.sparse_bsr)
    with pytest.raises(RuntimeError, match="memory format option is only supported by strided"):
        rushlight.zeros_like(matrix.to_sparse(), memory_format=rushlight.channels_last)


def test_conversions_keep_the_type_of_indices():
    starts, places = (rushlight.tensor(n, dtype=rushlight.int32) for n in ([0, 1, 2], [0, 1]))
    rows = rushlight.sparse_csr_tensor(starts, places, rushlight.ones(2), (2, 2))
    assert rows.to_sparse_csc().row_indices().dtype is rushlight.int32
    assert rows.to_sparse_bsr((1, 1)).crow_indices().dtype is rushlight.int32
    assert rows.to_sparse().indices().dtype is rushlight.int64
    assert rushlight.eye(2).to_sparse_csr().col_indices().dtype is rushlight.int64


def test_dense_tensors_are_multiplied_in_place_by_sparse_ones():
    dense = rushlight.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert dense.mul_(rushlight.tensor([[2.0, 0.0], [0.0, 3.0]]).to_sparse()) is dense
    assert dense.tolist() == [[2.0, 0.0], [0.0, 12.0]]


def test_zeros_without_elements_are_added_whatever_their_sparse_dimensions():
    hybrid = rushlight.tensor([[1.0, 0.0], [2.0, 3.0]]).to_sparse(1)
    none = rushlight.sparse_coo_tensor((2, 2), dtype=rushlight.float64)
    for total in (hybrid + none, none + hybrid):
        assert total.dtype is rushlight.float64
        assert total.to_dense().tolist() == [[1.0, 0.0], [2.0, 3.0]]
    with pytest.raises(RuntimeError, match="same number of sparse dimensions"):
        hybrid + rushlight.eye(2).to_sparse()


def test_transposes_without_elements_stay_coalesced():
    none = rushlight.sparse_coo_tensor((2, 3)).coalesce()
    assert none.t().is_coalesced()
    assert not rushlight.eye(2).to_sparse().t().is_coalesced()


def test_sparse_tensors_take_the_size_of_others():
    one = rushlight.tensor([[1.0, 2.0]]).to_sparse()
    one.resize_as_(rushlight.zeros(3, 4).to_sparse())
    assert (one.shape, one._nnz()) == ((3, 4), 2)
    assert one.to_dense().sum() == 3
    with pytest.raises(RuntimeError, match="shrinking"):
        one.resize_((2, 2))


def test_new_makes_sparse_tensors_of_sparse_ones():
    like = rushlight.eye(2, dtype=rushlight.float64).to_sparse()
    made = like.new(rushlight.tensor([[0], [1]]), rushlight.tensor([5.0]), (2, 2))
    assert made.dtype is rushlight.float64
    assert made.to_dense().tolist() == [[0.0, 5.0], [0.0, 0.0]]


def test_parts_are_refused_in_pytorchs_words():
    for name, kind in (("crow_indices", "row"), ("row_indices", "column")):
        with pytest.raises(
            RuntimeError, match=f"{name} expected sparse {kind} compressed tensor layout but got Strided"
        ):
            getattr(rushlight.ones(2, 2), name)()
    with pytest.raises(RuntimeError, match="Output shape must be 2d"):
        rushlight.sparse.spdiags(rushlight.ones(1, 2), rushlight.tensor([0]), (2, 2, 2))


def test_sparse_tensors_are_not_assigned_to():
    for make in ("to_sparse", "to_sparse_csr"):
        sparse = getattr(rushlight.eye(2), make)()
        for at in ((0, 0), 0, (slice(None), 0)):
            with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
                sparse[at] = 99.0


@pytest.mark.parametrize("make", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("name", ["square", "deg2rad", "rad2deg"])
def test_composites_of_sparse_tensors_have_gradients(make, name):
    dense = rushlight.tensor([[0.5, 0.0], [0.0, -2.0]], dtype=rushlight.float64)
    sparse = getattr(dense, make)().requires_grad_()
    plain = dense.clone().requires_grad_()
    function = getattr(rushlight, name)
    result = function(sparse)
    assert result.layout is sparse.layout
    result.backward(getattr(rushlight.eye(2, dtype=rushlight.float64), make)())
    function(plain).backward(rushlight.eye(2, dtype=rushlight.float64))
    assert sparse.grad.layout is sparse.layout
    assert rushlight.allclose(sparse.grad.to_dense(), plain.grad)
    changed = getattr(dense, make)()
    getattr(changed, name + "_")()
    assert rushlight.allclose(changed.to_dense(), function(dense))


def test_sizes_of_factors_are_shown_as_of_dense_ones():
    with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied \(3x3 and 2x4\)"):
        rushlight.mm(rushlight.eye(3).to_sparse_csr(), rushlight.ones(2, 4))


def test_norms_are_of_all_elements():
    for t in BOTH:
        twice = t.sparse_coo_tensor(t.tensor([[0, 0, 1], [1, 1, 0]]), t.tensor([1.0, 2.0, -4.0]), (2, 2))
        norms = twice.norm(), t.norm(twice, 1), t.norm(twice, math.inf)
        assert [norm.item() for norm in norms] == [5.0, 7.0, 4.0]
    assert rushlight.linalg.vector_norm(csr(rushlight), 0, keepdim=True).tolist() == [[3.0]]
    for options in ({"dim": 0}, {"ord": -1}):
        with pytest.raises(NotImplementedError, match="norms of all their elements"):
            rushlight.linalg.vector_norm(coo(rushlight), **options)


def test_parts_of_sparse_tensors():
    """narrow_copy, unbind and what needs them; sums that leave nothing to list are dense."""
    for t in BOTH:
        made = t.sparse_coo_tensor(t.tensor([[0, 2], [1, 0]]), t.tensor([3.0, -1.0]), (3, 2))
        hybrid = t.sparse_coo_tensor(t.tensor([[0, 2]]), t.arange(6.0).reshape(2, 3), (4, 3))
        for sparse, dim, start, length in (
            (made, 0, 1, 2),
            (made, 1, 1, 1),
            (hybrid, 1, 1, 2),
            (made, 0, 3, 0),
        ):
            part = sparse.narrow_copy(dim, start, length)
            assert part.layout is t.sparse_coo
            assert part.to_dense().tolist() == sparse.to_dense().narrow(dim, start, length).tolist()
        assert [p.to_dense().tolist() for p in made.unbind(1)] == made.to_dense().t().tolist()
        assert t.tensor(2.0).to_sparse().transpose(0, -1).to_dense().item() == 2.0
        assert t.sum(made, (0, 1), True).layout is t.strided
        assert t.sum(made, (0, 1), True).tolist() == [[2.0]]
        assert t.sum(hybrid, (0, 1), True).layout is t.strided
        assert t.sum(hybrid, (0,), True).tolist() == [[3.0, 5.0, 7.0]]
        assert t.sum(made, (0,), True).layout is t.sparse_coo


def test_gradients_through_parts_of_sparse_tensors():
    for t in BOTH:
        x = t.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], requires_grad=True)
        factor = t.tensor(2.0, requires_grad=True)
        weights = t.arange(12.0).reshape(2, 2, 3)
        (t.stack([x.to_sparse(), x.to_sparse()], 1).to_dense() * weights).sum().backward()
        assert x.grad.tolist() == weights.sum(1).mul(x.detach() != 0).tolist()
        (x.to_sparse() * factor.to_sparse()).to_dense().sum().backward()
        assert factor.grad.to_dense().item() == 6.0


@pytest.mark.parametrize("coalesced", [(True, True), (True, False), (False, False)])
def test_sums_list_equal_neighbours_once(coalesced):
    def parts(t):
        places = t.tensor([[1, 0, 1, 1], [2, 0, 0, 0]]), t.tensor([[0, 1, 1], [2, 0, 2]])
        pair = [t.sparse_coo_tensor(i, t.arange(1.0, i.shape[1] + 1), (2, 3)) for i in places]
        a, b = (x.coalesce() if yes else x for x, yes in zip(pair, coalesced, strict=True))
        sums = a + b, b + a, a - 2 * b, a + a
        return [(x._indices().tolist(), x._values().tolist(), x.is_coalesced()) for x in sums]

    assert parts(rushlight) == parts(oracle)


def test_a_gradient_that_is_added_again_and_again_does_not_grow():
    table = rushlight.nn.Embedding(5, 2, sparse=True)
    for _ in range(4):
        table(rushlight.tensor([1, 4])).sum().backward()
    assert table.weight.grad._nnz() == 2
    assert table.weight.grad.to_dense()[:, 0].tolist() == [0.0, 4.0, 0.0, 0.0, 4.0]


def test_rounded_quotients():
    def quotients(t):
        x = t.sparse_coo_tensor(t.tensor([[0, 1, 1], [2, 0, 0]]), t.tensor([3.0, -4.0, -5.0]), (2, 3))
        found = [x // 2, x.div(2, rounding_mode="trunc"), x.clone().floor_divide_(2), x.div(2)]
        found.append(x.clone().div_(t.tensor(2.0), rounding_mode="floor"))
        found.append(t.divide(x, 2, rounding_mode=None))
        with pytest.raises(RuntimeError, match=r"scalar or zero-dim dense tensor divisor \(got shape"):
            x // t.ones(2, 3)
        return [(y.to_dense().tolist(), y._nnz(), y.is_coalesced()) for y in found]

    assert quotients(rushlight) == quotients(oracle)


def test_norms_and_sizes_under_their_older_names():
    found = []
    for t in BOTH:
        x, larger = coo(t), t.zeros(3, 5).to_sparse()
        norms = [t.native_norm(x).item(), t.native_norm(x, 1).item(), x._to_dense().tolist()]
        found.append((*norms, x.clone().resize_as_sparse_(larger).to_dense().tolist()))
        with pytest.raises(NotImplementedError, match="native_norm"):
            t.native_norm(t.ones(2))
        with pytest.raises(RuntimeError):
            t.ones(2).resize_as_sparse_(x)
    assert found[0] == found[1]
