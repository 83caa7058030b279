"""vmap over calls of forward mode: tangents with examples, of tensors without."""

import pytest

import rushlight as torch
from rushlight.autograd import forward_ad


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def jvp(ctx, tangent):
        return tangent * 2


def written(x):
    y = torch.zeros(2, 3, dtype=x.dtype)
    y[1].copy_(x * x)
    return y


def partly_scaled(x):
    y = x.clone()
    y[1:].mul_(3)
    return y


FACTORS = torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]], dtype=torch.float64)
FUNCTIONS = {
    "sin": torch.sin,
    "square": lambda x: x * x,
    "matmul": lambda x: FACTORS @ x,
    "softmax": lambda x: torch.softmax(x, 0),
    "norm": torch.linalg.vector_norm,
    "cumprod": lambda x: torch.cumprod(x, 0),
    "sorted": lambda x: torch.sort(x, descending=True).values,
    "composite": lambda x: torch.nn.functional.layer_norm(x, (3,)),
    "view": lambda x: x.view(3, 1).t()[0, 1:],
    "written": written,
    "partly scaled": partly_scaled,
    "own function": Doubled.apply,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_to_a_loop(name):
    x = torch.tensor([0.3, 1.2, -0.7], dtype=torch.float64)
    tangents = torch.tensor([[1.0, 0, 0], [0.2, -1, 0.5]], dtype=torch.float64)

    def along(tangent):
        with forward_ad.dual_level():
            return forward_ad.unpack_dual(FUNCTIONS[name](forward_ad.make_dual(x, tangent)))

    expected = [along(t) for t in tangents]
    found = torch.vmap(lambda t: along(t).tangent)(tangents)
    torch.testing.assert_close(found, torch.stack([e.tangent for e in expected]))
    twice = torch.vmap(torch.vmap(lambda t: along(t).tangent))(tangents.reshape(2, 1, 3))
    torch.testing.assert_close(twice.squeeze(1), found)


def test_gradcheck_maps_over_functions_without_setup_context():
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    options = {"check_backward_ad": False, "check_batched_grad": False, "check_undefined_grad": False}
    assert torch.autograd.gradcheck(
        Doubled.apply, (x,), check_forward_ad=True, check_batched_forward_grad=True, **options
    )


def test_no_tangents_within_forward():
    class Looks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            assert not forward_ad._is_fwd_grad_enabled()
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    Looks.apply(torch.ones(2, requires_grad=True))
    assert forward_ad._is_fwd_grad_enabled()
