"""Distances between pairs of vectors."""

from rushlight import Tensor
from rushlight.nn import functional as F

from .module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


class PairwiseDistance(Module):
    """The p-norm of the difference along the last dimension.

    Args:
        p (float): of the norm.
        eps (float): added to differences.
        keepdim (bool): whether the last dimension stays, of size 1.

    Shape: two inputs (batch, size) give (batch).

    Formula: y = (sum of |x1 - x2 + eps|**p)**(1 / p)

    Example:
        >>> torch.nn.PairwiseDistance()(torch.tensor([[3.0, 0.0]]), torch.tensor([[0.0, 4.0]]))
        tensor([5.])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between two inputs along a dimension.

    Args:
        dim (int): the dimension.
        eps (float): the least product of norms.

    Shape: two inputs that broadcast; the dimension goes.

    Formula: y = x1 . x2 / max(|x1| * |x2|, eps)

    Example:
        >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))
        tensor([0.7071])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim=1, eps=1e-8):
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
