"""Which nodes a back end can take: objects that answer for each node, alone or combined."""

import abc

import rushlight as torch
from rushlight.fx.passes.shape_prop import TensorMetadata

from .tools_common import get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]


class OperatorSupportBase(abc.ABC):
    """Override `is_node_supported`."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Whether the back end can take the node; `submodules` are the module's by name."""
        raise NotImplementedError


class OperatorSupport(OperatorSupportBase):
    """By a table: target's name -> dtypes of the arguments and of keyword arguments, or None for all."""

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        if node.op not in ("call_module", "call_function", "call_method"):
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        positional, keyword = dtypes
        return all(
            not isinstance(arg, torch.fx.Node) or not allowed or _get_arg_dtype(arg) in allowed
            for arg, allowed in [
                *zip(node.args, positional),
                *((node.kwargs[name], allowed) for name, allowed in keyword.items() if name in node.kwargs),
            ]
        )


def _get_arg_dtype(arg):
    meta = arg.meta.get("tensor_meta")
    return meta.dtype if isinstance(meta, TensorMetadata) else arg.meta["type"]


def create_op_support(is_node_supported):
    """From a function ``f(submodules, node)``."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules, node):
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support):
    """What all of them support."""
    return create_op_support(
        lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support)
    )


def any_chain(*op_support):
    """What some of them supports."""
    return create_op_support(
        lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support)
    )


class OpSupports:
    """Ready-made answers."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """All but nodes with an argument of this dtype."""
        return create_op_support(
            lambda modules, node: all(_get_arg_dtype(arg) != dtype for arg in node.all_input_nodes)
        )

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """All but nodes with these names."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)
