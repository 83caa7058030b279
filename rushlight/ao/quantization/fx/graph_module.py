"""Graphs between the steps; what a step must know of the one before stands in their ``meta``."""

import copy
from dataclasses import dataclass

from rushlight.fx import GraphModule

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule"]

_KEY = "_observed_graph_module_attrs"


@dataclass
class ObservedGraphModuleAttrs:
    """What converting needs to know of preparing."""

    node_name_to_qconfig: dict
    node_name_to_scope: dict
    prepare_custom_config: object
    equalization_node_name_to_qconfig: dict
    qconfig_mapping: object
    is_qat: bool
    observed_node_names: set
    is_observed_standalone_module: bool = False
    standalone_module_input_quantized_idxs: object = None
    standalone_module_output_quantized_idxs: object = None


class _Keeping(GraphModule):
    """A graph that keeps attributes of the model that it was made from, through copies too."""

    def __init__(self, root, graph, preserved_attr_names):
        self.preserved_attr_names = set(preserved_attr_names)
        kept = {name: getattr(root, name) for name in self.preserved_attr_names if hasattr(root, name)}
        super().__init__(root, graph)
        for name, value in kept.items():
            setattr(self, name, value)

    def __deepcopy__(self, memo):
        from rushlight.nn import Module

        bare = Module()
        bare.__dict__ = copy.deepcopy(self.__dict__, memo)
        return type(self)(bare, copy.deepcopy(self.graph), copy.deepcopy(self.preserved_attr_names))


class FusedGraphModule(_Keeping):
    """After fusing."""


class ObservedGraphModule(GraphModule):
    """After preparing: with observers."""

    def __init__(self, root, graph, preserved_attr_names=frozenset()):
        kept = {name: getattr(root, name) for name in preserved_attr_names if hasattr(root, name)}
        super().__init__(root, graph)
        for name, value in kept.items():
            setattr(self, name, value)


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """After preparing, a part that was traced apart."""


def _is_observed_module(module):
    return hasattr(module, "meta") and _KEY in module.meta


def _get_observed_graph_module_attr(model, attr_name):
    return getattr(model.meta[_KEY], attr_name) if _is_observed_module(model) else None


def _is_observed_standalone_module(module):
    return _is_observed_module(module) and module.meta[_KEY].is_observed_standalone_module


def _save_observed_module(module):
    """A copy of an observed graph."""
    return copy.deepcopy(module)
