"""Embedding tables of bytes and halves of bytes, against PyTorch's."""

import numpy as np
import pytest

import rushlight as rl

torch = pytest.importorskip("torch")
THEIRS, OURS = torch.ops.quantized, rl.ops.quantized
NAMES = {8: "embedding_bag_byte", 4: "embedding_bag_4bit"}


def table(rows, width, kind="float32"):
    x = np.random.default_rng(rows * width).standard_normal((rows, width)).astype(kind)
    if rows > 2:
        x[1], x[2] = 0, 3  # rows of one number
    return torch.tensor(x), rl.tensor(x)


@pytest.mark.parametrize("bits", NAMES)
@pytest.mark.parametrize("shape", [(5, 16), (1, 2), (7, 34), (0, 4)])
def test_tables(bits, shape):
    x, y = table(*shape)
    a, b = (getattr(lib, f"{NAMES[bits]}_prepack")(t) for lib, t in ((THEIRS, x), (OURS, y)))
    assert b.dtype == rl.uint8
    np.testing.assert_array_equal(a.numpy(), b.numpy())
    a, b = (getattr(lib, f"{NAMES[bits]}_unpack")(t) for lib, t in ((THEIRS, a), (OURS, b)))
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bits", NAMES)
@pytest.mark.parametrize("integers", ["int32", "int64"])
@pytest.mark.parametrize("factors", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_sums_of_rows(bits, integers, factors, last):
    x, y = table(9, 32)
    indices = np.array([3, 0, 8, 8, 1, 2], integers)
    offsets = np.array([0, 2, 2, 5] + [6] * last, integers)
    weights = np.linspace(0.5, 2, 6).astype("float32")
    results = []
    for lib, t, make in ((THEIRS, x, torch.tensor), (OURS, y, rl.tensor)):
        packed = getattr(lib, f"{NAMES[bits]}_prepack")(t)
        results.append(
            getattr(lib, f"{NAMES[bits]}_rowwise_offsets")(
                packed,
                make(indices),
                make(offsets),
                per_sample_weights=make(weights) if factors else None,
                include_last_offset=last,
            ).numpy()
        )
    np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bits", NAMES)
def test_bags_of_one_length_and_pruned_rows(bits):
    x, y = table(6, 16)
    results = []
    for lib, t, module in ((THEIRS, x, torch), (OURS, y, rl)):
        packed = getattr(lib, f"{NAMES[bits]}_prepack")(t)
        look_up = getattr(lib, f"{NAMES[bits]}_rowwise_offsets")
        results.append(look_up(packed, module.tensor([[1, 2, 3], [0, 0, 5]])).numpy())
        mapping = module.tensor([2, -1, 0, -1, 5, 4], dtype=module.int32)
        pruned = look_up(
            packed,
            module.tensor([0, 1, 2, 4], dtype=module.int32),
            module.tensor([0, 2], dtype=module.int32),
            pruned_weights=True,
            compressed_indices_mapping=mapping,
        )
        results.append(pruned.numpy())
    for a, b in zip(results[:2], results[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_refusals():
    packed = OURS.embedding_bag_byte_prepack(rl.randn(4, 8))
    look_up = OURS.embedding_bag_byte_rowwise_offsets
    for args, text in (
        ((packed, rl.tensor([4]), rl.tensor([0])), "index 4 is out of range for 4 rows"),
        ((packed, rl.tensor([-1]), rl.tensor([0])), "index -1 is out of range"),
        ((packed, rl.tensor([1])), "offsets cannot be None"),
        ((packed, rl.tensor([1]), rl.tensor([2])), "offsets must grow from 0"),
        ((packed, rl.tensor([[1]]), rl.tensor([0])), "offsets has to be None"),
        ((packed, rl.tensor([1.0]), rl.tensor([0])), "indices must be int32 or int64"),
        ((packed.float(), rl.tensor([1]), rl.tensor([0])), "must be a uint8 matrix"),
        ((packed[:, :7], rl.tensor([1]), rl.tensor([0])), "needs 8 bytes for a scale and a bias"),
    ):
        with pytest.raises(RuntimeError, match=text):
            look_up(*args)
    with pytest.raises(RuntimeError, match="4 bits needs a multiple of 2 columns"):
        OURS.embedding_bag_4bit_prepack(rl.randn(2, 3))
    with pytest.raises(RuntimeError, match="2 bits needs a multiple of 4 columns"):
        OURS.embedding_bag_2bit_prepack(rl.randn(2, 6))
    with pytest.raises(RuntimeError, match="ratio must be between 0 and 1"):
        OURS.embedding_bag_4bit_prepack(rl.randn(2, 4), True, 200, 2.0)
