"""What a scripted class may do with its attributes: they are made in ``__init__``, once and in any run."""

import ast

__all__ = ["check_attributes", "check_bases", "no_context"]

_BRANCHES = (ast.If, ast.For, ast.While, ast.With, ast.Try)


def check_bases(cls):
    """Refuse a class with a base of the program's."""
    if any(base is not object for base in cls.__bases__):
        raise RuntimeError(f"TorchScript does not support inheritance; '{cls.__name__}' has bases.")


def check_attributes(cls, units):
    """Refuse methods that make attributes, or ask for those that nothing makes. ``units``: name -> unit."""
    members = {name for c in cls.__mro__ for name in (*vars(c), *vars(c).get("__annotations__", {}))}
    made = set(members)
    if "__init__" in units:
        unit = units["__init__"]
        _walk(unit, unit.tree.body, _first(unit), made, True)
    for name, unit in units.items():
        if name != "__init__":
            _walk(unit, unit.tree.body, _first(unit), made, False)


def _first(unit):
    arguments = (*unit.tree.args.posonlyargs, *unit.tree.args.args)
    return arguments[0].arg if arguments else None


def _walk(unit, statements, own, made, begins):
    for statement in statements:
        if isinstance(statement, _BRANCHES):
            _walk(unit, [*ast.iter_child_nodes(statement)], own, made, False)
            continue
        used = [n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and _of_own(n, own)]
        for node in (n for n in used if isinstance(n.ctx, ast.Load)):
            if node.attr not in made:
                unit.refuse(f"'{own}' object has no attribute or method '{node.attr}'. Did you forget to "
                            "initialize an attribute in __init__()?", node)  # fmt: skip
        for node in (n for n in used if isinstance(n.ctx, ast.Store)):
            if node.attr in made:
                continue
            if begins:
                made.add(node.attr)
            elif unit.tree.name == "__init__":
                unit.refuse(
                    "First assignment cannot be in a control-flow block. Initialize the field at the top "
                    "level first",
                    statement,
                )
            else:
                unit.refuse(
                    f"Tried to set nonexistent attribute: {node.attr}. Did you forget to initialize it in "
                    "__init__()?",
                    statement,
                )


def _of_own(node, own):
    return isinstance(node.value, ast.Name) and node.value.id == own


def no_context(kind):
    """Why a value of a type cannot stand behind ``with``, or None."""
    from rushlight.jit._scripted_class import record_of

    if kind.kind in ("Tensor", "str", "int", "float", "bool", "List", "Dict"):
        return "With item expression must return an object"
    record = record_of(kind.python) if kind.kind == "Class" else None
    if record is None or record.read_from_file:
        return None
    if not (record.has_method("__enter__") and record.has_method("__exit__")):
        return f"{kind} does not define __enter__ and __exit__ methods"
    enters, exits = record.schema("__enter__"), record.schema("__exit__")
    if enters is not None and enters.arguments:
        return "__enter__ must have only one argument and one return value"
    if exits is None:
        return None
    if len(exits.arguments) != 3:
        return "__exit__ must have four arguments"
    for number, argument in enumerate(exits.arguments, 1):
        if argument.type.kind not in ("Any", "Unknown"):
            return (
                f"argument {number} of __exit__ must have Any type; TorchScript does not support passing "
                "exception type, value, or traceback to the __exit__ function."
            )
    return None
