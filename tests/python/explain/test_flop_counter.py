"""FlopCounterMode: what products and convolutions cost, by module."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.flop_counter import FlopCounterMode, register_flop_formula

F = nn.functional

CASES = {
    "mm": lambda t: t.ones(2, 3) @ t.ones(3, 4),
    "addmm": lambda t: t.nn.functional.linear(t.ones(2, 3), t.ones(4, 3), t.ones(4)),
    "bmm": lambda t: t.bmm(t.ones(5, 2, 3), t.ones(5, 3, 4)),
    "conv": lambda t: t.nn.functional.conv2d(t.ones(2, 4, 9, 9), t.ones(6, 2, 3, 3), groups=2, stride=2),
    "transposed": lambda t: t.nn.functional.conv_transpose2d(t.ones(2, 4, 5, 5), t.ones(4, 6, 3, 3)),
    "backward": lambda t: (
        (t.ones(2, 3, requires_grad=True) @ t.ones(3, 4, requires_grad=True)).sum().backward()
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_pytorchs(name):
    torch_ = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode as Theirs

    with FlopCounterMode(display=False) as mine:
        CASES[name](torch)
    with Theirs(display=False) as theirs:
        CASES[name](torch_)
    assert mine.get_total_flops() == theirs.get_total_flops() > 0


def test_attention_is_two_products():
    with FlopCounterMode(display=False) as counter:
        F.scaled_dot_product_attention(*[torch.ones(2, 3, 7, 8)] * 3)
    assert counter.get_total_flops() == 2 * (2 * 3 * 7 * 7 * 8 * 2)


def test_modules_are_told_apart():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 5))
    with FlopCounterMode(display=False) as counter:
        net(torch.ones(2, 3)).sum().backward()
    counts = counter.get_flop_counts()
    assert sum(counts["Sequential.0"].values()) == 2 * 2 * 3 * 4 * 2
    assert sum(counts["Sequential.2"].values()) == 2 * 2 * 4 * 5 * 3
    assert sum(counts["Global"].values()) == counter.get_total_flops()
    assert "Sequential.0" in counter.get_table() and "addmm" in counter.get_table()


def test_formulas_can_be_added():
    with pytest.raises(RuntimeError, match="duplicate"):
        register_flop_formula(torch.ops.aten.mm)(lambda *args, **kwargs: 0)
    with pytest.raises(ValueError, match="OpOverloadPacket"):
        register_flop_formula("mm")(lambda *args, **kwargs: 0)
    with FlopCounterMode(
        display=False, custom_mapping={torch.ops.aten.exp: lambda x, out_shape=None: 7}
    ) as counter:
        torch.ones(3).exp()
    assert counter.get_total_flops() == 7
