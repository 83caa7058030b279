"""Gradients: functions of one's own, hooks, transforms, modes as decorators."""

from typing import TYPE_CHECKING, Any

import rushlight as torch
from rushlight.autograd import Function
from rushlight.func import grad, vmap

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return gradient * 3 * x * x


@torch.no_grad()
def total(x: torch.Tensor) -> float:
    return x.sum().item()


def main() -> None:
    x = torch.arange(3.0, requires_grad=True)
    y = Cube.apply(x).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    first.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 6.0, 12.0]
    handle = x.register_hook(lambda g: g * 2)
    handle.remove()
    slopes = vmap(grad(lambda t: t.sin()))(torch.zeros(4))
    assert slopes.tolist() == [1.0] * 4 and total(torch.ones(3)) == 3.0
    with torch.enable_grad(), torch.set_grad_enabled(True), torch.autograd.set_detect_anomaly(False):
        z = (x * 2).detach()
    if TYPE_CHECKING:
        assert_type(first, torch.Tensor)
        assert_type(total(x), float)
        assert_type(z.requires_grad_(), torch.Tensor)


if __name__ == "__main__":
    main()
