"""Overloads for a number: what a record takes in its last operand, PyTorch names `Scalar` beside `Tensor`."""

# What PyTorch calls by the overload for tensors, with numbers in their place.
TAKES_NUMBERS = frozenset("add sub mul div divide multiply subtract true_divide floor_divide".split())
# Overloads in which numbers stand for tensors, by the numbers' positions, where PyTorch has other names.
_NAMES: dict[str, dict[tuple[int, ...], str]] = {
    **dict.fromkeys(("pow", "float_power"), {(1,): "Tensor_Scalar", (0,): "Scalar"}),
    **dict.fromkeys(("pow_", "float_power_"), {(1,): "Scalar"}),
    "where": {(1,): "ScalarSelf", (2,): "ScalarOther", (1, 2): "Scalar"},
    "xlogy": {(1,): "Scalar_Other", (0,): "Scalar_Self"},
    **dict.fromkeys(
        ("bitwise_left_shift", "bitwise_right_shift"), {(1,): "Tensor_Scalar", (0,): "Scalar_Tensor"}
    ),
    "index_fill": {(3,): "int_Scalar"},
}


def number_overload(name, positions):
    """PyTorch's name of the overload of an operator with numbers at these positions."""
    names = _NAMES.get(name) or _NAMES.get(name.removesuffix("_"), {})
    return names.get(positions, "Scalar_Tensor" if positions == (0,) else "Scalar")


def with_number(record):
    """The record under its name for numbers, or None where it takes no number in its last operand."""
    traits = record["traits"]
    if (
        record["space"]
        or record["overload"] not in ("Tensor", "Tensor_Tensor")
        or traits.numbers == "none"
        or not traits.elementwise
    ):
        return None
    if record["with_number"] is None:
        return None
    schema, place = record["with_number"]
    overload, inplace = (number_overload(record["name"] + end, (place,)) for end in ("", "_"))
    return {**record, "overload": overload, "inplace_overload": inplace, "schema": schema}
