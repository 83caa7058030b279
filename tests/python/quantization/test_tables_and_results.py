"""Embedding tables of 8, 4 and 2 bits, ranges that lose least, and results in tensors that are given."""

import numpy as np
import pytest

import rushlight

_BITS = {"byte": 8, "4bit": 4, "2bit": 2}


def _table(rows=6, width=24):
    return np.random.RandomState(0).randn(rows, width).astype("f4")


@pytest.mark.parametrize("kind", sorted(_BITS))
def test_tables_are_pytorchs(torch, kind):
    found, expected = [], []
    for library, results in ((rushlight, found), (torch, expected)):
        ops, weight = library.ops.quantized, library.from_numpy(_table())
        packed = getattr(ops, f"embedding_bag_{kind}_prepack")(weight)
        bag = getattr(ops, f"embedding_bag_{kind}_rowwise_offsets")
        indices, offsets = library.tensor([1, 5, 2, 2, 0]), library.tensor([0, 2, 5])
        factors = library.tensor([1.0, 0.5, -2.0, 3.0, 0.25])
        results += [
            packed,
            getattr(ops, f"embedding_bag_{kind}_unpack")(packed),
            bag(packed, indices, offsets[:2], per_sample_weights=factors),
        ]
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", ["4bit", "2bit"])
def test_searched_ranges_are_pytorchs(torch, kind):
    weight = _table()
    weight[2, 5] = 40
    pack = f"embedding_bag_{kind}_prepack"
    found, expected = (
        getattr(library.ops.quantized, pack)(library.from_numpy(weight), True, 100, 0.3).numpy()
        for library in (rushlight, torch)
    )
    np.testing.assert_array_equal(found, expected)
    plain = getattr(rushlight.ops.quantized, pack)(rushlight.from_numpy(weight)).numpy()
    assert (plain != found).any()


@pytest.mark.parametrize("kind", sorted(_BITS))
def test_given_ranges_bound_the_rows(kind):
    ops, weight = rushlight.ops.quantized, rushlight.from_numpy(_table())
    ranges = rushlight.tensor([[-1.0, 1.0]]).repeat(6, 1)
    packed = getattr(ops, f"embedding_bag_{kind}_prepack_with_rowwise_min_max")(weight, ranges)
    rows = getattr(ops, f"embedding_bag_{kind}_unpack")(packed)
    step = 2 / (2 ** _BITS[kind] - 1)
    assert (rows - weight.clamp(-1, 1)).abs().max() <= step / 2 + 1e-3
    with pytest.raises(RuntimeError, match="two numbers for each row"):
        getattr(ops, f"embedding_bag_{kind}_prepack_with_rowwise_min_max")(weight, ranges[:2])


def test_ranges_that_lose_least(torch):
    x = _table().reshape(-1)
    x[7] = 30
    for bits in (2, 4, 8):
        found, expected = (
            library.choose_qparams_optimized(library.from_numpy(x), 100, 200, 0.16, bits)
            for library in (rushlight, torch)
        )
        assert [float(v) for v in found] == [float(v) for v in expected]


def test_bad_searches_are_refused():
    x = rushlight.ones(4)
    for numel, steps, ratio, bits, what in (
        (5, 10, 0.1, 4, "numel is out of"),
        (4, 0, 0.1, 4, "bins must be positive"),
        (4, 10, 1.5, 4, "between 0 and 1"),
        (4, 10, 0.1, 0, "1 to 16 bits"),
    ):
        with pytest.raises(RuntimeError, match=what):
            rushlight.choose_qparams_optimized(x, numel, steps, ratio, bits)
    # Steps that rounding swallows, equal numbers and none at all end too.
    for odd in (rushlight.tensor([1e8, 1e8 + 8]), x, x[:0], rushlight.tensor([1.0, float("nan")])):
        rushlight.choose_qparams_optimized(odd, odd.numel(), 200, 1.0, 4)


def _pair(library):
    a = library.quantize_per_tensor(library.from_numpy(_table(3, 4)), 0.05, 100, library.quint8)
    b = library.quantize_per_tensor(library.from_numpy(_table(3, 4)[::-1].copy()), 0.1, 20, library.quint8)
    return a, b


