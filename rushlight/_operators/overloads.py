"""How PyTorch names the overloads of an operator.

Note [Overloads]: a record stands for several overloads of PyTorch: the operator, its form in place, its form
with results that are given, and each of them with a number where it takes a tensor. Most names follow from
the schema's: `all` and `all_`, `all.dims` and `all.dims_out`. The record's traits tell the others. Given
results are named as the results are, or as the trait says: `max.dim_max(max, max_values)`.
"""

__all__ = ["forms_of", "takes_plain_numbers", "of_numbers", "result_names", "with_number"]


def takes_plain_numbers(traits):
    """Whether PyTorch calls the overload for tensors with a number in a tensor's place."""
    return traits.numbers == "all"


def forms_of(record):
    """The names of the overload, of the one in place, of the one with given results."""
    traits = record["traits"]
    own, inplace, out = record.get("overloads", traits.overloads)
    own = record["overload"] if own is None else own
    if out is None:
        plain = not own or (own == "Tensor" and takes_plain_numbers(traits))
        out = "out" if plain else f"{own}_out"
    return own, own if inplace is None else inplace, out.partition("(")[0]


def result_names(record, results):
    """What the overload with given results calls them; `results` are the names in the schema."""
    named = (record.get("overloads", record["traits"].overloads)[2] or "").partition("(")[2]
    if named:
        return tuple(named.rstrip(")").split(", "))
    if len(results) == 1:
        return ("out",)
    return tuple(name or f"out{i}" for i, name in enumerate(results))


def of_numbers(traits, positions):
    """The names of the overload with numbers at these positions: its own, in place, with given results."""
    bits = sum(1 << i for i in positions)
    names = dict(traits.number_overloads).get(bits)
    return names or ("Scalar_Tensor" if positions == (0,) else "Scalar", None, None)


def with_number(record):
    """The record under its names for a number, or None where it takes no number in its last operand."""
    traits = record["traits"]
    if (
        record["space"]
        or record["overload"] not in ("Tensor", "Tensor_Tensor")
        or traits.numbers == "none"
        or not traits.elementwise
        or record["with_number"] is None
    ):
        return None
    schema, place = record["with_number"]
    return {**record, "overloads": of_numbers(traits, (place,)), "schema": schema}
