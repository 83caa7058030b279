"""`nn.grad`: gradients of convolutions as functions of their own."""

import pytest

import rushlight as torch
from rushlight.nn import functional as F
from rushlight.nn import grad

STEP = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_they_are_those_of_autograd_and_have_gradients(dims):
    torch.manual_seed(0)
    x = torch.randn(2, 4, *[5] * dims, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, *[3] * dims, dtype=torch.float64, requires_grad=True)
    out = getattr(F, f"conv{dims}d")(x, w, **STEP)
    g = torch.randn_like(out).requires_grad_()
    for_x, for_w = torch.autograd.grad(out, (x, w), g, create_graph=True)
    input_of, weight_of = (getattr(grad, f"conv{dims}d_{name}") for name in ("input", "weight"))
    mine_x, mine_w = input_of(x.shape, w, g, **STEP), weight_of(x, w.shape, g, **STEP)
    torch.testing.assert_close([mine_x, mine_w], [for_x, for_w])
    for mine, expected, leaves in ((mine_x, for_x, (w, g)), (mine_w, for_w, (x, g))):
        torch.testing.assert_close(
            torch.autograd.grad(mine.square().sum(), leaves),
            torch.autograd.grad(expected.square().sum(), leaves),
        )


def test_they_record_nothing_that_is_not_asked_for():
    x, w, g = torch.ones(1, 1, 4, 4), torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)
    assert not grad.conv2d_weight(x, w.shape, g).requires_grad
    with torch.no_grad():
        assert not grad.conv2d_input(x.shape, w.requires_grad_(), g).requires_grad
