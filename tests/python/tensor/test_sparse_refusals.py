"""What is refused of compressed sparse tensors, in PyTorch's words, and what stands beside each refusal."""

import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:Sparse")
COMPRESSED = ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]
ALL = ["strided", "sparse_coo", *COMPRESSED]


def matrix(t, layout, batches=0):
    dense = t.arange(1.0, 25.0).reshape(4, 6)
    dense = t.stack([dense + i for i in range(batches)]) if batches else dense
    return dense.to_sparse(layout=getattr(t, layout), blocksize=(2, 3) if "_bs" in layout else None)


def told(t, call):
    """What a call gives, or the first line of its error."""
    try:
        result = call(t)
    except RuntimeError as error:
        return str(error).partition("\n")[0].replace("select_copy()", "select()")
    parts = [str(result.layout).rpartition(".")[2], tuple(result.shape), result.to_dense().tolist()]
    return [*parts, result.is_coalesced()] if parts[0] == "sparse_coo" else parts


def same(call):
    assert told(rushlight, call) == told(oracle, call)


@pytest.mark.parametrize("layout", COMPRESSED)
def test_elements_of_a_dimension(layout):
    for dim in range(2):
        same(lambda t, dim=dim: t.select_copy(matrix(t, layout), dim, 1))
    for dim in range(3):
        same(lambda t, dim=dim: t.select_copy(matrix(t, layout, 2), dim, 1))
    with pytest.raises(RuntimeError, match="batched sparse compressed"):
        matrix(rushlight, layout, 2).select(-1, 0)


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("wanted", ALL)
def test_layouts_of_tensors_like_others(layout, wanted):
    def shape(t):
        made = t.empty_like(matrix(t, layout), layout=getattr(t, wanted))
        return t.zeros_like(made)

    same(shape)
    if wanted == layout:
        assert (
            rushlight.randn_like(matrix(rushlight, layout), layout=getattr(rushlight, wanted)).values().any()
        )


@pytest.mark.parametrize("layout", COMPRESSED)
@pytest.mark.parametrize("target", ALL[1:])
def test_conversions(layout, target):
    for batches in (0, 2):
        same(
            lambda t, batches=batches: matrix(t, layout, batches).to_sparse(
                layout=getattr(t, target), blocksize=(2, 3) if "_bs" in target else None
            )
        )


@pytest.mark.parametrize("layout", COMPRESSED)
def test_no_batches(layout):
    same(lambda t: t.zeros(0, 4, 6).to_sparse(
        layout=getattr(t, layout), blocksize=(2, 3) if "_bs" in layout else None
    ))  # fmt: skip


@pytest.mark.parametrize("layout", COMPRESSED)
def test_copies(layout):
    def shaped(t, *sizes, blocks=(2, 3)):
        return t.ones(*sizes).to_sparse(
            layout=getattr(t, layout), blocksize=blocks if "_bs" in layout else None
        )

    same(lambda t: matrix(t, layout).copy_(t.ones(4, 6)))
    same(lambda t: matrix(t, layout).copy_(t.ones(4, 6).to_sparse()))
    same(lambda t: matrix(t, layout).copy_(t.zeros_like(matrix(t, layout))))
    same(lambda t: shaped(t, 4, 6).copy_(shaped(t, 6, 4, blocks=(3, 2))))
    same(lambda t: shaped(t, 6, 6).copy_(shaped(t, 6, 6, blocks=(3, 2))))
    same(lambda t: matrix(t, layout).copy_(shaped(t, 4, 6)))


@pytest.mark.parametrize("layout", COMPRESSED)
def test_room_for_elements(layout):
    def made(t, blocks):
        return t.ops.aten._sparse_compressed_tensor_with_dims(
            3, 1, (5, 4, 6, 2), blocks, t.int32, dtype=t.float64, layout=getattr(t, layout)
        )

    def shapes(t):
        x = made(t, (2, 3) if "_bs" in layout else ())
        rows = layout in ("sparse_csr", "sparse_bsr")
        parts = (x.crow_indices(), x.col_indices()) if rows else (x.ccol_indices(), x.row_indices())
        return [(tuple(p.shape), str(p.dtype).rpartition(".")[2]) for p in (*parts, x.values())]

    assert shapes(rushlight) == shapes(oracle)
    if "_bs" in layout:
        with pytest.raises(RuntimeError, match="blocksize needs to be a tuple of size 2"):
            made(rushlight, ())


def test_indices_alone_are_checked():
    for t in (rushlight, oracle):
        starts, places = t.tensor([0, 1, 2]), t.tensor([1, 0])
        t._validate_compressed_sparse_indices(True, starts, places, 2, 2, 2)
        with pytest.raises(RuntimeError, match="crow_indices"):
            t._validate_compressed_sparse_indices(True, t.tensor([0, 3, 2]), places, 2, 2, 2)
        with pytest.raises(RuntimeError, match="row_indices"):
            t._validate_compressed_sparse_indices(False, starts, t.tensor([1, 5]), 2, 2, 2)


def test_values_by_themselves_are_outside_of_the_graph():
    for t in (rushlight, oracle):
        x = t.eye(2).to_sparse().requires_grad_()
        assert not x._values().requires_grad
        t.sparse.sum(x, 1).to_dense().sum().backward()
        assert x.grad.to_dense().tolist() == [[1, 0], [0, 1]]


def test_gradients_are_listed_in_the_order_in_which_they_come():
    def listed(t):
        class Given(t.autograd.Function):
            @staticmethod
            def forward(ctx, x, grad):
                ctx.grad = grad
                return x.clone()

            @staticmethod
            def backward(ctx, grad):
                return ctx.grad, None

        x = t.zeros(2, 3, requires_grad=True)
        grads = [t.sparse_coo_tensor([[row], [row]], [row + 5.0], (2, 3)) for row in range(2)]
        (Given.apply(x, grads[0]) + Given.apply(x, grads[1])).sum().backward()
        return x.grad._indices().tolist(), x.grad._values().tolist()

    assert listed(rushlight) == listed(oracle)


@pytest.mark.parametrize("shape", [(), (2, 3)])
@pytest.mark.parametrize("dims", [-1, -2, 3, 2**40])
def test_numbers_of_sparse_dimensions_lie_in_range(shape, dims):
    """-1 sparse dimensions of a number ended the process."""
    for lib in (rushlight, oracle):
        with pytest.raises(
            RuntimeError, match=rf"argument must be in \[0,{len(shape)}\] range, but {dims} is"
        ):
            lib.ones(shape).to_sparse(dims)
