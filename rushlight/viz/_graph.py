"""The graph that autograd recorded behind a tensor."""

import rushlight as torch
from rushlight.utils._pytree import tree_leaves
from rushlight.viz._picture import Box, Picture

__all__ = ["graph"]


def _shape(tensor):
    return f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"


def _saved(node):
    """Texts of the tensors that the node keeps for the backward pass."""
    texts = []
    for name in dir(node):
        if not name.startswith("_saved_"):
            continue
        try:
            value = getattr(node, name)
        except RuntimeError:
            texts.append(f"{name[7:]}: freed")
            continue
        texts += [f"{name[7:]}: {_shape(t)}" for t in tree_leaves(value) if isinstance(t, torch.Tensor)]
    return texts


def _box(node, names, show_saved):
    if hasattr(node, "variable"):
        leaf = node.variable
        return Box([names.get(id(leaf), "leaf"), _shape(leaf)], "leaf")
    saved = _saved(node) if show_saved else []
    return Box([node.name().split("::")[-1].removesuffix("0"), *saved], "saved" if saved else "node")


def graph(outputs, params=None, *, saved=False):
    """Draws the graph behind tensors: leaves above, results below.

    Args:
        outputs: a tensor, or nested lists, tuples and dicts of tensors.
        params: names for leaves: a module, or a dict such as ``dict(model.named_parameters())``.
        saved: also show the tensors that each node keeps for the backward pass.

    Returns:
        A `Picture`.

    Raises:
        ValueError: no output has a graph.
    """
    if isinstance(params, torch.nn.Module):
        params = dict(params.named_parameters())
    names = {id(tensor): name for name, tensor in (params or {}).items()}
    results = [t for t in tree_leaves(outputs) if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    if not results:
        raise ValueError("graph: no output has a graph; compute it from tensors that require gradients")
    boxes, arrows, waiting = {}, [], []
    for i, tensor in enumerate(results):
        boxes["result", i] = Box([names.get(id(tensor), "result"), _shape(tensor)], "result")
        arrows.append((tensor.grad_fn, ("result", i)))
        waiting.append(tensor.grad_fn)
    while waiting:
        node = waiting.pop()
        if node in boxes:
            continue
        boxes[node] = _box(node, names, saved)
        for parent, _ in node.next_functions:
            if parent is not None:
                arrows.append((parent, node))
                waiting.append(parent)
    return Picture(boxes, arrows, "graph")
