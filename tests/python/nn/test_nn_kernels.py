"""Kernels of nn.functional that replaced compositions: values, gradients and second gradients."""

import itertools

import numpy as np
import pytest

import rushlight
from rushlight.autograd import gradcheck, gradgradcheck

F = rushlight.nn.functional
TOLERANCE = {"float64": 1e-11, "float32": 1e-4, "bfloat16": 5e-2, "float16": 8e-3}


def agree(function, *arrays, dtype="float64"):
    """function(module, *tensors) and its gradients are those of PyTorch."""
    torch = pytest.importorskip("torch")
    results = []
    for module in (torch, rushlight):
        tensors = [module.from_numpy(a.copy()) for a in arrays]
        tensors = [
            t.to(getattr(module, dtype)).requires_grad_() if a.dtype.kind == "f" else t
            for t, a in zip(tensors, arrays)
        ]
        out = function(module, *tensors)
        cotangent = np.asarray(np.random.RandomState(1).randn(*out.shape))
        leaves = [t for t in tensors if t.requires_grad]
        grads = module.autograd.grad(out, leaves, module.from_numpy(cotangent).to(out.dtype))
        results.append([x.detach().double().numpy() for x in (out, *grads)])
    tolerance = TOLERANCE[dtype]
    for expected, got in zip(*results):
        finite = expected[np.isfinite(expected)]
        scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * scale)


def normal(*shape):
    return np.random.RandomState(sum(shape)).randn(*shape)


def double(*shape):
    return rushlight.from_numpy(normal(*shape)).requires_grad_()


