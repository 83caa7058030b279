"""Vectors divided by their norms."""

import rushlight as torch
from rushlight import Tensor


def normalize(
    input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None
) -> Tensor:
    """input divided by its p-norm along dim.

    Args:
        input (Tensor): any tensor.
        p (float): the order of the norm.
        dim (int or sequence of int): the dimensions that the norm is taken over.
        eps (float): the smallest divisor.
        out (Tensor or None): takes the result.

    Shape: that of the input.

    Formula: y = x / max(norm(x), eps)

    Example:
        >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))
        tensor([[0.6000, 0.8000]])
    """
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else torch.div(input, norm, out=out)
