"""What tests/fuzz/random_programs.py found, as the smallest program that shows it."""

import pytest

import rushlight as torch
import rushlight.nn.functional as F


def views():
    return {
        "kron": lambda x: torch.kron(x[:1], x),
        "view": lambda x: (x * 2).view(2, 3, 1, 4),
        "slice": lambda x: x.clone()[1:],
        "select": lambda x: x.expand(3, 2, 3, 4).clone().select(0, 1),
    }


@pytest.mark.parametrize("kind", views())
@pytest.mark.parametrize(
    ("written", "plain"),
    [
        (lambda v: v.transpose_(0, 1), lambda v: v.transpose(0, 1)),
        (lambda v: v.swapdims_(1, -1), lambda v: v.swapdims(1, -1)),
        (lambda v: v.unsqueeze_(1), lambda v: v.unsqueeze(1)),
        (lambda v: v.squeeze_(), lambda v: v.squeeze()),
    ],
)
def test_a_view_given_another_shape_in_place_has_the_gradient_of_the_plain_form(kind, written, plain):
    grads = []
    for form in (written, plain):
        x = torch.arange(24.0).view(2, 3, 4).requires_grad_()
        v = form(views()[kind](x))
        (v * torch.arange(v.numel()).view(v.shape)).sum().backward()
        grads.append(x.grad)
    assert torch.equal(*grads)


def test_a_square_view_transposed_in_place_has_the_right_gradient():
    x = torch.zeros(2, 2, requires_grad=True)
    v = x.clone().view(2, 2)
    v.t_()
    v[0, 1].backward()
    assert x.grad.tolist() == [[0, 0], [1, 0]]


def test_what_a_transposed_view_lies_in_keeps_its_history():
    x = torch.ones(2, 3, requires_grad=True)
    base = x * 2
    view = base.view(3, 2)
    view.t_()
    view.mul_(5)
    base.sum().backward()
    assert x.grad.tolist() == [[10.0] * 3] * 2


FUNCTIONS = {
    "gelu": lambda a: F.gelu(a).sum(),
    "tanh": lambda a: a.tanh().sum(),
    "prod": lambda a: a.prod(),
    "logsumexp": lambda a: a.logsumexp(0),
    "norm": lambda a: a.norm(),
    "cumprod": lambda a: a.cumprod(0).sum(),
    "std": lambda a: a.std(),
    "softmax": lambda a: a.softmax(0)[0],
    "layer_norm": lambda a: F.layer_norm(a, (3,))[0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_gradient_of_a_hessian_is_the_same_whichever_modes_made_it(name):
    """Tangents that the double-vjp identity makes depend on the point, which outer gradients must see."""
    from rushlight.func import hessian, jacfwd, jacrev

    f = FUNCTIONS[name]
    point = torch.tensor([0.3, 1.1, 2.0], dtype=torch.float64)
    found = []
    for second in (hessian(f), jacrev(jacrev(f)), jacfwd(jacfwd(f)), jacrev(jacfwd(f))):
        x = point.clone().requires_grad_()
        h = second(x)
        (h * torch.arange(9.0).view(3, 3)).sum().backward()
        found.append(x.grad)
    for other in found[1:]:
        torch.testing.assert_close(found[0], other)


def test_hessians_can_be_written_to():
    h = torch.func.hessian(lambda a: F.relu(a).sum())(torch.randn(3))
    h[0, 0] = 1
    assert h.sum() == 1


def test_lerp_of_doubles_has_the_gradient_of_doubles():
    x = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    torch.lerp(x, torch.ones(1, dtype=torch.float64), 0.11).backward()
    assert x.grad.item() == pytest.approx(0.89, rel=1e-15)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.lerp_(x * 2, 0.3),
        lambda x: F.hardtanh(x).mul_(2),
        lambda x: F.relu6(x).add_(1),
        lambda x: torch.remainder(x.clone(), 0.7).neg_(),
    ],
)
def test_writing_to_what_no_derivative_needs_is_allowed(function):
    x = torch.tensor([0.5, -2.0, 7.0], requires_grad=True)
    function(x.clone()).sum().backward()
    assert x.grad.isfinite().all()