SHAPES = {
    "linear": (2, 3, 11),
    "bilinear": (2, 3, 9, 13),
    "bicubic": (2, 3, 9, 13),
    "trilinear": (1, 2, 5, 6, 7),
}
SIZES = [
    {"size": 7},
    {"size": 20},
    {"scale_factor": 1.7},
    {"scale_factor": 0.6, "recompute_scale_factor": True},
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("mode", [*SHAPES, "nearest", "nearest-exact"])
@pytest.mark.parametrize("size", SIZES)
def test_interpolate(mode, dtype, size):
    def resize(align):
        return lambda m, x: m.nn.functional.interpolate(x, mode=mode, align_corners=align, **size)

    for align in (False, True) if mode in SHAPES else (None,):
        agree(resize(align), normal(*SHAPES.get(mode, (2, 3, 9, 13))), dtype=dtype)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize("size", [(4, 5), (20, 7), (1, 1)])
def test_interpolate_antialias(mode, size):
    agree(
        lambda m, x: m.nn.functional.interpolate(x, size, mode=mode, antialias=True),
        normal(2, 3, 11, 13),
    )


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_interpolate_layouts_and_bytes(mode):
    torch = pytest.importorskip("torch")
    image = (np.random.RandomState(0).rand(2, 3, 9, 13) * 255).astype(np.uint8)
    for dtype, last in itertools.product(("float32", "uint8"), (False, True)):
        results = []
        for m in (torch, rushlight):
            x = m.from_numpy(image).to(getattr(m, dtype))
            x = x.contiguous(memory_format=m.channels_last) if last else x
            results.append(m.nn.functional.interpolate(x, (7, 20), mode=mode))
        assert results[0].stride() == results[1].stride()
        np.testing.assert_allclose(
            results[1].float().numpy(), results[0].float().numpy(), atol=1 if dtype == "uint8" else 1e-3
        )


def test_upsample_names():
    x = rushlight.from_numpy(normal(1, 2, 4, 5))
    nn = rushlight._C._nn
    expected = F.interpolate(x, scale_factor=2, mode="bilinear")
    assert nn.upsample_bilinear2d(x, None, False, [2.0, 2.0]).equal(expected)
    assert nn.upsample_bilinear2d(x, (8, 10), False, 2.0, 2.0).equal(expected)
    with pytest.raises(RuntimeError, match="exactly one"):
        nn.upsample_nearest2d(x, (8, 10), [2.0, 2.0])


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(mode, padding, align):
    def sample(m, x, grid):
        return m.nn.functional.grid_sample(x, grid, mode, padding, align)

    for dtype in ("float64", "float32"):
        agree(sample, normal(2, 3, 7, 6), normal(2, 5, 37, 2), dtype=dtype)
        if mode != "bicubic":
            agree(sample, normal(2, 3, 4, 5, 6), normal(2, 3, 4, 5, 3), dtype=dtype)


def test_grid_sample_of_no_place():
    grid = rushlight.tensor([[[[float("nan"), 0.0], [float("inf"), 0.0], [0.0, 0.0]]]])
    out = F.grid_sample(rushlight.ones(1, 1, 3, 3), grid, align_corners=False)
    assert out.flatten().tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_grid_sample_is_the_same_on_any_number_of_threads(mode):
    def gradients(batch, channels, threads):
        rushlight.set_num_threads(threads)
        rushlight.manual_seed(0)
        x = rushlight.randn(batch, channels, 20, 20).requires_grad_()
        grid = (rushlight.rand(batch, 70, 70, 2) * 2.4 - 1.2).requires_grad_()
        y = F.grid_sample(x, grid, mode, align_corners=False)
        y.backward(rushlight.randn_like(y))
        return y, x.grad, grid.grad

    before = rushlight.get_num_threads()
    try:
        for shape in ((1, 5), (2, 3), (3, 2), (9, 2)):
            for one, many in zip(gradients(*shape, 1), gradients(*shape, 2)):
                assert rushlight.equal(one, many)
    finally:
        rushlight.set_num_threads(before)


def test_nearest_pixels_do_not_move_with_the_grid():
    x = rushlight.full((1, 1, 3, 3), float("inf")).requires_grad_()
    grid = rushlight.zeros(1, 2, 2, 2).requires_grad_()
    F.grid_sample(x, grid, "nearest", align_corners=False).sum().backward()
    assert grid.grad.flatten().tolist() == [0.0] * 8
    assert x.grad.sum().item() == 4


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("padding", [None, 3, -1])
def test_embedding_bag(mode, last, padding):
    offsets = np.array([0, 3, 3, 7, 12] if last else [0, 3, 3, 7])
    indices = np.random.RandomState(2).randint(0, 6, 12)
    settings = {"mode": mode, "include_last_offset": last, "padding_idx": padding}
    for dtype in ("float64", "float32"):
        agree(
            lambda m, w, i, o: m.nn.functional.embedding_bag(i, w, o, **settings),
            *(normal(6, 5), indices, offsets),
            dtype=dtype,
        )
    if mode == "sum":
        agree(
            lambda m, w, i, o, p: m.nn.functional.embedding_bag(i, w, o, per_sample_weights=p, **settings),
            *(normal(6, 5), indices, offsets, normal(12)),
        )


@pytest.mark.parametrize("offsets", [[1, 2], [0, 5, 3], [0, 99]])
def test_embedding_bag_refuses_bad_offsets(offsets):
    with pytest.raises(RuntimeError, match="offsets"):
        F.embedding_bag(rushlight.arange(4), rushlight.randn(6, 2), rushlight.tensor(offsets))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("lengths", [([8, 7, 4], [3, 2, 0]), ([5, 8, 3], [5, 1, 4])])
def test_ctc_loss(reduction, zero_infinity, lengths):
    steps, labels = lengths
    settings = {"reduction": reduction, "zero_infinity": zero_infinity}
    targets = np.random.RandomState(3).randint(1, 6, (3, 5))
    flat = np.random.RandomState(3).randint(1, 6, sum(labels))
    for dtype in ("float64", "float32"):
        agree(
            lambda m, x, t: m.nn.functional.ctc_loss(
                x.log_softmax(-1), t, m.tensor(steps), m.tensor(labels), **settings
            ),
            *(normal(8, 3, 6), targets),
            dtype=dtype,
        )
        agree(
            lambda m, x, t: m.nn.functional.ctc_loss(
                x.log_softmax(-1), t, tuple(steps), tuple(labels), **settings
            ),
            *(normal(8, 3, 6), flat),
            dtype=dtype,
        )


@pytest.mark.parametrize("classes, labels", [(5, 4), (400, 3)])
def test_ctc_loss_of_classes_that_lie_apart(classes, labels):
    generator = rushlight.Generator().manual_seed(0)
    plain = rushlight.randn(12, 3, classes, generator=generator).log_softmax(-1)
    targets = rushlight.randint(1, classes, (3, labels), generator=generator)
    expected = F.ctc_loss(plain, targets, (12, 10, 11), (labels, labels - 1, 1), reduction="none")
    for order in ((2, 1, 0), (1, 2, 0), (1, 0, 2), (0, 2, 1)):
        back = [order.index(d) for d in range(3)]
        laid_out = plain.permute(order).contiguous().permute(back).requires_grad_()
        loss = F.ctc_loss(laid_out, targets, (12, 10, 11), (labels, labels - 1, 1), reduction="none")
        assert rushlight.equal(loss, expected)
        (gradient,) = rushlight.autograd.grad(loss.sum(), laid_out)
        whole = plain.detach().requires_grad_()
        loss = F.ctc_loss(whole, targets, (12, 10, 11), (labels, labels - 1, 1), reduction="sum")
        assert rushlight.equal(gradient, rushlight.autograd.grad(loss, whole)[0])


def test_ctc_loss_refuses_labels_outside():
    x = rushlight.randn(5, 1, 4).log_softmax(-1)
    with pytest.raises(RuntimeError, match="labels"):
        F.ctc_loss(x, rushlight.tensor([[1, 9]]), (5,), (2,))
    with pytest.raises(RuntimeError, match="at most 5"):
        F.ctc_loss(x, rushlight.tensor([[1, 2]]), (6,), (2,))


@pytest.mark.parametrize("window", [(3, 1, 1, 1), ((2, 3), (2, 1), (0, 2), (2, 1)), (2, 1, 0, 2)])
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_fold_and_unfold(window, dtype):
    agree(lambda m, x: m.nn.functional.unfold(x, *window), normal(2, 3, 8, 9), dtype=dtype)
    columns = F.unfold(rushlight.zeros(2, 3, 8, 9), *window).shape
    agree(lambda m, x: m.nn.functional.fold(x, (8, 9), *window), normal(*columns), dtype=dtype)


def attention_masks(mask, length, keys, heads):
    if mask == "bool":
        m = np.random.RandomState(0).rand(2, 1, length, keys) > 0.4
        m[0, 0, 0] = False  # a query that may look at nothing
        return m
    return {"none": None, "float": normal(length, keys), "heads": normal(2, heads, length, 1)}[mask]


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "shape", [(5, 7, 8, 6), (70, 600, 16, 16), (200, 130, 4, 4), (2, 530, 19, 70), (33, 270, 21, 81)]
)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float", "heads"])
def test_tiled_attention(dtype, shape, mask):
    length, keys, width, value_width = shape
    causal = mask == "causal"
    given = None if causal else attention_masks(mask, length, keys, 4)

    def attend(heads):
        def call(m, q, k, v):
            bias = None if given is None else m.from_numpy(given)
            if bias is not None and given.dtype != bool:
                bias = bias.to(q.dtype)
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            return m.nn.functional.scaled_dot_product_attention(
                q, k, v, bias, is_causal=causal, enable_gqa=heads != 4
            )

        return call

    for heads in (4, 2):
        operands = (
            normal(2, length, 4, width),
            normal(2, keys, heads, width),
            normal(2, keys, heads, value_width),
        )
        agree(attend(heads), *operands, dtype=dtype)


