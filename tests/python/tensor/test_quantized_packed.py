"""Tensors of quint4x2 and quint2x4, whose bytes hold several integers, and means of windows of integers."""

import io

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch", reason="PyTorch is the oracle")
if torch is rushlight:
    pytest.skip("`import torch` is this library", allow_module_level=True)


def numbers(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def by_tensor(t, x, dtype):
    return t.quantize_per_tensor(t.from_numpy(x), 0.3, 2, getattr(t, dtype))


def by_row(t, x, dtype):
    rows = np.arange(1, len(x) + 1, dtype=np.float32)
    return t.quantize_per_channel(
        t.from_numpy(x), t.from_numpy(rows / 7), t.from_numpy(rows / 3), 0, getattr(t, dtype)
    )


@pytest.mark.parametrize("dtype", ["quint4x2", "quint2x4"])
@pytest.mark.parametrize("make", [by_tensor, by_row])
@pytest.mark.parametrize("shape", [(4, 8), (3, 5)])
def test_bytes_and_numbers(make, dtype, shape):
    theirs, ours = (make(t, numbers(*shape), dtype) for t in (torch, rushlight))
    np.testing.assert_array_equal(ours.int_repr().numpy(), theirs.int_repr().numpy())
    np.testing.assert_array_equal(ours.dequantize().numpy(), theirs.dequantize().numpy())
    assert ours.shape == tuple(theirs.shape) and ours.stride() == theirs.stride()
    assert ours.untyped_storage().nbytes() == theirs.untyped_storage().nbytes()
    assert str(ours) == str(theirs)
    assert rushlight.equal(ours, make(rushlight, numbers(*shape), dtype))
    assert not rushlight.equal(ours, make(rushlight, -numbers(*shape), dtype))


@pytest.mark.parametrize("make", [by_tensor, by_row])
def test_files_go_both_ways(make):
    made = {t: make(t, numbers(4, 8), "quint4x2") for t in (torch, rushlight)}
    for source, target in ((torch, rushlight), (rushlight, torch)):
        file = io.BytesIO()
        source.save(made[source], file)
        file.seek(0)
        loaded = target.load(file)
        np.testing.assert_array_equal(loaded.int_repr().numpy(), made[source].int_repr().numpy())
        assert loaded.dtype == target.quint4x2


def test_no_operator_reads_past_the_bytes():
    x = by_tensor(rushlight, numbers(4, 8), "quint4x2")
    np.testing.assert_array_equal(x.view(2, 16).int_repr().numpy(), x.int_repr().numpy())
    for call in (
        lambda: x[1],
        lambda: x.t(),
        lambda: x.clone(),
        lambda: rushlight.cat([x, x]),
        lambda: x.relu(),
        lambda: x.copy_(x),
        lambda: x.fill_(1),
        lambda: rushlight.ops.quantized.add(x, x, 1.0, 0),
    ):
        with pytest.raises((NotImplementedError, RuntimeError)):
            call()


def test_embeddings_of_four_bits():
    rows = np.array([0, 3, 1, 1])
    found = []
    for t in (torch, rushlight):
        packed = t.ops.quantized.embedding_bag_prepack(by_row(t, numbers(4, 8), "quint4x2"))
        starts = t.from_numpy(np.array([0, 1, 3]))
        found.append(
            (
                t.ops.quantized.embedding_4bit(packed, t.from_numpy(rows)).numpy(),
                t.ops.quantized.embedding_bag_4bit(packed, t.from_numpy(rows), starts).numpy(),
            )
        )
    for theirs, ours in zip(*found):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("zero_point", [57, 60])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", ["pool", "adaptive", "padded"])
def test_means_of_windows(name, last, zero_point):
    integers = np.random.default_rng(1).integers(0, 255, (2, 40, 9, 9)).astype(np.uint8)

    def call(t):
        F = t.nn.functional
        x = t._make_per_tensor_quantized_tensor(t.from_numpy(integers), 0.03, zero_point)
        if last:
            x = x.contiguous(memory_format=t.channels_last)
        if name == "pool":
            return F.avg_pool2d(x, 2)
        return F.adaptive_avg_pool2d(x, 3) if name == "adaptive" else F.avg_pool2d(x, 3, 2, 1)

    theirs, ours = call(torch), call(rushlight)
    assert ours.q_zero_point() == theirs.q_zero_point() and ours.q_scale() == theirs.q_scale()
    np.testing.assert_array_equal(ours.int_repr().numpy(), theirs.int_repr().numpy())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", ["quint4x2", "quint2x4"])
def test_packed_integers_are_resized(dtype):
    def call(t, n):
        q = t.quantize_per_tensor(t.arange(5.0) / 10, 0.1, 0, getattr(t, dtype)).resize_(n)
        return list(q.shape), q.int_repr()[: min(n, 4) // 2 if dtype == "quint4x2" else 1].tolist()

    for n in (3, 5, 12):
        assert call(rushlight, n) == call(torch, n)
