"""Norms of vectors and of their differences."""

import rushlight as torch
from rushlight.nn.functional._arguments import need_tensors


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input divided by its p-norm along dim."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / norm if out is None else torch.div(input, norm, out=out)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """The cosine of the angle between x1 and x2 along dim."""
    need_tensors("cosine_similarity", x1=x1, x2=x2)
    if eps < 0:
        raise RuntimeError(f"cosine_similarity: eps must be non-negative, got: {eps}")
    if x1.dtype != x2.dtype or not x1.dtype.is_floating_point:
        dtype = torch.promote_types(x1.dtype, x2.dtype)
        if not dtype.is_floating_point:
            raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {dtype}")
        x1, x2 = x1.to(dtype), x2.to(dtype)
    if x1.shape != x2.shape:
        x1, x2 = torch.broadcast_tensors(x1, x2)
    # Dividing before multiplying keeps the result within [-1, 1].
    n1 = torch.linalg.vector_norm(x1, 2, dim, True).clamp_min(eps)
    n2 = torch.linalg.vector_norm(x2, 2, dim, True).clamp_min(eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps along the last dimension."""
    need_tensors("pairwise_distance", x1=x1, x2=x2)
    return torch.norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(input, p=2):
    """The p-norm distances of all pairs of rows, in the order of the upper triangle."""
    return torch.pdist(input, p)
