"""What may be said about an operator besides its schema."""

import enum

from rushlight._command.names import show_from

__all__ = ["Tag"]


class Tag(enum.Enum):
    """A property of operators, for the ``tags`` of `torch.library.custom_op`."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


def tags_of(op):
    """The tags of a built-in operator."""
    traits, schema = op.traits, op._schema
    writes_first = bool(schema.arguments) and schema.arguments[0].is_write and op._opname.endswith("_")
    held = {
        Tag.pointwise: traits.elementwise,
        Tag.nondeterministic_seeded: traits.random,
        Tag.dynamic_output_shape: traits.data_dependent_shape,
        Tag.data_dependent_output: traits.reads_values,
        Tag.inplace: writes_first,
        Tag.inplace_view: writes_first and traits.family == "view",
        Tag.out: bool(schema.arguments) and schema.arguments[-1].is_out,
        Tag.pt2_compliant_tag: True,
    }
    return [tag for tag, holds in held.items() if holds]


show_from("", Tag)
