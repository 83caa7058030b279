"""Passes of one rule each."""

from rushlight.jit._graph_constants import _blocks, _constant
from rushlight.jit._graph_edits import own
from rushlight.jit._graph_types import TensorType

__all__ = [
    "_jit_pass_decompose_ops",
    "_jit_pass_erase_number_types",
    "_jit_pass_refine_tuple_types",
    "_jit_pass_remove_dropout",
]


def _nodes(graph, *kinds):
    own(graph)
    return [node for block in list(_blocks(graph)) for node in list(block._nodes) if node._kind in kinds]


def _jit_pass_remove_dropout(module):
    """Take dropouts out of a module that is in evaluation mode."""
    if module.training:
        raise RuntimeError("Dropout removal module in training mode is not yet supported")
    graph = module._get_method("forward").graph
    for node in _nodes(graph, *_DROPOUTS):
        if len(node._inputs) > 2 and _constant(node._inputs[2]) == (False,):
            node._outputs[0].replaceAllUsesWith(node._inputs[0])
            node.destroy()


_DROPOUTS = tuple(
    f"aten::{name}{end}"
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for end in ("", "_")
)


def _jit_pass_decompose_ops(graph):
    """Put `mm` and `add` in place of `addmm` whose factors are 1."""
    for node in _nodes(graph, "aten::addmm"):
        if any(_constant(factor) not in ((1,), (1.0,)) for factor in node._inputs[3:]):
            continue
        with graph.insert_point_guard(node):
            product = graph.insertNode(graph.create("aten::mm", node._inputs[1:3]))
            one = graph.insertConstant(1)
            total = graph.insertNode(graph.create("aten::add", [node._inputs[0], *product._outputs, one]))
        product._line = total._line = node._line
        node.replaceAllUsesWith(total)
        node.destroy()


def _jit_pass_erase_number_types(graph):
    """Let constant numbers be tensors, as they are in graphs for ONNX."""
    import rushlight

    for block in _blocks(graph):
        for value in block._inputs:
            _erase(value)
        for node in block._nodes:
            value = node._attributes.get("value")
            if node._kind == "prim::Constant" and type(value) in (bool, int, float):
                node._attributes["value"] = rushlight.tensor(value)
            for result in node._outputs:
                _erase(result)


def _erase(value):
    if value._type in ("int", "float", "bool", "Scalar"):
        value._type = value._annotation = "Tensor"


def _jit_pass_refine_tuple_types(graph):
    """Say of a tuple what is known of the tensors that it is made of."""
    for node in _nodes(graph, "prim::TupleConstruct"):
        parts = [value._complete or value._type for value in node._inputs]
        if any(isinstance(part, TensorType) for part in parts):
            node._outputs[0]._type = f"({', '.join(map(str, parts))})"
