"""Calls in one form: arguments by name, and operators as functions of torch."""

import operator

import rushlight as torch
from rushlight.fx import Proxy, Transformer
from rushlight.fx.node import map_aggregate
from rushlight.fx.operator_schemas import create_type_hint, normalize_function, normalize_module

__all__ = ["NormalizeArgs", "NormalizeOperators"]


class NormalizeArgs(Transformer):
    """Makes a module whose calls pass arguments by name."""

    def __init__(self, module, normalize_to_only_use_kwargs=True):
        super().__init__(module)
        self.node_map = {}
        self.normalize_to_only_use_kwargs = normalize_to_only_use_kwargs

    def run_node(self, n):
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        if n.op == "call_function":
            kinds = map_aggregate(n.args, self._kind), map_aggregate(n.kwargs, self._kind)
            result = self.call_function(n.target, args, kwargs, *kinds)
        else:
            result = super().run_node(n)
        if n.op != "output":
            self.node_map[result] = n
            result.node.meta, result.node.type = n.meta, n.type
        return result

    def _kind(self, arg):
        """The type of an argument, where ShapeProp noted it."""
        if isinstance(arg, torch.fx.Node):
            return arg.meta.get("type", torch.Tensor)
        return create_type_hint(arg) if isinstance(arg, (list, tuple)) else type(arg)

    def call_function(self, target, args, kwargs, arg_types=None, kwarg_types=None):
        if not callable(target):
            raise AssertionError(f"expected a function, got {target}")
        found = normalize_function(
            target, args, kwargs, arg_types, kwarg_types, self.normalize_to_only_use_kwargs
        )
        args, kwargs = found if found is not None else (args, kwargs)
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_module(self, target, args, kwargs):
        found = normalize_module(self.module, target, args, kwargs, self.normalize_to_only_use_kwargs)
        args, kwargs = found if found is not None else (args, kwargs)
        return super().call_module(target, args, kwargs)


_SAME = [
    (torch.add, operator.add),
    (torch.sub, operator.sub),
    (torch.mul, operator.mul),
    (torch.floor_divide, operator.floordiv),
    (torch.true_divide, operator.truediv),
    (torch.eq, operator.eq),
    (torch.ne, operator.ne),
    (torch.lt, operator.lt),
    (torch.le, operator.le),
    (torch.gt, operator.gt),
    (torch.ge, operator.ge),
]


class NormalizeOperators(Transformer):
    """Makes a module that calls `operator.add` where it called `torch.add`, and so on."""

    binary_magic_method_remap = dict(_SAME)

    def call_function(self, target, args, kwargs):
        plain = len(args) == 2 and not kwargs and isinstance(args[0], Proxy)
        if plain and target in self.binary_magic_method_remap:
            target = self.binary_magic_method_remap[target]
        return super().call_function(target, args, kwargs)