def test_remainder_by_a_number_does_not_need_what_it_divided():
    x = torch.tensor([5.0, -2.0], requires_grad=True)
    y = x.clone()
    z = torch.remainder(y, 3)
    y.zero_()
    z.sum().backward()
    assert x.grad.tolist() == [1, 1]


@pytest.mark.parametrize("inplace", [False, True])
def test_hardtanh_in_place_has_the_gradient_of_hardtanh(inplace):
    x = torch.tensor([-3.0, -1.0, 0.5, 1.0, 2.0], requires_grad=True)
    y = F.hardtanh(x * 1, -1, 1, inplace=inplace)
    y.sum().backward()
    assert x.grad.tolist() == [0, 0, 1, 0, 0]


def test_heaviside_is_refused_in_the_backward_pass():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    y = torch.heaviside(x, x)
    assert y.requires_grad
    with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
        y.sum().backward()


def test_a_bound_without_dimensions_promotes_like_a_tensor():
    low = torch.tensor(0.0, dtype=torch.float64)
    assert torch.tensor(1.0, dtype=torch.bfloat16).clamp(min=low).dtype == torch.float64
    assert torch.ones(2, dtype=torch.bfloat16).clamp(min=low).dtype == torch.bfloat16


def test_vmap_over_no_dimensions_and_over_no_examples():
    x = torch.randn(2)
    grad = torch.vmap(torch.func.grad(lambda a: a.unfold(0, 1, 1).sum()))(x)
    assert grad.tolist() == [1, 1]
    assert torch.vmap(lambda a: F.mse_loss(a, a))(torch.randn(0, 3)).shape == (0,)


def test_the_tangent_of_a_deviation_of_zero_is_zero():
    x = torch.ones(1)
    assert torch.func.jvp(lambda a: a.std(0, correction=0), (x,), (x,))[1].item() == 0


def test_quantile_by_a_number_can_be_exported():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.quantile(x, 0.25, dim=-1)

    x = torch.randn(3, 5)
    program = torch.export.export(Model(), (x,))
    assert torch.equal(program.module()(x), torch.quantile(x, 0.25, dim=-1))
    with pytest.raises(RuntimeError, match="in the range"):
        torch.quantile(x, 1.5)


@pytest.mark.parametrize("rows", [0, 2])
def test_a_view_whose_base_was_written_can_be_checkpointed(rows):
    """Its history is made anew within the checkpoint, which must not count that as a saved tensor."""
    from rushlight.utils.checkpoint import checkpoint

    x = torch.randn(rows, 3, requires_grad=True)
    v = x.clone().squeeze()
    v[:, 0] = torch.tensor(1.0)
    checkpoint(lambda a: torch.expm1(a.clamp(max=2)), v, use_reentrant=False).sum().backward()
    assert x.grad[:, 0].eq(0).all()


def test_the_gradient_of_as_strided_can_be_exported():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.func.grad(lambda a: a.reshape(-1).as_strided((2, 2), (2, 1)).square().sum())(x)

    x = torch.randn(6)
    assert torch.equal(torch.export.export(Model(), (x,)).module()(x), Model()(x))


def test_an_overload_in_python_does_not_keep_the_others_from_files(tmp_path):
    from rushlight.export import load_file, save_file

    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.where(x > 0.3, x, 0.5)

    assert torch.ops.aten.gt.Scalar(torch.ones(1), 0)  # which defines it
    x = torch.randn(4)
    save_file(Model(), str(tmp_path / "model.rl"), (x,))
    assert torch.equal(load_file(str(tmp_path / "model.rl"))(x), Model()(x))