def test_attention_memory_does_not_grow_with_the_square():
    """The scores of 20,000 queries and keys would take 1.6 GB."""
    resource = pytest.importorskip("resource")
    q = rushlight.randn(1, 1, 20000, 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    F.scaled_dot_product_attention(q, q[:, :, :500], q[:, :, :500])
    F.scaled_dot_product_attention(q[:, :, :500], q, q)
    assert F.scaled_dot_product_attention(q, q, q)[0, 0, 0, 0].isfinite()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000


@pytest.mark.parametrize("kind", ["GRU", "LSTM", "RNN"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_recurrent_layers(kind, both_ways):
    torch = pytest.importorskip("torch")
    layers = {m: getattr(m.nn, kind)(5, 7, 2, bidirectional=both_ways).double() for m in (torch, rushlight)}
    state = {k: rushlight.from_numpy(v.numpy()) for k, v in layers[torch].state_dict().items()}
    layers[rushlight].load_state_dict(state)
    agree(lambda m, x: layers[m](x)[0], normal(6, 4, 5))


def second_derivatives():
    indices, offsets = rushlight.tensor([0, 1, 2, 3, 4, 5, 1, 1]), rushlight.tensor([0, 3, 3, 6])
    cell = rushlight.nn.GRUCell(3, 4).double()
    grid = (rushlight.rand(1, 3, 3, 2, dtype=rushlight.float64) * 1.6 - 0.8).requires_grad_()
    attend = F.scaled_dot_product_attention
    yield "bilinear", lambda x, g: F.grid_sample(x, g, align_corners=False), (double(1, 2, 4, 5), grid)
    yield (
        "bicubic",
        lambda x, g: F.grid_sample(x, g, "bicubic", align_corners=False),
        (double(1, 2, 4, 5), grid),
    )
    yield "bag", lambda w: F.embedding_bag(indices, w, offsets), (double(6, 3),)
    yield "max", lambda w: F.embedding_bag(indices, w, offsets, mode="max"), (double(6, 3),)
    yield (
        "factors",
        lambda w, p: F.embedding_bag(indices, w, offsets, mode="sum", per_sample_weights=p, padding_idx=1),
        (double(6, 3), double(8)),
    )
    yield "gru", lambda x, h: cell(x, h), (double(2, 3), double(2, 4))
    yield "unfold", lambda x: F.unfold(x, 3, 1, 1, 2), (double(1, 2, 5, 6),)
    yield "cubic", lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"), (double(1, 2, 5, 6),)
    operands = double(1, 2, 3, 4), double(1, 1, 5, 4), double(1, 1, 5, 2)
    yield "attention", lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True), operands


@pytest.mark.parametrize("case", second_derivatives(), ids=lambda c: c[0])
def test_second_derivatives(case):
    _, function, inputs = case
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


@pytest.mark.parametrize("heads_inside", [False, True])
def test_attention_lies_as_its_query(heads_inside):
    q = rushlight.randn(2, 4, 16, 8) if not heads_inside else rushlight.randn(2, 16, 4, 8).transpose(1, 2)
    assert F.scaled_dot_product_attention(q, q, q).stride() == q.stride()


def test_nearest_grid_sample_keeps_the_grid_in_the_graph():
    x = rushlight.rand(1, 1, 3, 3, requires_grad=True)
    grid = rushlight.zeros(1, 2, 2, 2, requires_grad=True)
    y = F.grid_sample(x, grid, mode="nearest", align_corners=False)
    grads = rushlight.autograd.grad(y.sum(), [x, grid], create_graph=True)
    assert grads[1].requires_grad and grads[1].abs().sum() == 0


def test_fractional_max_pool_of_no_images():
    assert F.fractional_max_pool3d(rushlight.empty(0, 1, 4, 5, 4), (2, 2, 1), output_size=2).shape == (
        0,
        1,
        2,
        2,
        2,
    )


def test_attention_with_dropout_of_half_types_runs_in_float32(torch):
    def program(m):
        m.manual_seed(0)
        q = (m.arange(96) % 13 / 5).view(4, 3, 8).half()
        return m.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True, dropout_p=0.5).tolist()

    assert torch.allclose(torch.tensor(program(rushlight)), torch.tensor(program(torch)), rtol=1e-3)


def test_rows_of_tables_are_bounded_in_place():
    table = rushlight.tensor([[3.0, 4.0], [0.1, 0.0], [6.0, 8.0]])
    assert rushlight.embedding_renorm_(table, rushlight.tensor([0, 1]), 1.0, 2.0) is table
    assert table.tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.1, 0.0]), [6.0, 8.0]]


