"""Tables of vectors looked up by index."""

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.parameter import Parameter

from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


def _checked_padding_idx(padding_idx, num_embeddings, name):
    """padding_idx as a row from the front."""
    if padding_idx is None:
        return None
    if not -num_embeddings <= padding_idx < num_embeddings:
        raise AssertionError(f"{name} must be within num_embeddings")
    return padding_idx % num_embeddings


class _Table(Module):
    def _make_weight(self, _weight, trainable, device, dtype):
        if _weight is None:
            weight = torch.empty((self.num_embeddings, self.embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(weight, requires_grad=trainable)
            self.reset_parameters()
            return
        if list(_weight.shape) != [self.num_embeddings, self.embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(_weight, requires_grad=trainable)

    def reset_parameters(self):
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self):
        if self.padding_idx is not None:
            with torch.no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table of num_embeddings vectors; the row padding_idx starts at zero and gets no gradient.

    Args:
        num_embeddings (int): rows of the table.
        embedding_dim (int): size of a row.
        padding_idx (int or None): a row that starts as zeros and gets no gradient.
        max_norm (float or None): rows that are longer are shortened to this, in place, when they are read.
        norm_type (float): which norm that is.
        scale_grad_by_freq (bool): whether a row's gradient is divided by how often the row
            occurs in the batch.
        sparse (bool): whether the gradient is a sparse tensor.
        device, dtype: where and in which dtype the table is made.

    Shape: integers of shape (..) become (.., embedding_dim).

    Formula: y[.., :] = weight[x[..]]

    Raises: IndexError where a number is no row of the table.

    Example:
        >>> torch.nn.Embedding(10, 3)(torch.tensor([1, 2, 1])).shape
        torch.Size([3, 3])
    """

    __constants__ = [
        "num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq",
        "sparse",
    ]  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: "int | None" = None,
        max_norm: "float | None" = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight=None,
        _freeze=False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _checked_padding_idx(padding_idx, num_embeddings, "Padding_idx")
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._make_weight(_weight, not _freeze, device, dtype)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse is not False:
            parts.append("sparse=True")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
    ):
        """An Embedding over the given (num_embeddings, embedding_dim) tensor."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table, which are not laid out one by one.

    Args:
        num_embeddings (int): rows of the table.
        embedding_dim (int): size of a row.
        max_norm (float or None): the norm that rows are cut to when they are used.
        norm_type (float): p of that norm.
        scale_grad_by_freq (bool): whether gradients are divided by how often a row is used.
        mode (str): 'sum', 'mean' or 'max'.
        sparse (bool): whether the table's gradient is sparse.
        include_last_offset (bool): whether offsets have the end as their last element.
        padding_idx (int or None): a row that counts for nothing.
        device, dtype: where and in which dtype the parameters are made.

    Shape: indices (bags, n), or (n) and offsets (bags), become (bags, embedding_dim).

    Formula: y[b] = sum, mean or max of weight[i] over the indices i of bag b

    Raises: ValueError where offsets are given for bags of one length, or missing for one list of indices.

    Example:
        >>> bags = torch.nn.EmbeddingBag(4, 2, mode="sum", _weight=torch.ones(4, 2))
        >>> bags(torch.tensor([0, 1, 3]), torch.tensor([0, 1]))
        tensor([[1., 1.],
                [2., 2.]], grad_fn=<EmbeddingBagBackward0>)
    """

    __constants__ = [
        "num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse",
        "include_last_offset", "padding_idx",
    ]  # fmt: skip

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        _weight=None,
        include_last_offset=False,
        padding_idx=None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _checked_padding_idx(padding_idx, num_embeddings, "padding_idx")
        self._make_weight(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self):
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls,
        embeddings,
        freeze=True,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        mode="mean",
        sparse=False,
        include_last_offset=False,
        padding_idx=None,
    ):
        """An EmbeddingBag over the given (num_embeddings, embedding_dim) tensor."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        bag = cls(
            num_embeddings=rows,
            embedding_dim=columns,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
