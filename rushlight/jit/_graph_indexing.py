"""Tensors by their places in graphs: `x[1, 2:]` is `select` and `slice`, `x[mask]` is `index`, and what is
written to them `copy_` and `index_put_`."""

import ast

__all__ = ["added_to", "is_tensor", "read", "written"]


def is_tensor(value):
    return value._type == "Tensor"


def read(low, base, parts, line):
    """What stands at these places of a tensor."""
    view, indices = _taken(low, base, parts, line)
    return low.emit("aten::index", [view, indices], line=line) if indices is not None else view


def written(low, base, parts, value, line):
    """Write a value to these places of a tensor."""
    view, indices = _taken(low, base, parts, line)
    no = low.literal(False)
    if not is_tensor(value):
        like = base if indices is not None else view
        kind = low.emit("prim::dtype", [like], "int", line=line)
        device = low.emit("prim::device", [like], "Device", line=line)
        value = low.emit("aten::tensor", [value, kind, device, no], line=line)
    if indices is None:
        low.emit("aten::copy_", [view, value, no], line=line)
    else:
        low.emit("aten::index_put_", [view, indices, value, no], line=line)


def added_to(low, base, parts, change, line):
    """Change what stands at these places of a tensor: in place where it is a view."""
    view, indices = _taken(low, base, parts, line)
    if indices is None:
        change(view, True)
        return
    made = change(low.emit("aten::index", [view, indices], line=line), False)
    low.emit("aten::index_put_", [view, indices, made, low.literal(False)], line=line)


def _taken(low, base, parts, line):
    """The view that numbers and slices take of a tensor, and the list of tensors that index it, or None."""
    dim, tensors = 0, []
    for number, part in enumerate(parts):
        if isinstance(part, ast.Constant) and part.value is ...:
            dim = -sum(not _is(p, None) for p in parts[number + 1 :])
            continue
        if _is(part, None):
            at = dim if dim >= 0 else dim - 1
            base = low.emit("aten::unsqueeze", [base, low.literal(at)], line=line)
            tensors.append(None)
            dim += dim >= 0
            continue
        if isinstance(part, ast.Slice):
            at, ends = low.literal(dim), [low.expression(p or _NONE) for p in (part.lower, part.upper)]
            step = low.expression(part.step) if part.step is not None else low.literal(1)
            base = low.emit("aten::slice", [base, at, *ends, step], line=line)
            tensors.append(None)
            dim += 1
            continue
        index = low.expression(part)
        if index._type.endswith("[]"):
            index = low.emit("aten::tensor", [index], line=line)
        if is_tensor(index):
            tensors.append(index)
            dim += 1
        else:
            base = low.emit("aten::select", [base, low.literal(dim), index], line=line)
            dim += dim < 0
    while tensors and tensors[-1] is None:
        tensors.pop()
    tensors = [value if value is not None else low.literal(None) for value in tensors]
    if not tensors:
        return base, None
    listed = low.emit("prim::ListConstruct", tensors, "Tensor?[]")
    listed._annotation = "List[Optional[Tensor]]"
    return base, listed


_NONE = ast.Constant(value=None)


def _is(part, value):
    return isinstance(part, ast.Constant) and part.value is value
