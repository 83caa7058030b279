"""Joining and splitting dimensions."""

from rushlight import Tensor

from .module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Dimensions from one to another become one.

    Args:
        start_dim (int): the first.
        end_dim (int): the last.

    Shape: (batch, a, b, ..) becomes (batch, a * b * ..).

    Formula: x.flatten(start_dim, end_dim)

    Raises: IndexError where there is no such dimension.

    Example:
        >>> torch.nn.Flatten()(torch.ones(2, 3, 4)).shape
        torch.Size([2, 12])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """A dimension becomes several.

    Args:
        dim (int or str): the dimension.
        unflattened_size (tuple, list or torch.Size): their sizes; one may be -1.

    Shape: (.., a * b, ..) becomes (.., a, b, ..).

    Formula: x.unflatten(dim, unflattened_size)

    Raises: RuntimeError where the sizes do not multiply to the dimension's.

    Example:
        >>> torch.nn.Unflatten(1, (2, 3))(torch.ones(4, 6)).shape
        torch.Size([4, 2, 3])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim, unflattened_size):
        super().__init__()
        self._require_tuple_int(unflattened_size)
        self.dim = dim
        self.unflattened_size = unflattened_size

    def _require_tuple_int(self, input):
        if not isinstance(input, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(input).__name__}"
            )
        for i, item in enumerate(input):
            if not isinstance(item, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(item).__name__} at pos {i}"
                )

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
