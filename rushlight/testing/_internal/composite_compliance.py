"""Which operators write to their operand or share its memory, by their schemas. xformers reads it."""

import rushlight as torch

__all__ = ["is_inplace", "is_inplace_view_fn", "is_view_fn"]


def is_view_fn(func):
    """Whether results of an operator share memory with its operand."""
    return func.is_view


def is_inplace(func):
    """Whether an operator writes to its first operand."""
    return torch.Tag.inplace in func.tags


def is_inplace_view_fn(func):
    """Whether an operator changes the shape or layout of its first operand."""
    return torch.Tag.inplace_view in func.tags
