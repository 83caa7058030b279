"""Packed weights and `torch.ops.quantized`, against PyTorch's."""

import io
import pickle

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
THEIRS = torch.ops.quantized


@pytest.fixture
def OURS():
    return rl.ops.quantized


def made(library, integers, scale, zero_point):
    """Integers with a scale and a zero point, or with as many as there are channels along axis 0."""
    values = library.tensor(integers)
    if isinstance(scale, float):
        return library._make_per_tensor_quantized_tensor(values, scale, zero_point)
    settings = library.tensor(scale, dtype=library.float64), library.tensor(zero_point)
    return library._make_per_channel_quantized_tensor(values, *settings, 0)


def both(*given):
    return made(torch, *given), made(rl, *given)


def weights(*shape, channels=False):
    x = np.random.default_rng(sum(shape)).integers(-63, 64, shape).astype("int8")
    if channels:
        return both(x, np.linspace(0.01, 0.03, shape[0]), np.zeros(shape[0], "int64"))
    return both(x, 0.02, 0)


def images(*shape, seed=0, scale=0.05, zero_point=60):
    return both(np.random.default_rng(seed).integers(0, 128, shape).astype("uint8"), scale, zero_point)


def same(theirs, ours):
    assert theirs.shape == ours.shape and str(theirs.dtype) == str(ours.dtype)
    assert theirs.q_scale() == pytest.approx(ours.q_scale()) and theirs.q_zero_point() == ours.q_zero_point()
    apart = abs(theirs.int_repr().numpy().astype(int) - ours.int_repr().numpy().astype(int))
    assert apart.max(initial=0) <= 1 and apart.mean() < 0.01


@pytest.mark.parametrize("channels", [False, True])
def test_linear_layers(OURS, channels):
    (w, v), bias = weights(7, 12, channels=channels), np.linspace(-1, 1, 7).astype("float32")
    p = THEIRS.linear_prepack(w, torch.tensor(bias))
    q = OURS.linear_prepack(v, rl.tensor(bias))
    assert OURS.linear_unpack(q) == q.unpack() and q.unpack()[0] is v and q.bias() is q.unpack()[1]
    assert q._type() == "__torch__.torch.classes.quantized.LinearPackedParamsBase" and q._type() in repr(q)
    x = np.random.default_rng(1).standard_normal((5, 12)).astype("float32")
    for name in ("linear_dynamic", "linear_relu_dynamic"):
        for reduce_range in (False, True):
            a = getattr(THEIRS, name)(torch.tensor(x), p, reduce_range)
            b = getattr(OURS, name)(rl.tensor(x), q, reduce_range)
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-5)
    x, y = images(5, 12)
    for name in ("linear", "linear_relu"):
        same(getattr(THEIRS, name)(x, p, 0.1, 30), getattr(OURS, name)(y, q, 0.1, 30))
    # PyTorch has these with oneDNN's packed weights alone.
    sums = torch.nn.functional.linear(x.dequantize(), w.dequantize(), torch.tensor(bias))
    for theirs, ours in (
        (torch.nn.functional.leaky_relu(sums, 0.1), OURS.linear_leaky_relu(y, q, 0.1, 30, 0.1)),
        (torch.tanh(sums), OURS.linear_tanh(y, q, 0.1, 30)),
    ):
        same(torch.quantize_per_tensor(theirs, 0.1, 30, torch.quint8), ours)


@pytest.mark.parametrize("channels", [False, True])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("relu", [False, True])
def test_convolutions(OURS, channels, dims, relu):
    (w, v), (x, y) = weights(6, 2, *[3] * dims, channels=channels), images(2, 4, *[7] * dims)
    bias = np.linspace(-1, 1, 6).astype("float32")
    window = [2] * dims, [1] * dims, [1] * dims, 2
    name = f"conv{dims}d" + ("_relu" if relu else "")
    p = getattr(THEIRS, f"conv{dims}d_prepack")(w, torch.tensor(bias), *window)
    q = getattr(OURS, f"conv{dims}d_prepack")(v, rl.tensor(bias), *window)
    same(getattr(THEIRS, name)(x, p, 0.1, 30), getattr(OURS, name)(y, q, 0.1, 30))
    weight, back = getattr(OURS, f"conv{dims}d_unpack")(q)
    assert rl.equal(weight.int_repr(), v.int_repr()) and back is q.bias()
    assert (q.stride(), q.padding(), q.dilation(), q.groups(), q.transpose()) == (
        p.stride(),
        p.padding(),
        p.dilation(),
        p.groups(),
        bool(p.transpose()),
    )
    (a, (b, _), (c,)), kind = p.__getstate__()
    (d, (e, _), (f,)), ours = q.__getstate__()
    assert (a, kind) == (d, ours) and b.tolist() == e.tolist() and c.tolist() == f.tolist()
    assert q.__deepcopy__().stride() == q.stride()


def test_halves(OURS):
    x, w, b = (np.random.default_rng(3).standard_normal(s).astype("float32") for s in ((3, 8), (5, 8), (5,)))
    p, q = (
        THEIRS.linear_prepack_fp16(*map(torch.tensor, (w, b))),
        OURS.linear_prepack_fp16(*map(rl.tensor, (w, b))),
    )
    for name in ("linear_dynamic_fp16", "linear_relu_dynamic_fp16"):
        a, c = getattr(THEIRS, name)(torch.tensor(x), p), getattr(OURS, name)(rl.tensor(x), q)
        np.testing.assert_allclose(a.numpy(), c.numpy(), rtol=1e-4, atol=1e-4)
    for a, c in zip(THEIRS.linear_unpack_fp16(p), OURS.linear_unpack_fp16(q), strict=True):
        np.testing.assert_allclose(a.numpy(), c.numpy())
    with pytest.raises(RuntimeError, match="the weight was packed as float16"):
        OURS.linear_dynamic(rl.tensor(x), q)
    with pytest.raises(RuntimeError, match="the weight must be float32"):
        OURS.linear_prepack_fp16(rl.tensor(w).double())


