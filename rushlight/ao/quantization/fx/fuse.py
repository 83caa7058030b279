"""Layers of a graph put together into fused ones."""

from rushlight import nn
from rushlight.fx import GraphModule

from ..backend_config.native import get_native_backend_config
from ..fuser_method_mappings import get_fuser_method_new
from ..utils import _parent_name
from ._patterns import _length, matches_pattern

__all__ = ["fuse"]


def fuse(model, is_qat, fuse_custom_config=None, backend_config=None):
    """The graph with one node for each pattern that the engine fuses; the longest holds."""
    backend = get_native_backend_config() if backend_config is None else backend_config
    methods = {
        pattern: config.fuser_method
        for pattern, config in backend._pattern_complex_format_to_config.items()
        if config.fuser_method is not None
    }
    table = sorted(methods, key=lambda pattern: -_length(pattern))
    modules = dict(model.named_modules(remove_duplicate=False))
    done = set()
    for node in list(reversed(model.graph.nodes)):
        if node in done:
            continue
        for pattern in table:
            nodes = matches_pattern(node, pattern, modules)
            if nodes is None or any(one in done for one in nodes):
                continue
            if _fuse_one(model, nodes, pattern, methods, is_qat, modules):
                done.update(nodes)
                break
    model.graph.lint()
    return GraphModule(model, model.graph)


def _fuse_one(model, nodes, pattern, methods, is_qat, modules):
    """One pattern: its first layer becomes the fused one, the other nodes go."""
    # A function stands for its layer: only ReLU is one.
    layers = [modules[str(one.target)] if one.op == "call_module" else nn.ReLU() for one in nodes]
    if any(layer.training != layers[0].training for layer in layers):
        for one, layer in zip(nodes, layers):
            if one.op != "call_module":
                layer.train(layers[0].training)
    if not is_qat and layers[0].training and any("BatchNorm" in type(layer).__name__ for layer in layers):
        return False
    fused = get_fuser_method_new(pattern, methods)(is_qat, *layers)
    root, last = nodes[0], nodes[-1]
    parent, name = _parent_name(str(root.target))
    setattr(model.get_submodule(parent) if parent else model, name, fused)
    modules[str(root.target)] = fused
    last.replace_all_uses_with(root)
    for one in reversed(nodes[1:]):
        model.graph.erase_node(one)
    return True
