"""Overloads for a number: what a record takes in its last operand, PyTorch names `Scalar` beside `Tensor`."""

# What PyTorch calls by the overload for tensors, with numbers in their place.
TAKES_NUMBERS = frozenset("add sub mul div divide multiply subtract true_divide floor_divide".split())
_NAMES = {"Tensor": "Scalar", "Tensor_Tensor": "Tensor_Scalar"}


def with_number(record):
    """The record under its name `Scalar`, or None where it takes no number in its last operand."""
    traits = record["traits"]
    if (
        record["space"]
        or record["overload"] not in _NAMES
        or traits.numbers == "none"
        or not traits.elementwise
    ):
        return None
    if record["with_number"] is None:
        return None
    schema, _ = record["with_number"]
    return {**record, "overload": _NAMES[record["overload"]], "schema": schema}