@pytest.mark.parametrize("name", ["add", "add_relu", "mul", "mul_relu", "cat", "cat_relu"])
def test_results_in_given_tensors(torch, name):
    made = []
    for library in (rushlight, torch):
        a, b = _pair(library)
        sizes = (3, 8) if "cat" in name else (3, 4)
        out = library._empty_affine_quantized(sizes, scale=0.07, zero_point=9, dtype=library.quint8)
        arguments = ([a, b], 1) if "cat" in name else (a, b)
        result = getattr(library.ops.quantized, f"{name}_out")(*arguments, out)
        assert result is out
        made.append((out.int_repr().numpy(), out.q_scale(), out.q_zero_point()))
    np.testing.assert_array_equal(made[0][0], made[1][0])
    assert made[0][1:] == made[1][1:]


@pytest.mark.parametrize("name", ["add_scalar", "mul_scalar", "add_scalar_relu", "mul_scalar_relu"])
def test_sums_with_numbers_in_given_tensors(torch, name):
    # PyTorch leaves `out` of mul_scalar_relu_out as it was, so that its plain form is compared with.
    expected = getattr(torch.ops.quantized, name)(_pair(torch)[0], 0.3)
    out = rushlight._empty_affine_quantized((3, 4), scale=1.0, zero_point=0, dtype=rushlight.quint8)
    assert getattr(rushlight.ops.quantized, f"{name}_out")(_pair(rushlight)[0], 0.3, out) is out
    np.testing.assert_allclose(out.dequantize().numpy(), expected.dequantize().numpy(), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["quint8", "qint8", "qint32"])
def test_nearest_neighbours_of_each_type(torch, dtype):
    x = _table(12, 9).reshape(1, 3, 4, 9)
    made = []
    for library in (rushlight, torch):
        q = library.quantize_per_tensor(library.from_numpy(x), 0.02, 3, getattr(library, dtype))
        results = [
            library.nn.functional.interpolate(q, scale_factor=2, mode="nearest"),
            library.nn.functional.interpolate(q.unsqueeze(2), size=(2, 3, 4), mode="nearest"),
        ]
        made.append([r.int_repr().numpy() for r in results])
    for got, want in zip(*made, strict=True):
        np.testing.assert_array_equal(got, want)


def test_grids_sample_quantized_images(torch):
    x, grid = (
        _table(12, 9).reshape(1, 3, 4, 9),
        np.random.RandomState(1).uniform(-1, 1, (1, 5, 6, 2)).astype("f4"),
    )
    made = []
    for library in (rushlight, torch):
        q = library.quantize_per_tensor(library.from_numpy(x), 0.02, 3, library.quint8)
        y = library.nn.functional.grid_sample(q, library.from_numpy(grid), align_corners=False)
        made.append(y.dequantize().numpy())
    np.testing.assert_allclose(*made, atol=0.0201)
    with pytest.raises(NotImplementedError, match="grid_sampler"):
        rushlight.nn.functional.grid_sample(rushlight.ones(1, 1, 2, 2).int(), rushlight.zeros(1, 1, 1, 2))


def test_errors_are_pytorchs():
    q = rushlight.quantize_per_tensor(rushlight.ones(3, 2), 0.1, 2, rushlight.quint8)
    with pytest.raises(RuntimeError, match="QuantizedCPU"):
        q.new(2, 3)
    with pytest.raises(RuntimeError, match=r"requested resize to 2 \(2 elements in total\)"):
        q.resize(2)
    assert q.resize(2, 3).shape == q.resize((2, 3)).shape == (2, 3)
    channels = rushlight.quantize_per_channel(
        rushlight.ones(2, 2), rushlight.ones(2), rushlight.zeros(2), 0, rushlight.quint8
    )
    with pytest.raises(RuntimeError, match="Only per-tensor quantization is supported in 'cat'"):
        rushlight.ops.quantized.cat([channels, channels], 0)
    most = rushlight.tensor([70000.0, -1e9, 3.0])
    assert rushlight._saturate_weight_to_fp16(most).tolist() == [65504, -65504, 3]
