"""The form in which a kernel gets its operands (one number for all, one row, few lines, codes of eight bits,
masks) changes neither what it gives nor by much what it takes.
"""

import time

import pytest

import rushlight as torch
from rushlight.nn import functional as F

FLOAT8 = ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def seconds(call):
    """Of processor time, the least of some calls."""
    least = float("inf")
    for _ in range(12):
        start = time.process_time()
        for _ in range(4):
            call()
        least = min(least, time.process_time() - start)
    return least


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "elu", "softplus", "logsigmoid"])
def test_one_gradient_for_all_is_as_many_that_are_equal(name, dtype):
    x = torch.linspace(-9, 9, 20_011, dtype=getattr(torch, dtype)).requires_grad_()
    y = getattr(F, name)(x)
    for value in (1.0, -2.5):
        one = torch.full((), value, dtype=y.dtype).expand(y.shape)
        many = one.contiguous()
        (from_one,) = torch.autograd.grad(y, x, one, retain_graph=True)
        (from_many,) = torch.autograd.grad(y, x, many, retain_graph=True)
        assert torch.equal(from_one, from_many)
    took = seconds(lambda: torch.autograd.grad(y, x, one, retain_graph=True))
    assert took < 2.5 * seconds(lambda: torch.autograd.grad(y, x, many, retain_graph=True))


def test_hidden_keys_take_no_longer_than_others():
    q, k, v = torch.randn(3, 2, 4, 64, 32).unbind()
    seen = torch.rand(2, 1, 64, 64) < 0.8
    for dtype in (torch.float32, torch.bfloat16):
        operands = [x.to(dtype) for x in (q, k, v)]
        added = torch.zeros(2, 1, 64, 64, dtype=dtype)
        plain = seconds(lambda operands=operands, m=added: F.scaled_dot_product_attention(*operands, m))
        masked = seconds(lambda operands=operands: F.scaled_dot_product_attention(*operands, seen))
        assert masked < 1.9 * plain
    weights = torch.softmax((q @ k.mT / 32**0.5).masked_fill(~seen, float("-inf")), -1)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v, seen), weights @ v)
