"""Overloads for a number: what a record takes in its last operand, PyTorch names `Scalar` beside `Tensor`."""


def with_number(record):
    """The record under its name `Scalar`, or None where it takes no number in its last operand."""
    traits = record["traits"]
    if (
        record["space"]
        or record["overload"] != "Tensor"
        or traits.numbers == "none"
        or not traits.elementwise
    ):
        return None
    before, operand, after = record["schema"].rpartition(", Tensor ")
    return {**record, "overload": "Scalar", "schema": f"{before}, Scalar {after}"} if operand else None
