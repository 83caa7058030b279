"""Folds of layers whose weights are constants: what runs of a frozen module need not compute.

A batch normalization that alone takes the result of a convolution becomes part of its weights; dropout, which
does nothing in evaluation, is left out. The graph of each method says what takes which result."""

from __future__ import annotations

import ast

import rushlight
from rushlight import nn
from rushlight._command.names import is_own
from rushlight.jit._graph_frozen import Deciding
from rushlight.jit._graph_nodes import Graph
from rushlight.jit._library import own_module
from rushlight.jit._script import script
from rushlight.nn.modules.batchnorm import _BatchNorm
from rushlight.nn.modules.conv import _ConvNd
from rushlight.nn.modules.dropout import _DropoutNd
from rushlight.nn.utils.fusion import fuse_conv_bn_weights

__all__ = ["fold_layers"]


def fold_layers(module, unwritten, constant, numerics=True):
    """Fold the layers below a module.

    Args:
        unwritten: says of a module and a name whether nothing writes to this attribute.
        constant: says of a module whether all that it has is constant.
        numerics: whether folds may round otherwise.
    """
    uses = _Uses(module, unwritten)
    for (owner, name), node in uses.calls.items():
        layer = owner._modules.get(name)
        if not uses.only_called(layer) or not constant(layer) or not _is_plain(layer):
            continue
        if isinstance(layer, _DropoutNd) and not layer.training:
            owner._modules[name] = script(nn.Identity()).eval()
        elif numerics and isinstance(layer, _BatchNorm):
            before = uses.sole_source(node, layer)
            if before is not None and constant(before) and _is_plain(before) and _fits(before, layer):
                _fold_norm(before, layer)
                owner._modules[name] = script(nn.Identity()).eval()


class _Lowered(Deciding):
    """A method without the branches that no run takes."""

    def __init__(self, graph, unit, module, unwritten):
        super().__init__(graph, unit, module)
        self.unwritten, self.hides = unwritten, False

    def other_expression(self, node):
        self.hides = self.hides or isinstance(node, _HIDDEN)
        return super().other_expression(node)

    def constant(self, owner, name):
        return hasattr(owner, name) and self.unwritten(owner, name), getattr(owner, name, None)


# What graphs do not show.
_HIDDEN = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class _Uses:
    """How the methods below a module use the modules that it holds."""

    def __init__(self, root, unwritten):
        self.calls = {}  # (owner, name) -> the node that calls this part
        self.called, self.otherwise = {}, set()  # module -> its calls; ids of modules used in other ways
        self.modules = {}  # value -> the module that it stands for
        self.leaving, self.unwritten = set(), unwritten
        for module in root.modules():
            units = list(getattr(type(module), "_script_methods", {}).values())
            if not units and isinstance(module, nn.Sequential):
                units = [module._unit()]
            for unit in units:
                self._method(unit, module)
            if not units and not is_own(own_module(getattr(type(module), "_library_base", None)), "nn"):
                self._escapes(module)

    def _method(self, unit, module):
        graph = Graph(unit.tree.name, unit, module)
        lowering = _Lowered(graph, unit, module, self.unwritten)
        lowering.function(unit.tree)
        modules = dict(lowering.modules)
        if graph._inputs and graph._inputs[0].debugName() == "self":
            modules[graph._inputs[0]] = module
        self.modules.update(modules)
        for value, part in modules.items():
            for use in value._uses:
                self._use(use, value, part)
        self._leave(graph)
        if lowering.hides:
            self._escapes(module)

    def _leave(self, block):
        self.leaving.update(block._outputs)
        for value in block._outputs:
            self._escapes(self.modules.get(value))
        for node in block._nodes:
            for inner in node._blocks:
                self._leave(inner)

    def _use(self, use, value, part):
        if use.kind() == "prim::GetAttr" or (use.kind() == "prim::SetAttr" and value is not use._inputs[1]):
            return
        called = use.kind() == "prim::CallMethod" and value not in use._inputs[1:]
        own = value.debugName() == "self" or part._script_methods  # whose method is followed, too
        if called and use["name"] == "forward" and value.node().kind() == "prim::GetAttr":
            self.called.setdefault(part, []).append(use)
            owner = self.modules.get(value.node().input())
            if owner is not None:
                self.calls[owner, value.node()["name"]] = use
        elif not (called and own):
            self._escapes(part)

    def _escapes(self, module):
        if module is not None:
            self.otherwise.update(map(id, module.modules()))

    def only_called(self, layer):
        """Whether a layer is called in one place alone, and nothing reads what it has."""
        return (
            len(self.called.get(layer, ())) == 1
            and id(layer) not in self.otherwise
            and not self._is_read(layer)
        )

    def _is_read(self, layer):
        values = [v for v, m in self.modules.items() if m is layer and v.debugName() != "self"]
        return any(use.kind() == "prim::GetAttr" for v in values for use in v._uses)

    def sole_source(self, node, layer):
        """The convolution whose result this call of a layer alone takes; None where it is another."""
        (value, *more) = node._inputs[1:]
        source = value._node
        if more or source is None or source.kind() != "prim::CallMethod" or source["name"] != "forward":
            return None
        before = self.modules.get(source._inputs[0])
        alone = value._uses == [node] and value not in self.leaving
        return before if alone and isinstance(before, _ConvNd) and self.only_called(before) else None


def _is_plain(layer):
    """Whether a layer is the library's own, without hooks."""
    own = "forward" not in getattr(type(layer), "_script_methods", ())
    return own and not (layer._forward_hooks or layer._forward_pre_hooks)


def _fits(conv, norm):
    sizes = {nn.Conv1d: nn.BatchNorm1d, nn.Conv2d: nn.BatchNorm2d, nn.Conv3d: nn.BatchNorm3d}
    kind = next((n for c, n in sizes.items() if isinstance(conv, c)), None)
    tracked = norm.running_mean is not None and norm.running_var is not None and not norm.training
    if kind is None or not isinstance(norm, kind) or not tracked:
        return False
    return norm.num_features == conv.out_channels and conv.weight.dtype == norm.running_mean.dtype


def _fold_norm(conv, norm):
    with rushlight.no_grad():
        weight, bias = fuse_conv_bn_weights(
            conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        )
    for name, tensor in (("weight", weight), ("bias", bias)):
        conv._parameters.pop(name, None)
        conv.__dict__[name] = tensor.detach()
