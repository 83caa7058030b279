"""`Node`: one operation of a graph, in a doubly linked list that is the order of execution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rushlight as torch
from rushlight._ops import OpOverload

from ._names import _get_qualified_name
from ._names import type_name as _type_repr
from .immutable_collections import immutable_dict, immutable_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rushlight.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

base_types = (
    *(str, int, float, bool, complex),
    *(torch.dtype, torch.Tensor, torch.device, torch.memory_format, torch.layout),
    OpOverload,
    torch.SymInt,
    torch.SymBool,
    torch.SymFloat,
)
Target = Callable[..., Any] | str
Argument = Any

_legal_ops = dict.fromkeys(
    ["placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"]
)
_side_effectful_functions: set = {torch._assert, torch._assert_async, setattr, print}
_INPLACE_OPERATORS = frozenset(
    """
        iadd iand iconcat ifloordiv ilshift imod imul imatmul ior ipow irshift isub itruediv ixor setitem
    """.split()
)


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Say that calls of a function must be kept even if nobody uses their results."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[..., Any]) -> Any:
    """Apply `fn` to each leaf of nested tuples, lists, dicts and slices, and build them again."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(item, fn) for item in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(item, fn) for item in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(value, fn)) for key, value in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[..., Any]) -> Any:
    """Apply `fn` to each Node in an argument."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def _format_arg(arg, max_list_len=float("inf")):
    """An argument as the text of a graph shows it."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, Node):
        return f"%{arg}"
    if isinstance(arg, (list, tuple)):
        shown = [_format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        more = f", ...[total_len={len(arg)}]" if len(arg) > len(shown) else ""
        left, right = "()" if isinstance(arg, tuple) else "[]"
        comma = "," if isinstance(arg, tuple) and len(arg) == 1 else ""
        return f"{left}{', '.join(shown)}{more}{comma}{right}"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {_format_arg(v)}" for k, v in arg.items()) + "}"
    return str(arg)


def _key_between(before, after):
    """A key in lexical order between two neighbours' keys; at the end of the list it counts on."""
    if len(before) > len(after):
        return (*before[: len(after)], before[len(after)] + 1)
    if len(before) < len(after):
        return (*after[: len(before)], after[len(before)] - 1)
    return (*before, 0)