def test_second_derivatives_of_ctc_loss_are_refused():
    x = rushlight.randn(5, 1, 4).log_softmax(-1).requires_grad_()
    loss = F.ctc_loss(x, rushlight.tensor([[1, 2]]), rushlight.tensor([5]), rushlight.tensor([2]))
    (grad,) = rushlight.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match="_ctc_loss_backward is not implemented"):
        rushlight.autograd.grad(grad.sum(), x)


def test_channels_last_is_kept():
    x = rushlight.randn(2, 5, 6, 7).to(memory_format=rushlight.channels_last)
    for f in (
        lambda t: F.max_pool2d(t, 2),
        lambda t: F.avg_pool2d(t, 3, 1, 1),
        lambda t: F.batch_norm(t, None, None, training=True),
    ):
        last, plain = f(x), f(x.contiguous())
        assert last.is_contiguous(memory_format=rushlight.channels_last)
        assert rushlight.allclose(last, plain, atol=1e-6)
    image = rushlight.randn(1, 5, 4, 6, 7).to(memory_format=rushlight.channels_last_3d)[0]
    values, places = F.max_pool3d(image, 2, return_indices=True)
    assert values.unsqueeze(0).is_contiguous(memory_format=rushlight.channels_last_3d)
    assert places.stride() == values.stride()
    expected = F.max_pool3d(image.contiguous(), 2, return_indices=True)
    assert rushlight.equal(values, expected[0]) and rushlight.equal(places, expected[1])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: F.cross_entropy(rushlight.randn(2, 3), rushlight.tensor([0, 10])),
            IndexError,
            "Target 10 is out of bounds.",
        ),
        (
            lambda: F.embedding(rushlight.tensor([7]), rushlight.randn(5, 2)),
            IndexError,
            "index out of range in self",
        ),
        (lambda: F.max_pool2d(rushlight.randn(1, 1, 2, 2), 5), RuntimeError, "Output size is too small"),
        (
            lambda: F.max_pool2d(rushlight.randn(1, 1, 9, 9), 2, padding=2),
            RuntimeError,
            "at most half of effective kernel size",
        ),
        (lambda: F.avg_pool2d(rushlight.randn(1, 1, 9, 9), 2, 0), RuntimeError, "stride"),
        (lambda: F.layer_norm(rushlight.randn(2, 3), [4]), RuntimeError, "Given normalized_shape"),
        (
            lambda: F.batch_norm(rushlight.randn(1, 3), None, None, training=True),
            ValueError,
            "Expected more than 1 value per channel",
        ),
        (
            lambda: F.pad(rushlight.randn(1, 2, 3), (4, 4), mode="reflect"),
            RuntimeError,
            "Padding size should be less",
        ),
        (
            lambda: F.mse_loss(rushlight.randn(2), rushlight.randn(2), reduction="avg"),
            ValueError,
            "is not a valid value for reduction",
        ),
        (lambda: rushlight.linalg.inv(rushlight.zeros(2, 2)), rushlight.linalg.LinAlgError, "singular"),
        (
            lambda: rushlight.einsum("ij,jk", rushlight.ones(2, 3), rushlight.ones(4, 2)),
            RuntimeError,
            "does not broadcast",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, error, text):
    with pytest.raises(error, match=text.replace(".", r"\.")):
        call()


def test_parameter_lists_take_any_iterable():
    made = rushlight.nn.ParameterList()
    made.extend(map(rushlight.nn.Parameter, [rushlight.ones(1), rushlight.ones(2)]))
    made.extend(rushlight.nn.Parameter(x) for x in [rushlight.ones(3)])
    assert [p.numel() for p in made] == [1, 2, 3]
    with pytest.raises(TypeError, match="should be called with an iterable, but got Tensor"):
        made.extend(rushlight.ones(2))
