"""Operators of `aten` between packed values and padded batches, which recommenders call by name."""

import rushlight as torch

_library = torch.library.Library("aten", "FRAGMENT")


def _cuts(name, offsets):
    """Where the components start, and their lengths."""
    if len(offsets) != 1:
        raise RuntimeError(f"{name}(): only a single jagged dim is supported, got {len(offsets)}")
    if offsets[0].dim() != 1:
        raise RuntimeError(f"{name}(): expected 1D offsets, but got offsets.dim() == {offsets[0].dim()}")
    return offsets[0][:-1], offsets[0].diff()


def _padded(values, offsets, max_lengths, padding_value=0.0):
    """The components below each other, cut at `max_lengths` and padded up to it."""
    starts, lengths = _cuts("_jagged_to_padded_dense_forward", offsets)
    if len(max_lengths) != 1:
        raise RuntimeError("_jagged_to_padded_dense_forward(): only a single jagged dim is supported")
    if values.shape[0] == 0:
        return values.new_full((starts.shape[0], max_lengths[0], *values.shape[1:]), padding_value)
    steps = torch.arange(max_lengths[0], device=values.device)
    places = (starts[:, None] + steps).clamp(max=values.shape[0] - 1)
    outside = (steps >= lengths[:, None]).reshape(*places.shape, *[1] * (values.dim() - 1))
    return values[places].masked_fill(outside, padding_value)


def _packed(dense, offsets, total_L=None):
    """The components that a padded batch holds, one after the other."""
    name = "_padded_dense_to_jagged_forward"
    starts, lengths = _cuts(name, offsets)
    if dense.dim() < 2:
        raise RuntimeError(f"{name}(): expected padded dim >= 2, but padded.dim() == {dense.dim()}")
    total = int(offsets[0][-1])
    if total_L is not None and total != total_L:
        raise RuntimeError(
            f"{name}(): final offset should match total_L value, but got {total} and {total_L}"
        )
    longest = int(lengths.max()) if lengths.numel() else 0
    if longest > dense.shape[1]:
        raise RuntimeError(
            f"{name}(): found batch item of length {longest} when max length specified by the padded input "
            f"is {dense.shape[1]}"
        )
    component = torch.repeat_interleave(torch.arange(lengths.shape[0], device=dense.device), lengths)
    return dense[component, torch.arange(total, device=dense.device) - starts[component]]


_library.define(
    "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, "
    "float padding_value=0.0) -> Tensor"
)
_library.impl("_jagged_to_padded_dense_forward", _padded, "CompositeImplicitAutograd")
_library.define(
    "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor"
)
_library.impl("_padded_dense_to_jagged_forward", _packed, "CompositeImplicitAutograd")
