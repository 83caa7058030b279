"""Operators that `use_deterministic_algorithms` refuses: which value wins a place is open."""

import warnings

import pytest

import rushlight as torch
import rushlight.nn.functional as F

CALLS = {
    "quantized_resize_cpu_": lambda: (
        torch.quantize_per_tensor(torch.ones(4), 0.5, 10, torch.quint8).resize_(2).int_repr()
    ),
    "put_": lambda: torch.zeros(3).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0])),
    "put_ ": lambda: torch.zeros(3).put(torch.tensor([0, 0]), torch.tensor([1.0, 2.0])),
    "max_unpooling2d_forward_out": lambda: F.max_unpool1d(
        torch.ones(1, 1, 2), torch.zeros(1, 1, 2, dtype=torch.int64), 2
    ),
    "max_unpooling3d_forward_out": lambda: F.max_unpool3d(
        torch.ones(1, 1, 1, 1, 1), torch.zeros(1, 1, 1, 1, 1, dtype=torch.int64), 2
    ),
}


@pytest.fixture
def setting():
    yield torch.use_deterministic_algorithms
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", CALLS)
def test_refused_warned_of_or_computed(setting, name):
    words = f"{name.strip()} does not have a deterministic implementation"
    computed = CALLS[name]()
    setting(True)
    with pytest.raises(RuntimeError, match=words):
        CALLS[name]()
    setting(True, warn_only=True)
    with pytest.warns(UserWarning, match=words):
        assert torch.equal(CALLS[name](), computed)
    setting(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(CALLS[name](), computed)


def test_sums_have_no_order_to_refuse(setting):
    setting(True)
    t = torch.zeros(3).put_(torch.tensor([0, 0]), torch.tensor([1.0, 2.0]), accumulate=True)
    assert t.tolist() == [3, 0, 0]


def test_filling_is_switched_by_its_other_name(setting):
    get, put = (
        torch._C._get_deterministic_fill_uninitialized_memory,
        torch._C._set_deterministic_fill_uninitialized_memory,
    )
    try:
        put(False)
        assert get() is torch.utils.deterministic.fill_uninitialized_memory is False
        with pytest.raises(RuntimeError, match="expected a bool, but got int"):
            put(1)
    finally:
        put(True)