WRITES = {
    "clamp_": lambda a: a.clamp_(-1, 0.2),
    "sin_": lambda a: a.sin_(),
    "mul_": lambda a: a.mul_(a + 1),
    "pow_": lambda a: a.pow_(2),
    "div_": lambda a: a.div_(a + 3),
    "hardtanh": lambda a: F.hardtanh(a, inplace=True),
    "leaky_relu": lambda a: F.leaky_relu(a, 0.1, inplace=True),
    "cumprod_": lambda a: a.cumprod_(0),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_within_vmap_have_gradients(name):
    """They are computed apart and copied, which must not spoil what the derivative saved."""
    x = torch.tensor([[0.5, -2.0], [0.3, 1.5]], requires_grad=True)
    write = lambda a: WRITES[name](a.clone())
    expected = torch.autograd.grad(torch.stack([write(row) for row in x]).sum(), x)[0]
    assert torch.equal(torch.autograd.grad(torch.vmap(write)(x).sum(), x)[0], expected)


def test_attention_of_three_dimensions_goes_into_files(tmp_path):
    from rushlight.export import load_file, save_file

    class Attention(torch.nn.Module):
        def forward(self, x):
            return F.scaled_dot_product_attention(x, x, x, scale=0.5)

    x = torch.randn(1, 6, 2)
    save_file(Attention(), str(tmp_path / "model.rl"), (x,))
    torch.testing.assert_close(load_file(str(tmp_path / "model.rl"))(x), Attention()(x))


SCATTERS = {
    "select().copy_": lambda b, a: b.select(0, 1).copy_(a[0] * 0.76),
    "item": lambda b, a: b.__setitem__(1, a[0] * 0.76),
    "mul_": lambda b, a: b[1].mul_(a[0] * 0.76),
    "diagonal": lambda b, a: b.diagonal().fill_(1.5),
    "view of a view": lambda b, a: b.t()[0].add_(a[0, 0]),
}


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("outside", ["export", "fake", "mode"])
def test_writes_to_views_have_gradients_where_python_answers_for_the_views(name, outside):
    """A tracer's, a fake tensor's or a mode's answer for a view is a view as well."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode
    from rushlight.fx.experimental.proxy_tensor import make_fx
    from rushlight.utils._python_dispatch import TorchDispatchMode

    def gradient(a):
        def loss(a):
            b = a.clone()
            SCATTERS[name](b, a)
            return b.sum()

        return torch.func.grad(loss)(a)

    class Same(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Model(torch.nn.Module):
        def forward(self, a):
            return gradient(a)

    x = torch.arange(9.0).view(3, 3) + 1
    expected = gradient(x)
    if outside == "export":
        assert torch.equal(torch.export.export(Model(), (x,)).module()(x), expected)
    elif outside == "mode":
        with Same():
            assert torch.equal(gradient(x), expected)
    else:
        assert torch.equal(make_fx(gradient, tracing_mode="fake")(x)(x), expected)
        with FakeTensorMode() as mode:
            base = mode.from_tensor(x).requires_grad_().clone()
            SCATTERS[name](base, mode.from_tensor(x))
            assert base.grad_fn.name().endswith("CopySlices")


def test_comparisons_write_to_out_whatever_requires_grad():
    x = torch.tensor([1.0, -1.0], requires_grad=True)
    assert torch.gt(x, 0, out=torch.empty(2, dtype=torch.bool)).tolist() == [True, False]
    assert torch.argmax(x, 0, out=torch.empty((), dtype=torch.int64)).item() == 0
    assert torch.logical_not(x, out=torch.empty(2, dtype=torch.bool)).tolist() == [False, False]
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.sin(x, out=torch.empty(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_the_stride_of_a_dimension_of_one_element_means_nothing_to_extremes(dtype):
    for shape, dim in [((1, 5), 0), ((1, 2, 5), 1), ((3, 1, 9), 1), ((1, 8), 0)]:
        for width in (1, 2):
            x = torch.ones(shape, dtype=dtype)[..., :width]
            for found in (x.argmax(dim), x.argmin(dim), x.max(dim).indices, x.min(dim)[1]):
                assert torch.equal(found, x.contiguous().argmax(dim))
            assert torch.equal(x.max(dim).values, x.amax(dim))


OUTPUTS = {
    "softmax": lambda a, out: torch.softmax(a, -1, out=out),
    "matmul": lambda a, out: torch.matmul(a, a.mT, out=out),
    "norm": lambda a, out: torch.linalg.norm(a, out=out),
    "hstack": lambda a, out: torch.hstack([a, a], out=out),
}


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("resized", [False, True])
def test_what_is_written_in_other_operators_takes_out_without_data(name, resized):
    """A fake tensor, and a graph that is recorded, are written to by operators."""
    from rushlight._subclasses.fake_tensor import FakeTensorMode

    class Model(torch.nn.Module):
        def forward(self, a):
            out = torch.empty(0) if resized else torch.empty(shape)
            OUTPUTS[name](a, out)
            return out * 2

    x = torch.randn(3, 4)
    expected = OUTPUTS[name](x, torch.empty(0))
    shape = expected.shape
    with FakeTensorMode() as mode:
        assert OUTPUTS[name](mode.from_tensor(x), torch.empty(0)).shape == shape
    torch.testing.assert_close(torch.export.export(Model(), (x,)).module()(x), expected * 2)
    if name != "norm":
        out = torch.empty(2, *shape)
        with pytest.raises(RuntimeError):  # of another tensor's dtype
            OUTPUTS[name](x, out.to(torch.int32))


def test_norms_of_small_halves_have_gradients():
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.full((3,), 1e-6, dtype=dtype, requires_grad=True)
        torch.linalg.vector_norm(x).backward()
        torch.testing.assert_close(x.grad.float(), torch.full((3,), 3**-0.5), atol=0.02, rtol=0)
        x = torch.randn(2, 3).to(dtype).requires_grad_()
        F.pairwise_distance(x, x).sum().backward()
        assert x.grad.eq(0).all()


def test_a_sum_in_place_keeps_its_dtype_in_a_file(tmp_path):
    from rushlight.export import load_file, save_file

    class Model(torch.nn.Module):
        def forward(self, a, b):
            a = a.clone()
            a += b
            return a * 1

    for shape in ((), (2,)):
        args = torch.ones(shape), torch.ones(shape, dtype=torch.float64)
        save_file(Model(), str(tmp_path / "model.rl"), args)
        assert load_file(str(tmp_path / "model.rl"))(*args).dtype == torch.float32


def test_results_that_pytorch_lays_out_in_order():
    for n, conv in ((1, F.conv1d), (2, F.conv2d), (3, F.conv3d)):
        image, filters = torch.randn(2, 2, *[5] * n), torch.randn(4, 1, *[2] * n)
        y = conv(image, filters, groups=2, padding="same")
        padded = F.pad(image, (0, 1) * n)
        assert y.is_contiguous() and y.shape[2:] == image.shape[2:]
        torch.testing.assert_close(y, conv(padded, filters, groups=2))
    x = torch.randn(2, 3).t()
    assert torch.renorm(x, 2, 0, 0.4).is_contiguous()
    assert torch.conv_tbc(torch.randn(5, 2, 3), torch.randn(2, 3, 4), torch.randn(4)).is_contiguous()


def truths_in_place():
    """Operators whose results are truth values, as what writes them over numbers."""
    records = torch._C._operator_records()
    return sorted(
        {r["name"] for r in records if r["inplace"] and r["traits"].gives_bool and not r["differentiable"]}
    )


def written(name, target):
    form = getattr(target, name + "_")
    return form() if name == "logical_not" else form(target.detach() * 0.5)


@pytest.mark.parametrize("name", truths_in_place())
def test_what_truth_values_are_written_over_has_no_gradient(name):
    """The history of what was overwritten stayed: a wrong gradient, and leaves changed without a word."""
    x = torch.tensor([-1.0, 0.0, 2.0, 3.0], requires_grad=True)
    whole, base = x * 2, x * 2
    assert written(name, whole).grad_fn is not None
    written(name, base[1:3])
    assert torch.autograd.grad(whole.sum(), x)[0].eq(0).all()
    assert torch.autograd.grad(base.sum(), x)[0].tolist() == [2, 0, 0, 2]
    mapped = torch.func.grad(lambda a: written(name, a * 2).sum())(x.detach())
    assert mapped.eq(0).all()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        written(name, x)
    with torch.no_grad():
        written(name, x)


def test_truth_values_in_place_name_their_node():
    x = torch.ones(2, requires_grad=True)
    assert (x * 1).lt_(0).grad_fn.name() == "LtBackward0"


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    ("write", "plain"),
    [
        (lambda b: b.mul_(b * 2), lambda b: b * (b * 2)),
        (lambda b: b.view(-1).sin_(), lambda b: b.sin()),
        (lambda b: b.conj().mul_(1.5), lambda b: (b.conj() * 1.5).conj()),
    ],
)
def test_tangents_that_are_written_again_have_gradients(write, plain, dtype):
    """The graph around a jvp saves the tangent that the next write in place overwrites."""

    def written_twice(a):
        b = a * 0.7
        write(b)
        b.mul_(a)
        return b

    found = []
    for f in (written_twice, lambda a: plain(a * 0.7) * a):
        x = torch.tensor([0.3, -0.2, 1.1]).to(dtype).requires_grad_()
        tangent = torch.func.jvp(f, (x.sin(),), (x.cos(),))[1]
        found.append(torch.autograd.grad(tangent.abs().square().sum(), x)[0])
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (2, 0, 2), (0, 0)])
@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm])
@pytest.mark.parametrize("first", [0, 1])
def test_norms_of_rows_of_nothing_have_gradients(norm, shape, first):
    x = torch.ones(shape, requires_grad=True)
    weight = torch.ones(shape[first:], requires_grad=True)
    norm(x, shape[first:], weight).sum().backward()
    assert x.grad.shape == x.shape and weight.grad.eq(0).all()


@pytest.mark.parametrize("name", ["mul", "div", "atan2", "pow", "addcmul", "addcdiv", "hypot"])
def test_tangents_of_what_is_written_and_read(name):
    """The operand that is the target, or a view of it, was read after the write."""

    def computed(a, form, view):
        b = a * 1
        operands = [view(b)] * (2 if name.startswith("addc") else 1)
        return (getattr(b, form)(*operands), b)[1 if form[-1] == "_" else 0]

    point, direction = torch.tensor([3.0, 2.0]), torch.tensor([1.0, -0.5])
    for view in (lambda b: b, lambda b: b.view(2)):
        wanted, found = (
            torch.func.jvp(lambda a, form=form, view=view: computed(a, form, view), (point,), (direction,))
            for form in (name, name + "_")
        )
        torch.testing.assert_close(found, wanted)


def test_a_capsule_of_a_tensor_that_requires_a_gradient():
    x = torch.ones(2, requires_grad=True)
    shared = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
    assert shared.data_ptr() == x.data_ptr() and not shared.requires_grad
    with pytest.raises(BufferError, match="require gradient"):
        x.__dlpack__()


@pytest.mark.parametrize("form", ["add", "sub", "mul", "div"])
def test_sparse_tensors_of_no_dimensions_promote_as_dense_ones(form):
    double, single = torch.tensor(3.0, dtype=torch.float64), torch.tensor(2.0)
    pairs = [(single.to_sparse(), double), (torch.ones(2).to_sparse(), double)]
    if form != "div":
        pairs += [(double, single.to_sparse()), (single.to_sparse(), double.to_sparse())]
    for a, b in pairs:
        if form in ("add", "sub") and a.dim() != b.dim():
            continue
        wanted = getattr(torch, form)(a.to_dense(), b.to_dense())
        torch.testing.assert_close(getattr(torch, form)(a, b).to_dense(), wanted)


@pytest.mark.parametrize("function", [torch.unique, torch.unique_consecutive])
def test_unique_slices_lie_each_in_one_piece(function):
    x = torch.tensor([[[3, 1, 2], [1, 1, 2]], [[5, 5, 5], [1, 1, 1]]])
    for dim, strides in enumerate([(6, 3, 1), (3, 6, 1), (2, 1, 4)]):
        y = function(x, dim=dim)
        assert y.stride() == strides and y._base is None
        assert torch.equal(y, torch.stack(sorted(x.unbind(dim), key=torch.Tensor.tolist), dim)) or (
            function is torch.unique_consecutive and torch.equal(y, x)
        )


def test_unpooling_maps_over_examples():
    x = torch.randn(3, 2, 4, 6, requires_grad=True)
    pooled, indices = F.max_pool2d(x, 2, return_indices=True)
    wanted = F.max_unpool2d(pooled, indices, 2)
    found = torch.vmap(lambda a, at: F.max_unpool2d(a, at, 2))(pooled, indices)
    assert torch.equal(found, wanted)
    grads = [torch.autograd.grad(y.square().sum(), x, retain_graph=True)[0] for y in (found, wanted)]
    assert torch.equal(*grads)
    line = torch.func.vmap(lambda a: F.max_unpool1d(*F.max_pool1d(a, 2, return_indices=True), 2))(x[:, 0])
    assert line.shape == (3, 4, 6)
    with pytest.raises(RuntimeError, match="out of bounds|invalid max index"):
        torch.vmap(lambda a, at: F.max_unpool2d(a, at, 2))(pooled, indices + 24)


def test_a_vmap_of_one_chunk_is_no_view():
    x = torch.ones(2, 3)
    for chunk in (1, 2, 5):
        y = torch.vmap(lambda a: a[None], chunk_size=chunk)(x)
        x.add_(1)
        assert y.eq(x[:, None] - 1).all()


@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.jacfwd])
def test_jacobians_of_examples_are_written_one_by_one(transform):
    examples = torch.arange(8.0).view(2, 4)
    found = torch.vmap(transform(lambda a: F.pad(a, (2, 1))))(examples)  # which depends on no example
    found[1] = 3
    assert found[1].eq(3).all()
    assert torch.equal(found[0], torch.eye(7, 4, dtype=found.dtype).roll(2, 0))


def test_retained_gradients_lie_in_order():
    x = torch.randn(2, 3).t().detach().requires_grad_()
    b = x.sin()
    b.retain_grad()
    (b * b).sum().backward()
    assert b.stride() == (1, 3) and b.grad.is_contiguous()
    assert torch.equal(b.grad, 2 * b)
    sparse = torch.eye(3).to_sparse().requires_grad_()
    twice = sparse * 2
    twice.retain_grad()
    twice.to_dense().sum().backward()
    assert twice.grad.shape == (3, 3)


def test_quantised_tensors_lie_in_order_or_channels_last():
    x = torch.randn(2, 4, 3).permute(2, 1, 0)
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    scales, zeros = torch.ones(3), torch.zeros(3, dtype=torch.int32)
    for make in (
        lambda t: torch.quantize_per_tensor(t, 0.1, 1, torch.quint8),
        lambda t: torch.quantize_per_tensor_dynamic(t, torch.qint8, False),
        lambda t: torch.quantize_per_channel(t, scales, zeros, list(t.shape).index(3), torch.qint8),
    ):
        q = make(x)
        assert q.is_contiguous() and q.dequantize().is_contiguous()
        assert torch.equal(q.dequantize(), make(x.contiguous()).dequantize())
        assert make(image).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_reduced_segments_map_over_examples(reduce):
    x = torch.randn(3, 4, 2).requires_grad_()
    function = lambda a: torch.segment_reduce(a, reduce, lengths=torch.tensor([1, 3]))
    found, wanted = torch.vmap(function)(x), torch.stack([function(a) for a in x])
    torch.testing.assert_close(found, wanted)
    grads = [torch.autograd.grad(y.square().sum(), x)[0] for y in (found, wanted)]
    torch.testing.assert_close(*grads)
