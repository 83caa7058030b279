"""`torch.ops.quantized`: functions of quantised tensors give PyTorch's integers and scales."""

import numpy as np
import pytest

import rushlight


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def quantized(t, x, scale=0.03, zero_point=60, dtype="quint8"):
    return t.quantize_per_tensor(t.from_numpy(x), scale, zero_point, getattr(t, dtype))


def same(torch, call, off=0):
    """The call gives the same integers, dtype, scale and zero point in both libraries; `off` of a thousand
    may be one step away."""
    theirs, ours = call(torch), call(rushlight)
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.shape == tuple(theirs.shape)
    assert ours.q_scale() == pytest.approx(theirs.q_scale(), rel=1e-12)
    assert ours.q_zero_point() == theirs.q_zero_point()
    a, b = ours.int_repr().numpy().astype(int), theirs.int_repr().numpy().astype(int)
    assert np.abs(a - b).max() <= (1 if off else 0)
    assert (a != b).sum() <= off * max(1, a.size // 1000)
    return ours


ZERO = {"quint8": 60, "qint8": -10}


@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
@pytest.mark.parametrize("name", ["add", "add_relu", "mul", "mul_relu"])
@pytest.mark.parametrize("size", [1, 37, 128, 1000, 4096])
def test_pairs(torch, name, dtype, size):
    def call(t):
        a = quantized(t, numbers(size), zero_point=ZERO[dtype], dtype=dtype)
        b = quantized(t, numbers(size, seed=1), 0.02, 7, dtype)
        return getattr(t.ops.quantized, name)(a, b, 0.035, 20)

    same(torch, call)


@pytest.mark.parametrize("name", ["add", "mul"])
def test_broadcast_and_strided_pairs(torch, name):
    def call(t):
        a = quantized(t, numbers(2, 3, 5, 5)).transpose(1, 3)
        return getattr(t.ops.quantized, name)(a, quantized(t, numbers(1, 5, 1, 3)), 0.05, 12)

    same(torch, call, off=1)


def test_sums_into_a_tensor(torch):
    def call(t):
        a, out = quantized(t, numbers(128)), quantized(t, numbers(128), 0.07, 3)
        t.ops.quantized.add(a, a, out=out)
        return out

    same(torch, call)


@pytest.mark.parametrize("name", ["add", "add_relu", "mul", "mul_relu"])
@pytest.mark.parametrize("number", [0.5, -0.7, 4.0, -9.0, 0.0, 3])
def test_numbers(torch, name, number):
    same(torch, lambda t: getattr(t.ops.quantized, name)(quantized(t, numbers(300)), number))
    same(torch, lambda t: getattr(t.ops.quantized, name)(number, quantized(t, numbers(300))))


@pytest.mark.parametrize("name", ["cat", "cat_relu"])
@pytest.mark.parametrize("dim", [0, 1])
def test_joined(torch, name, dim):
    def call(t):
        parts = [quantized(t, numbers(2, 300, seed=i), 0.02 + i / 100, 30 * i + 1) for i in range(3)]
        return getattr(t.ops.quantized, name)(parts, dim, 0.03, 40)

    same(torch, call)


CALLS = {
    "hardswish": lambda q, x: q.hardswish(x, 0.02, 9),
    "sigmoid": lambda q, x: q.sigmoid(x, 1 / 256, 0),
    "elu": lambda q, x: q.elu(x, 0.02, 50, 1.3),
    "celu": lambda q, x: q.celu(x, 0.02, 50, 1.3),
    "leaky_relu": lambda q, x: q.leaky_relu(x, 0.2, False, 0.02, 20),
    "softmax": lambda q, x: q.softmax(x, 1, 1 / 256, 0),
    "threshold": lambda q, x: q.threshold(x, 0.1, 0.5),
    "clamp": lambda q, x: q.clamp(x, -0.4, 0.6),
    "relu6": lambda q, x: q.relu6(x),
    "max_pool2d": lambda q, x: q.max_pool2d(x, [2, 2], [2, 2], [0, 0], [1, 1], False),
    "group_norm": lambda q, x: q.group_norm(x, 2, None, None, 1e-5, 0.03, 60),
    "instance_norm": lambda q, x: q.instance_norm(x, None, None, 1e-5, 0.03, 60),
    "layer_norm": lambda q, x: q.layer_norm(x, [8, 8], None, None, 1e-5, 0.03, 60),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_functions(torch, name):
    same(torch, lambda t: CALLS[name](t.ops.quantized, quantized(t, numbers(2, 4, 8, 8))), off=4)


def test_batch_norm(torch):
    def call(t):
        mean, var = t.from_numpy(numbers(4)), t.from_numpy(np.abs(numbers(4, seed=2)) + 0.1)
        x = quantized(t, numbers(2, 4, 8, 8))
        return t.ops.quantized.batch_norm2d(x, mean + 1, mean, mean, var, 1e-5, 0.05, 30)

    same(torch, call, off=4)


def test_products_of_matrices(torch):
    same(
        torch,
        lambda t: t.ops.quantized.matmul(
            quantized(t, numbers(2, 5, 16)), quantized(t, numbers(2, 16, 9)), 0.2, 60
        ),
        off=4,
    )


# PyTorch 2.13 gives wrong numbers where the output padding is not 1.
@pytest.mark.parametrize(("dims", "groups"), [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)])
def test_transposed_convolutions(torch, dims, groups):
    def call(t):
        x = quantized(t, numbers(2, 4, *(5, 6, 4)[:dims]))
        w = quantized(t, 0.3 * numbers(4, 6 // groups, *(3, 2, 3)[:dims]), 0.01, 0, "qint8")
        window = [[2] * dims, [1] * dims, [1] * dims, [1] * dims]
        packed = getattr(t.ops.quantized, f"conv_transpose{dims}d_prepack")(
            w, t.from_numpy(numbers(6)), *window, groups
        )
        return getattr(t.ops.quantized, f"conv_transpose{dims}d")(packed_weight=packed, qx=x, **SCALE)

    if dims == 2 and groups == 1:  # other windows
        for stride, padding, more, dilation in ((1, 1, 1, 2), (3, 2, 1, 1)):

            def wide(t, stride=stride, padding=padding, more=more, dilation=dilation):
                x = quantized(t, numbers(1, 4, 7, 7))
                w = quantized(t, 0.3 * numbers(4, 6, 3, 3), 0.01, 0, "qint8")
                packed = t.ops.quantized.conv_transpose2d_prepack(
                    w, None, [stride] * 2, [padding] * 2, [more] * 2, [dilation] * 2, 1
                )
                return t.ops.quantized.conv_transpose2d(x, packed, 0.05, 100)

            same(torch, wide)
    same(torch, call)


SCALE = {"output_scale": 0.05, "output_zero_point": 100}


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dynamic_convolutions(torch, dims):
    def call(t):
        x = t.from_numpy(numbers(2, 4, *(9, 6, 5)[:dims]))
        w = quantized(t, 0.3 * numbers(6, 4, *(3, 2, 3)[:dims]), 0.01, 0, "qint8")
        one = [1] * dims
        packed = getattr(t.ops.quantized, f"conv{dims}d_prepack")(
            w, t.from_numpy(numbers(6)), one, one, one, 1
        )
        return getattr(t.ops.quantized, f"conv{dims}d_dynamic")(x, packed, False).numpy()

    np.testing.assert_allclose(call(rushlight), call(torch), rtol=1e-6, atol=1e-6)


def test_scales_that_no_tensor_has_are_refused():
    x = quantized(rushlight, numbers(4))
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="positive number"):
            rushlight.ops.quantized.add(x, x, scale, 0)
    by_channel = rushlight.quantize_per_channel(
        rushlight.ones(2, 2), rushlight.ones(2), rushlight.zeros(2), 0, rushlight.quint8
    )
    with pytest.raises(RuntimeError, match="per-tensor"):
        rushlight.ops.quantized.add(by_channel, by_channel, 0.1, 0)
    with pytest.raises(RuntimeError, match="same data type"):
        rushlight.ops.quantized.add(x, quantized(rushlight, numbers(4), 0.1, 0, "qint8"), 0.1, 0)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_dynamic_layers_of_transposed_convolutions(dims):
    plain = getattr(rushlight.nn, f"ConvTranspose{dims}d")(4, 6, 3, 2, 1)
    with pytest.warns(UserWarning, match="not recommended"):
        layer = getattr(rushlight.nn.quantized.dynamic, f"ConvTranspose{dims}d")(4, 6, 3, 2, 1)
    w = rushlight.quantize_per_tensor(plain.weight.detach(), 0.005, 0, rushlight.qint8)
    layer.set_weight_bias(w, plain.bias.detach())
    x = rushlight.randn(2, 4, *(7, 6, 5)[:dims])
    assert float((layer(x) - plain(x)).abs().max()) < 0.05 * float(x.abs().max())


@pytest.mark.parametrize("name", ["threshold", "sigmoid"])
@pytest.mark.parametrize("dtype", ["quint8", "qint8"])
def test_functions_of_torch(torch, name, dtype):
    def call(t):
        x = quantized(t, numbers(5, 128), 0.02, 3, dtype)
        return t.nn.functional.threshold(x, 0.1, 0.5) if name == "threshold" else t.sigmoid(x)

    same(torch, call)