def test_pickles(OURS):
    w, b = (np.random.default_rng(3).standard_normal(s).astype("float32") for s in ((5, 8), (5,)))
    p, q = (
        THEIRS.linear_prepack_fp16(*map(torch.tensor, (w, b))),
        OURS.linear_prepack_fp16(*map(rl.tensor, (w, b))),
    )
    same_again = pickle.loads(pickle.dumps(q))
    assert isinstance(same_again, rl.ScriptObject) and rl.equal(same_again.unpack()[0], q.unpack()[0])
    written = io.BytesIO()
    rl.save({"w": q}, written)
    read = torch.load(io.BytesIO(written.getvalue()), weights_only=False)["w"]
    np.testing.assert_allclose(read.unpack()[0].numpy(), q.unpack()[0].numpy())
    written = io.BytesIO()
    torch.save({"w": p}, written)
    read = rl.load(io.BytesIO(written.getvalue()), weights_only=False)["w"]
    assert rl.equal(read.unpack()[0], q.unpack()[0])
    broken = rl.ScriptObject.__new__(rl.ScriptObject)
    with pytest.raises(RuntimeError, match="no class 'quantized.Other' to unpickle"):
        broken.__setstate__((None, "__torch__.torch.classes.quantized.Other"))
    with pytest.raises(AttributeError, match="no attribute 'stride'"):
        q.stride  # noqa: B018


def test_sums_products_and_joins(OURS):
    (a, b), (c, d) = images(3, 4, seed=1), images(3, 4, seed=2, scale=0.1, zero_point=20)
    for name in ("add", "add_relu", "mul", "mul_relu"):
        same(getattr(THEIRS, name)(a, c, 0.213, 50), getattr(OURS, name)(b, d, 0.213, 50))
    (e, f) = images(4, 3, seed=3)
    same(THEIRS.matmul(a, e, 0.9, 100), OURS.matmul(b, f, 0.9, 100))
    for name in ("cat", "cat_relu"):
        same(getattr(THEIRS, name)([a, c], 1, 0.213, 50), getattr(OURS, name)([b, d], 1, 0.213, 50))
        same(getattr(THEIRS, name)([a, c], 0, None, None), getattr(OURS, name)([b, d], 0))
    same(THEIRS.add(a, 2.0), OURS.add(b, 2.0))
    with pytest.raises(RuntimeError, match="same data type"):
        OURS.add(b, made(rl, d.int_repr().numpy().astype("int8"), 0.1, 0), 0.2, 0)
    with pytest.raises(RuntimeError, match="expected two quantized tensors"):
        OURS.add(b, 2.0, 0.2, 0)


def test_activations_and_norms(OURS):
    x, y = images(2, 6, 5, 5)
    same(THEIRS.hardswish(x, 0.107, 30), OURS.hardswish(y, 0.107, 30))
    same(
        THEIRS.hardswish(x, output_scale=0.107, output_zero_point=30),
        OURS.hardswish(y, output_scale=0.107, output_zero_point=30),
    )
    same(THEIRS.sigmoid(x, 1 / 256, 0), OURS.sigmoid(y, 1 / 256, 0))
    same(THEIRS.softmax(x, 1, 1 / 256, 0), OURS.softmax(y, 1, 1 / 256, 0))
    six, five = np.linspace(0.5, 1.5, 6).astype("float32"), np.linspace(0.5, 1.5, 5).astype("float32")
    t, r = torch.tensor, rl.tensor
    slopes, ours = both(np.arange(6).astype("uint8"), 0.1, 2)
    same(THEIRS.prelu(x, slopes, 0.107, 30), OURS.prelu(y, ours, 0.107, 30))
    same(
        THEIRS.layer_norm(x, [5], t(five), t(five), 1e-5, 0.107, 30),
        OURS.layer_norm(y, [5], r(five), r(five), 1e-5, 0.107, 30),
    )
    same(
        THEIRS.group_norm(x, 2, t(six), t(six), 1e-5, 0.107, 30),
        OURS.group_norm(y, 2, r(six), r(six), 1e-5, 0.107, 30),
    )
    same(
        THEIRS.instance_norm(x, t(six), t(six), 1e-5, 0.107, 30),
        OURS.instance_norm(y, r(six), r(six), 1e-5, 0.107, 30),
    )
    for name in ("batch_norm2d", "batch_norm2d_relu", "batch_norm"):
        same(
            getattr(THEIRS, name)(x, t(six), t(six), t(six), t(six), 1e-5, 0.107, 30),
            getattr(OURS, name)(y, r(six), r(six), r(six), r(six), 1e-5, 0.107, 30),
        )


def test_refusals(OURS):
    with pytest.raises(RuntimeError, match="the weight must be quantized"):
        OURS.conv2d_prepack(rl.ones(1, 1, 2, 2), None, [1, 1], [0, 0], [1, 1], 1)
    with pytest.raises(RuntimeError, match="the weight must be torch.qint8"):
        OURS.linear_prepack(made(rl, np.ones((2, 2), "uint8"), 1.0, 0))
    with pytest.raises(RuntimeError, match="expected a packed weight, got Tensor"):
        OURS.linear_dynamic(rl.ones(2, 2), rl.ones(2, 2))
    with pytest.raises(RuntimeError, match="must have 4 dimensions"):
        OURS.conv2d_prepack(weights(2, 2)[1], None, [1, 1], [0, 0], [1, 1], 1)
