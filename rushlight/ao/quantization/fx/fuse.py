"""Layers of a graph put together into fused ones."""

from collections import Counter

from rushlight import nn
from rushlight.fx import GraphModule, Node
from rushlight.nn import functional as F

from ..backend_config.native import get_native_backend_config
from ..fuser_method_mappings import get_fuser_method_new
from ..utils import MatchAllNode, _parent_name
from .match_utils import _matches

__all__ = ["fuse"]

# Functions that layers stand for.
_LAYERS = {F.relu: nn.ReLU}


def fuse(model, is_qat, fuse_custom_config=None, backend_config=None):
    """The graph with one node for each pattern that the engine fuses; the longest holds."""
    backend = get_native_backend_config() if backend_config is None else backend_config
    methods = {
        pattern: config.fuser_method
        for pattern, config in backend._pattern_complex_format_to_config.items()
        if config.fuser_method is not None
    }
    modules = dict(model.named_modules(remove_duplicate=False))
    fusing = []

    def take(match):
        if match.pattern not in methods or not _fusible(match, is_qat, modules):
            return False
        fusing.append(match)
        return True

    _matches(model, backend, take)
    uses = Counter(node.target for node in model.graph.nodes if node.op == "call_module")
    fused = Counter((match.root.target, match.pattern) for match in fusing)
    made: dict = {}
    for match in fusing:
        # A layer that is also called alone, or before something else, stays what it is.
        if fused[match.root.target, match.pattern] == uses[match.root.target]:
            _fuse_one(model, match, get_fuser_method_new(match.pattern, methods), is_qat, modules, made)
    model.graph.lint()
    return GraphModule(model, model.graph)


def _layers(match, modules):
    return [modules[str(node.target)] for node in match.nodes if node.op == "call_module"]


def _fusible(match, is_qat, modules):
    """Normalisation that computes its statistics is not folded."""
    layers = _layers(match, modules)
    norms = any("BatchNorm" in type(layer).__name__ for layer in layers)
    return is_qat or not (layers and layers[0].training and norms)


def _parts(pattern, nodes, modules, training):
    """What a fuser method is given: layers, functions, and ``MatchAllNode``, in the pattern's form."""
    if isinstance(pattern, tuple):
        return tuple(_parts(part, inner, modules, training) for part, inner in zip(pattern, nodes))
    if pattern is MatchAllNode or not isinstance(nodes, Node):
        return MatchAllNode if pattern is MatchAllNode else nodes
    if nodes.op == "call_module":
        return modules[str(nodes.target)]
    return _LAYERS[nodes.target]().train(training) if nodes.target in _LAYERS else nodes.target


def _fuse_one(model, match, method, is_qat, modules, made):
    """One pattern: its root becomes the fused layer, where the last node was; the other nodes go."""
    root, last, path = match.root, match.last, str(match.root.target)
    if path not in made:  # by another call of the same layers
        parts = _parts(match.pattern, match.nested, modules, modules[path].training)
        if match.config._pattern_complex_format is None:
            parts = tuple(reversed(_flat(parts)))
        made[path] = method(is_qat, *parts)
        parent, name = _parent_name(path)
        setattr(model.get_submodule(parent) if parent else model, name, made[path])
    root.args = (*root.args, *match.extra_inputs)
    if last is not root:
        last.prepend(root)
        last.replace_all_uses_with(root)
    for node in reversed(match.nodes):
        if node is not root:
            model.graph.erase_node(node)


def _flat(parts):
    """A chain's parts, the last operator's first."""
    found = []
    while isinstance(parts, tuple):
        found.append(parts[0])
        parts = parts[1]
    return [*found, parts]
