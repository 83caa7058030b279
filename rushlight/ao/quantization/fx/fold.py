"""Weights of functions are packed once, when a graph is made; they stand in its state."""

import rushlight
from rushlight._quantized.packed import ScriptObject
from rushlight.fx import GraphModule

from .utils import collect_producer_nodes, get_new_attr_name_with_prefix, graph_module_from_producer_nodes

__all__ = ["fold_weights"]

_q = rushlight.ops.quantized
_PREPACK = {
    *(_q.linear_prepack, _q.linear_prepack_fp16),
    *(getattr(_q, f"conv{kind}{n}d_prepack") for kind in ("", "_transpose") for n in (1, 2, 3)),
}


def _save_packed(module, destination, prefix, local_metadata):
    for name, value in list(module.__dict__.items()):
        if "_packed_weight" in name and isinstance(value, ScriptObject):
            destination[prefix + name] = value


def _load_packed(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
    for name in list(state_dict):
        if name.startswith("_packed_weight") and isinstance(state_dict[name], ScriptObject):
            setattr(module, name, state_dict.pop(name))


def fold_weights(model, scope_of, keep_original_weights=False):
    """The graph with packed weights as attributes in place of the steps that pack them."""
    graph, originals = model.graph, {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in _PREPACK:
            continue
        producers = collect_producer_nodes(node)
        if producers is None:
            continue
        packing = graph_module_from_producer_nodes(model, producers)
        path = scope_of.get(next(iter(node.users)).name, ("", None))[0]
        name = get_new_attr_name_with_prefix(path + "_packed_weight_")(model)
        setattr(model, name, packing())
        if keep_original_weights:
            kept = sorted(packing.state_dict().values(), key=lambda t: t.numel(), reverse=True)
            originals[name.lower()] = kept if len(kept) > 1 else [*kept, None]
        with graph.inserting_before(node):
            node.replace_all_uses_with(graph.create_node("get_attr", name))
        graph.erase_node(node)
    graph.eliminate_dead_code()
    made = GraphModule(model, graph)
    made._register_state_dict_hook(_save_packed)
    made.register_load_state_dict_pre_hook(_load_packed)
    if keep_original_weights:
        made.original_weights_lookup = originals
    return made
