"""Products with packed weights in plain tensors: `torch.ops._quantized` and `torch.ops.onednn`."""

import numpy as np
import pytest

import rushlight


def _numbers():
    random = np.random.RandomState(0)
    return [random.randn(*shape).astype("f4") for shape in ((3, 6), (4, 6), (4,))]


def test_products_of_integers_are_pytorchs(torch):
    made = []
    for library in (rushlight, torch):
        ops = library.ops._quantized
        x, w, bias = map(library.from_numpy, _numbers())
        of_x, of_w, of_y = (
            [library.tensor(scale), library.tensor(zero)]
            for scale, zero in ((0.03, 120), (0.05, 0), (0.1, 64))
        )
        packed = ops._wrapped_linear_prepack(w, *of_w, bias)
        made.append(
            [
                ops.wrapped_quantized_linear(x, *of_x, w, *of_w, bias, *of_y, 4).numpy(),
                ops._wrapped_quantized_linear_prepacked(x, *of_x, packed, *of_y, 4).numpy(),
            ]
        )
    for found, expected in zip(*made, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_products_by_halves():
    x, w, bias = map(rushlight.from_numpy, _numbers())
    expected = rushlight.nn.functional.linear(x, w.half().float(), bias)
    packed = rushlight.ops._quantized.wrapped_fbgemm_pack_gemm_matrix_fp16(w)
    assert rushlight.equal(
        rushlight.ops._quantized.wrapped_fbgemm_linear_fp16_weight(x, packed, bias, 4), expected
    )
    packed = rushlight.ops.onednn.linear_prepack_fp16(w, x.shape)
    assert rushlight.equal(rushlight.ops.onednn.linear_dynamic_fp16(x, packed, bias), expected)
    assert rushlight.equal(rushlight.ops.onednn.linear_relu_dynamic_fp16(x, packed, bias), expected.relu())


def test_a_packed_weight_of_another_size_is_refused():
    x, w, bias = map(rushlight.from_numpy, _numbers())
    one, zero = rushlight.tensor(0.1), rushlight.tensor(0)
    packed = rushlight.ops._quantized._wrapped_linear_prepack(w, one, zero, bias)
    with pytest.raises(
        RuntimeError, match="5 results of 6 numbers each need a packed weight of 66 bytes, got 56"
    ):
        rushlight.ops._quantized._wrapped_quantized_linear_prepacked(x, one, zero, packed, one, zero, 5)
