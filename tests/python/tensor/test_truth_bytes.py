"""Truth values whose bytes are neither 0 nor 1, as views of other dtypes, arrays and files make them."""

import io

import numpy as np
import pytest

import rushlight as torch

BYTES = [0, 1, 2, 255, 7, 0, 128, 64, 3, 0, 0, 16]
TRUTHS = [byte != 0 for byte in BYTES]


def odd():
    return torch.tensor(BYTES, dtype=torch.uint8).view(torch.bool)


PLAIN = torch.tensor(TRUTHS)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64])
def test_conversions_give_zeros_and_ones(dtype):
    assert odd().to(dtype).tolist() == PLAIN.to(dtype).tolist()
    assert odd()[::2].to(dtype).tolist() == PLAIN[::2].to(dtype).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.nonzero(),
        lambda x: x.view(3, 4).nonzero(),
        lambda x: x.count_nonzero(),
        lambda x: torch.arange(len(BYTES))[x],
        lambda x: torch.arange(len(BYTES)).masked_select(x),
        lambda x: torch.zeros(len(BYTES)).masked_scatter(x, torch.arange(20.0)),
        lambda x: torch.where(x, 1, 2),
        lambda x: torch.zeros(len(BYTES)).masked_fill(x, 3),
    ],
)
def test_masks_select_every_byte_that_is_not_zero(call):
    assert call(odd()).tolist() == call(PLAIN).tolist()


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "ge", "logical_and", "logical_xor", "mul", "bitwise_xor"])
def test_comparisons_and_logic_know_one_truth(name):
    other = torch.ones(len(BYTES), dtype=torch.bool)
    call = getattr(torch, name)
    assert call(odd(), other).tolist() == call(PLAIN, other).tolist()
    assert call(other, odd()).tolist() == call(other, PLAIN).tolist()


@pytest.mark.parametrize(
    "name", ["sum", "cumsum", "prod", "any", "all", "amax", "logical_not", "bitwise_not"]
)
def test_reductions_count_truths_and_not_bytes(name):
    dim = (0,) if name == "cumsum" else ()
    assert getattr(odd(), name)(*dim).tolist() == getattr(PLAIN, name)(*dim).tolist()
    assert getattr(odd().repeat(50), name)(*dim).tolist() == getattr(PLAIN.repeat(50), name)(*dim).tolist()


def test_masks_of_arrays_and_files():
    array = np.array(BYTES, dtype=np.uint8).view(bool)
    assert torch.from_numpy(array).nonzero().flatten().tolist() == PLAIN.nonzero().flatten().tolist()
    file = io.BytesIO()
    torch.save(odd(), file)
    file.seek(0)
    assert int(torch.load(file).sum()) == sum(TRUTHS)


@pytest.mark.parametrize("n", [7, 64, 1000, 1024, 16384, 30592, 32768, 40001, 100000])
def test_long_vectors_are_counted_whole(n):
    """Pieces of 1024 elements at the end of a vector were once counted by a quarter."""
    bytes_ = np.random.default_rng(n).integers(0, 3, n).astype(np.uint8)
    truths, expected = torch.from_numpy(bytes_).view(torch.bool), int((bytes_ != 0).sum())
    assert truths.sum().item() == truths.count_nonzero().item() == truths.long().sum().item() == expected
    assert truths.reshape(-1, 1).sum(0).item() == expected
    ones = torch.ones(n, dtype=torch.bool)
    assert ones.sum().item() == n and ones.prod().item() == 1
    assert torch.from_numpy(np.maximum(bytes_, 1)).view(torch.bool).prod().item() == 1
