"""Decompositions that packages register for the compiler.

An operator of `torch.library` runs its own implementation in compiled programs, and a composite one is
captured as
what it calls. So nothing here is needed to compile; the table is for programs that look a decomposition up.
"""

__all__ = ["decompositions", "register_decomposition"]

decompositions: dict = {}


def register_decomposition(ops):
    """Note a function as what one operator, or each of several, can be taken apart into."""

    def note(fn):
        for op in ops if isinstance(ops, (list, tuple)) else [ops]:
            overloads = [getattr(op, name) for name in op.overloads()] if hasattr(op, "overloads") else [op]
            for overload in overloads:
                if overload in decompositions:
                    raise RuntimeError(f"{overload} has a decomposition already: {decompositions[overload]}")
                decompositions[overload] = fn
        return fn

    return note
