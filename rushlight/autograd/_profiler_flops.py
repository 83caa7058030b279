"""Floating-point operations of the operators that do most of the arithmetic, from their shapes."""

from math import prod

__all__ = ["count_flops"]


def _matrix_product(inputs, outputs, first=0):
    return 2 * prod(outputs[0]) * inputs[first][-1]


def _added_product(inputs, outputs):
    return _matrix_product(inputs, outputs, 1)


def _convolution(inputs, outputs):
    """Every result takes one multiply-add for each weight of its channel."""
    return 2 * prod(outputs[0]) * prod(inputs[1][1:])


def _transposed_convolution(inputs, outputs):
    return 2 * prod(inputs[0]) * prod(inputs[1][1:])


def _attention(inputs, outputs):
    query, key, value = inputs[:3]
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _elementwise(inputs, outputs):
    return prod(outputs[0])


_RULES = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "linear", "matmul"), _matrix_product),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), _added_product),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution"), _convolution),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _transposed_convolution),
    "scaled_dot_product_attention": _attention,
    **dict.fromkeys(("add", "add_", "mul", "mul_", "sub", "sub_", "div", "div_"), _elementwise),
}


def count_flops(name, inputs, outputs):
    """None for operators without a rule."""
    rule = _RULES.get(name.removeprefix("aten::"))
    if rule is None or not outputs:
        return None
    try:
        return rule(inputs, outputs)
    except (IndexError, TypeError):  # operands of other ranks than the rule knows
        return None
