"""Batches as micro-batches, and back."""

from __future__ import annotations

from rushlight import Tensor, cat, tensor_split
from rushlight.utils._pytree import tree_flatten, tree_unflatten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Along which dimension a tensor is cut."""

    def __init__(self, split_dim: int) -> None:
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"


class _Replicate:
    """Every micro-batch gets the value as it is."""


def _chunks(value, spec, count):
    leaves, shape = tree_flatten(value)
    specs = [spec] * len(leaves)
    if spec is not None and not isinstance(spec, TensorChunkSpec) and spec is not _Replicate:
        specs = tree_flatten(spec)[0]
    columns = []
    for leaf, own in zip(leaves, specs):
        if not isinstance(leaf, Tensor) or own is _Replicate:
            columns.append([leaf] * count)
            continue
        dim = 0 if own is None else own.split_dim
        if leaf.dim() == 0 or leaf.shape[dim] < count:
            raise ValueError(
                f"a tensor of shape {list(leaf.shape)} cannot be cut into {count} micro-batches along "
                f"dimension {dim}"
            )
        columns.append(list(tensor_split(leaf, count, dim)))
    return [tree_unflatten([column[i] for column in columns], shape) for i in range(count)]


def split_args_kwargs_into_chunks(args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None):
    """(the micro-batches' arguments, their keyword arguments): tensors cut along their first dimension."""
    kwargs = kwargs or {}
    split_args = [[] for _ in range(chunks)]
    for i, value in enumerate(args):
        for part, piece in zip(
            split_args, _chunks(value, args_chunk_spec[i] if args_chunk_spec else None, chunks)
        ):
            part.append(piece)
    split_kwargs: list = [{} for _ in range(chunks)]
    for key, value in kwargs.items():
        spec = kwargs_chunk_spec.get(key) if kwargs_chunk_spec else None
        for named, piece in zip(split_kwargs, _chunks(value, spec, chunks)):
            named[key] = piece
    return [tuple(part) for part in split_args], split_kwargs


def merge_chunks(chunks: Any, chunk_spec: Any = None):
    """The micro-batches' results as one: tensors joined along their first dimension."""
    flat = [tree_flatten(chunk)[0] for chunk in chunks]
    shape = tree_flatten(chunks[0])[1]
    specs = tree_flatten(chunk_spec)[0] if chunk_spec is not None else [None] * len(flat[0])
    merged = []
    for pieces, spec in zip(zip(*flat), specs):
        joins = isinstance(pieces[0], Tensor) and pieces[0].dim() > 0
        dim = spec.split_dim if isinstance(spec, TensorChunkSpec) else 0
        merged.append(cat(pieces, dim) if joins else pieces[0])
    return tree_unflatten(merged, shape)
