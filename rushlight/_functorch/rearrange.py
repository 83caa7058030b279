"""``rearrange``: transpose, split and merge dimensions by a pattern of names."""

import re
from math import prod

import rushlight
from rushlight._command.names import show_from

__all__ = ["rearrange"]

_TOKEN = re.compile(r"\.\.\.|\(|\)|[A-Za-z][A-Za-z0-9_]*|\d+|\S")


def _parse(side, pattern):
    """One side of a pattern as a list of groups: lists of names, and the text "..." outside parentheses."""
    groups, group = [], None
    for token in _TOKEN.findall(side):
        if token == "(":
            if group is not None:
                raise ValueError(f"Nested parentheses in pattern {pattern!r}")
            group = []
        elif token == ")":
            if group is None:
                raise ValueError(f"Unbalanced parentheses in pattern {pattern!r}")
            groups.append(group)
            group = None
        elif token == "..." or token.isidentifier() or token == "1":
            alone = token if token == "..." else [token]
            (groups if group is None else group).append(alone if group is None else token)
        else:
            raise ValueError(f"Invalid character or anonymous axis {token!r} in pattern {pattern!r}")
    if group is not None:
        raise ValueError(f"Unbalanced parentheses in pattern {pattern!r}")
    return groups


def _names(groups):
    return [name for group in groups for name in group if name != "1"]


def _expand(groups, extra):
    """``...`` replaced by as many names as the tensor has dimensions left."""
    dots = [f"...{i}" for i in range(extra)]
    expanded = []
    for group in groups:
        if group == "...":
            expanded += [[d] for d in dots]
        else:
            expanded.append([n for name in group for n in (dots if name == "..." else [name])])
    return expanded


def _split_sizes(group, size, lengths, pattern):
    """The sizes of the axes of one dimension; one of them may be inferred."""
    names = [n for n in group if n != "1"]
    unknown = [n for n in names if n not in lengths]
    known = prod(lengths[n] for n in names if n in lengths)
    if len(unknown) > 1:
        raise ValueError(f"Could not infer sizes for {unknown} in pattern {pattern!r}")
    if unknown:
        if known == 0 or size % known:
            raise ValueError(f"Shape mismatch, can't divide axis of length {size} in chunks of {known}")
        lengths[unknown[0]] = size // known
    elif known != size:
        raise ValueError(f"Shape mismatch, {known} != {size} for {group} in pattern {pattern!r}")


def rearrange(tensor, pattern, **axes_lengths):
    """Rearranges the dimensions of a tensor by a pattern (Rogozhnikov 2022).

    Args:
        tensor (Tensor or sequence of Tensor): several are stacked first.
        pattern (str): 'before -> after'; names in parentheses share a dimension, '...' stands for any number.
        axes_lengths (int): sizes of names that cannot be told from the tensor.

    Raises: ValueError where the pattern does not fit.

    Example:
        >>> torch.func.rearrange(torch.ones(2, 3, 4), "b h c -> b (h c)").shape
        torch.Size([2, 12])
    """
    if not isinstance(tensor, rushlight.Tensor):
        tensor = rushlight.stack(tuple(tensor))
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain exactly one '->' separator")
    left, right = (_parse(side, pattern) for side in pattern.split("->"))
    if any("..." in group for group in left if group != "..."):
        raise ValueError(f"An ellipsis in parentheses cannot be taken apart: {pattern!r}")
    extra = tensor.dim() - sum(group != "..." for group in left)
    if (extra and "..." not in left) or extra < 0:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) and tensor ({tensor.dim()}) must match"
        )
    left, right = _expand(left, extra), _expand(right, extra)
    names, wanted = _names(left), _names(right)
    if len(set(names)) != len(names) or len(set(wanted)) != len(wanted):
        raise ValueError(f"Duplicate axis names in pattern {pattern!r}")
    if set(names) != set(wanted):
        raise ValueError(f"Identifiers only on one side of the pattern: {sorted(set(names) ^ set(wanted))}")
    lengths = dict(axes_lengths)
    if unknown := set(lengths) - set(names):
        raise ValueError(f"Axes {sorted(unknown)} are not in the pattern")
    for group, size in zip(left, tensor.shape):
        _split_sizes(group, size, lengths, pattern)
    split = tensor.reshape([lengths[n] for n in names])
    ordered = split.permute([names.index(n) for n in wanted])
    return ordered.reshape([prod(lengths[n] for n in group if n != "1") for group in right])


show_from("func", rearrange)
