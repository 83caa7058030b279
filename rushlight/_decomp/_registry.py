"""The global tables, and what adds to them."""

from rushlight._ops import OpOverload, OpOverloadPacket

decomposition_table: dict = {}
global_decomposition_table: dict = {
    "post_autograd": decomposition_table,
    "pre_autograd": {},
    "meta": {},
}


def _overloads(op):
    """The overloads that one registration is for: those that return a new tensor."""
    if isinstance(op, OpOverload):
        return [op]
    if not isinstance(op, OpOverloadPacket):
        raise TypeError(f"register_decomposition: expected an operator, got {op!r}")
    found = [getattr(op, name) for name in op.overloads()]
    return [overload for overload in found if not overload._schema.is_mutable]


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator: the function takes apart an operator, all overloads of a packet, or each of a list.

    It goes into ``registry``, or into the global table of that type.
    """
    if type not in global_decomposition_table:
        raise ValueError(f"type must be one of {sorted(global_decomposition_table)}, got {type!r}")
    table = global_decomposition_table[type] if registry is None else registry

    def decorate(fn):
        for op in aten_op if isinstance(aten_op, (list, tuple)) else (aten_op,):
            for overload in _overloads(op):
                if overload in table:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                table[overload] = fn
        return fn

    return decorate