class Node:
    """One step of a graph.

    ``op`` says what kind: ``placeholder`` (an input), ``get_attr`` (a parameter, named by ``target``),
    ``call_function``, ``call_module``, ``call_method``, or ``output``. ``args`` and ``kwargs`` hold values
    and other nodes; ``users`` are the nodes that have this one among theirs; ``meta`` is free for passes.
    """

    graph = None
    _name: Any = None

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                    f"{torch.typename(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type "
                f"{torch.typename(target)} but a str is expected"
            )
        self.graph, self.name, self._op, self._target = graph, name, op, target
        self._input_nodes: dict = {}
        self.users: dict = {}
        self.type = return_type
        self._prev = self._next = self
        self._erased = False
        self._sort_key: tuple = ()
        self._repr_fn = None
        self.meta: dict = {}
        self._args, self._kwargs = (), immutable_dict()
        self._update_args_kwargs(args, kwargs)

    # -- what it does

    @property
    def name(self) -> str:
        """What generated code and printed graphs call it."""
        return self._name

    @name.setter
    def name(self, value: str) -> None:
        for user in self.users if self._name is not None else ():
            self._tell_replaced(self, value, user)
        self._name = value

    @property
    def op(self) -> str:
        """The kind of node."""
        return self._op

    @op.setter
    def op(self, value: Any) -> None:
        self._change("_op", value)

    @property
    def target(self) -> Target:
        """What it calls or reads."""
        return self._target

    @target.setter
    def target(self, value: Any) -> None:
        self._change("_target", value)

    def _change(self, name, value):
        """Set the kind or the target, by which the graph keeps its nodes."""
        table = self.graph._find_nodes_lookup_table
        known = self in table
        if known:
            table.remove(self)
        setattr(self, name, value)
        if known:
            table.insert(self)

    # -- place in the list

    @property
    def next(self) -> Node:
        """The node that follows in the list."""
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, x: Node) -> None:
        """Put node x before this one, out of where it was."""
        if self.graph != x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is self:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        x._sort_key = _key_between(before._sort_key, self._sort_key)

    def append(self, x: Node) -> None:
        """Put node x after this one."""
        if self._next is not x:
            self._next.prepend(x)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other):
        return self._sort_key < other._sort_key

    def __gt__(self, other):
        return self._sort_key > other._sort_key

    def __le__(self, other):
        return self is other or self < other

    def __ge__(self, other):
        return self is other or self > other

    # -- arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assign a new tuple to change them.

        Example:
            >>> traced = torch.fx.symbolic_trace(torch.nn.ReLU())
            >>> [node.args for node in traced.graph.nodes][1]
            (input_1,)
        """
        return self._args

    @args.setter
    def args(self, a: Argument) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: Any) -> None:
        self._update_args_kwargs(self._args, k)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes that are arguments of this one, each once."""
        return list(self._input_nodes)

    def _update_args_kwargs(self, new_args, new_kwargs):
        def use(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}
        if not isinstance(new_args, (tuple, list)) or not isinstance(new_kwargs, dict):
            raise TypeError(
                f"a node takes a tuple of args and a dict of kwargs, got {type(new_args).__name__} and "
                f"{type(new_kwargs).__name__}"
            )
        self._args = map_arg(tuple(new_args), use)
        self._kwargs = map_arg(dict(new_kwargs), use)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users take another node instead; returns those changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but "
                    "replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user._swap_input(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node as input instead of `old_input`."""
        self._swap_input(old_input, new_input)

    _replace_input_with = replace_input_with

    def _tell_replaced(self, old, new, user):
        for hook in getattr(self.graph.owning_module, "_replace_hooks", None) or ():
            hook(old=old, new=new, user=user)

    def _swap_input(self, old, new):
        self._tell_replaced(old, new.name if isinstance(new, Node) else new, self)
        self._update_args_kwargs(
            map_arg(self._args, lambda n: new if n is old else n),
            map_arg(self._kwargs, lambda n: new if n is old else n),
        )

    # -- facts

    @property
    def stack_trace(self) -> str | None:
        """Where in the user's program the node came from, if the tracer kept it."""
        return self.meta.get("stack_trace", None)

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random=True):
        """Whether the node does more than return a value, so that removing it could be noticed."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self._is_impure_function(impure_random)
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            module = self.graph.owning_module.get_submodule(self.target)
            return getattr(module, "_is_impure", False)
        return False

    def _is_impure_function(self, impure_random):
        target = self.target
        if target in _side_effectful_functions or self.kwargs.get("out") is not None:
            return True
        if getattr(target, "__module__", None) == "torch._ops.profiler":
            return True
        given = [arg.meta["region"] for arg in self.args if isinstance(arg, Node) and "region" in arg.meta]
        steps = [node for module in given for node in module.graph.nodes]
        if any(node.is_impure(impure_random) for node in steps if node.op not in ("placeholder", "output")):
            return True
        schema = getattr(target, "_schema", None)
        if schema is not None and (schema.is_mutable or not schema.returns):
            return True
        tags = getattr(target, "tags", ())
        if impure_random and any(tag.name == "nondeterministic_seeded" for tag in tags):
            return True
        if getattr(target, "__module__", None) == "_operator":
            return target.__name__ in _INPLACE_OPERATORS
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """The arguments in the order of the target's signature, or None if it has none."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    # -- text

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target):
        """The target as text, shorter for builtin functions."""
        if isinstance(target, str):
            return target
        module = getattr(target, "__module__", None)
        if module == "builtins":
            return f"builtins.{target.__name__}"
        if module == "_operator":
            return f"operator.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """One line that describes the node; placeholders and the output may be collected instead."""
        kind = f" : {_type_repr(self.type)} " if self.type else " : "
        head = f"%{self.name}{kind}[num_users={len(self.users)}]"
        if self.op == "placeholder":
            self._collect_placeholder(placeholder_names)
            default = "(default=" + str(self.args[0]) + ")" if self.args else ""
            return f"{head} = placeholder[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"{head} = get_attr[target={self.target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        meta = self._tensor_meta_text() if include_tensor_metadata else ""
        return (
            f"{head}{meta} = {self.op}[target={self._pretty_print_target(self.target)}]"
            f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        )

    def _collect_placeholder(self, names):
        if names is None:
            return
        text = self.target + (f": {_type_repr(self.type)}" if self.type else "")
        names.append(text + (f" = {self.args[0]}" if self.args else ""))

    def _tensor_meta_text(self):
        value = self.meta.get("val", self.meta.get("tensor_meta"))
        if not hasattr(value, "shape"):
            return ""
        return f"[shape={tuple(value.shape)}, dtype={value.dtype}]"

    def __setstate__(self, state):
        self.__dict__.update(state)

    def _rename(self, candidate):
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)
