"""A model's modules as a tree, with the shapes of their results."""

from rushlight.utils.summary import summary
from rushlight.viz._picture import Box, Picture

__all__ = ["modules"]


def _box(path, row):
    texts = [f"{path.rpartition('.')[2]}: {row.kind}" if path else row.kind]
    if row.outputs:
        texts.append(", ".join(str(list(shape)) for shape in row.outputs))
    if row.parameters:
        texts.append(f"{row.parameters:,} parameters")
    return Box(["   ".join(texts)], "leaf" if row.parameters else "node")


def _parent(path, boxes):
    while path:
        path = path.rpartition(".")[0]
        if path in boxes:
            return path
    return None


def modules(model, *args, **kwargs):
    """Runs the model on an example and draws its modules, each below the one that holds it.

    Args:
        model: a module.
        args: what to call it with, in order.
        kwargs: or by name.

    Returns:
        A `Picture`; modules that were called several times show their last result.

    Raises:
        TypeError: positional and keyword arguments at once.
    """
    if args and kwargs:
        raise TypeError("modules: give positional or keyword arguments, not both")
    rows = summary(model, input_data=kwargs or args).rows
    boxes = {path: _box(path, row) for row in rows for path in [row.path if row.depth else ""]}
    arrows = [(_parent(path, boxes), path) for path in boxes if path]
    return Picture(boxes, arrows, type(model).__name__, tree=True)
