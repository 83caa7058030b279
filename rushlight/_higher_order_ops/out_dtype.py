"""An operator whose result has a wider type than its operands: nothing is rounded or wraps in between."""

import rushlight

__all__ = ["out_dtype"]

__capture__ = "through"  # Note [Capture marks]


def out_dtype(op, output_dtype, *args):
    """``op`` of these operands, computed in ``output_dtype``.

    >>> bytes = torch.full((2, 300), 100, dtype=torch.int8)
    >>> out_dtype(torch.ops.aten.mm.default, torch.int32, bytes, bytes.t())  # 3000000, not what a byte holds
    """
    if not callable(op) or not hasattr(op, "_schema"):
        raise ValueError("out_dtype's first argument must be an OpOverload")
    if not isinstance(output_dtype, rushlight.dtype):
        raise TypeError(
            f"out_dtype's second argument must be a torch.dtype, got {type(output_dtype).__name__}"
        )
    if op._schema.is_mutable:
        raise ValueError("out_dtype's first argument needs to be a functional operator")
    if [str(r.type) for r in op._schema.returns] != ["Tensor"]:
        raise ValueError(
            "out_dtype's can only apply to ops that return a single tensor, "
            f"instead got {[str(r.type) for r in op._schema.returns]}"
        )
    if op is rushlight.ops.aten.mm.default and output_dtype == rushlight.int32:
        if all(arg.dtype == rushlight.int8 for arg in args):
            return rushlight._int_mm(*args)
    wide = [
        arg.to(output_dtype) if isinstance(arg, rushlight.Tensor) and arg.dtype != output_dtype else arg
        for arg in args
    ]
    return op(*wide).to(output_dtype)  # a number among the operands may have widened it further
