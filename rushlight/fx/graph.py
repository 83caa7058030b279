"""`Graph`: a straight program of nodes, and everything that edits it."""

from __future__ import annotations

import contextlib
import copy
from collections import defaultdict

import rushlight as torch

from ._codegen import (  # noqa: F401
    CodeGen,
    PythonCode,
    _BoxedCodeGen,
    _custom_builtins,
    _CustomBuiltin,
    _format_target,
    _parse_stack_trace,
    _ParsedStackTrace,
    _PyTreeCodeGen,
    _PyTreeInfo,
    _register_custom_builtin,
    dtype_abbrs,
)
from ._names import Namespace as _Namespace
from ._names import _get_qualified_name, snake_case
from ._names import is_from_torch as _is_from_torch
from .node import Argument as Argument
from .node import Node, map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any

    from rushlight.fx._symbolic_trace import Tracer
    from rushlight.fx.graph_module import GraphModule
    from rushlight.fx.node import Argument, Target

__all__ = ["CodeGen", "Graph", "PythonCode"]
_snake_case = snake_case


class _InsertPoint:
    """Where new nodes go; as a context, for its duration."""

    def __init__(self, graph, new_insert):
        self.graph, self.before = graph, graph._insert
        graph._insert = new_insert

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.graph._insert = self.before


class _node_list:
    """The nodes in order; nodes may be erased and added while one iterates."""

    def __init__(self, graph, direction="_next"):
        if direction not in ("_next", "_prev"):
            raise AssertionError(f"direction must be '_next' or '_prev', got {direction}")
        self.graph, self.direction = graph, direction

    def __len__(self):
        return self.graph._len

    def __iter__(self):
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self):
        return _node_list(self.graph, "_next" if self.direction == "_prev" else "_prev")


class _FindNodesLookupTable:
    """Nodes by kind, functions by target too."""

    def __init__(self):
        self.table = defaultdict(dict)

    def _key(self, node):
        return node.op, node.target if node.op == "call_function" else None

    def __contains__(self, node):
        return node in self.table[self._key(node)]

    def insert(self, node):
        self.table[self._key(node)][node] = None

    def remove(self, node):
        self.table[self._key(node)].pop(node)

    def find_nodes(self, *, op, target=None):
        if op == "call_function":
            if target is not None:
                return [*self.table[op, target]]
            return [node for (kind, _), nodes in self.table.items() if kind == op for node in nodes]
        return [node for node in self.table[op, None] if target is None or node.target == target]


class Graph:
    """A list of nodes: inputs, calls and one output.

    ``owning_module`` is the GraphModule it belongs to; ``tracer_cls`` the tracer that made it.
    """

    def __init__(
        self,
        owning_module: GraphModule | None = None,
        tracer_cls: type[Tracer] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._used_names = {}
        self._insert = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()
        self._co_fields = {}
        self._find_nodes_lookup_table = _FindNodesLookupTable()

    @property
    def owning_module(self) -> GraphModule | None:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> _node_list:
        """The nodes in order of execution."""
        return _node_list(self)

    def output_node(self) -> Node:
        """The node that returns; there is one."""
        node = next(iter(reversed(self.nodes)))
        if node.op != "output":
            raise AssertionError(f"the last node must be the output, got {node.op}")
        return node

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind and with a target."""
        if op == "call_function" and target is None:
            raise AssertionError("find_nodes needs a target for call_function")
        found = self._find_nodes_lookup_table.find_nodes(op=op, target=target)
        return sorted(found) if sort else found

    # -- making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Add a node at the insertion point."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("args must be a tuple and kwargs a dict")
        name = self._graph_namespace.create_name(self._target_to_str(target) if name is None else name, None)
        node = Node(self, name, op, target, args, kwargs, type_expr)
        for hook in getattr(self.owning_module, "_create_node_hooks", None) or ():
            hook(node)
        self._graph_namespace.associate_name_with_obj(name, node)
        self._insert(node)
        self._find_nodes_lookup_table.insert(node)
        self._len += 1
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input; names that start with stars take the rest of the arguments."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        if self.owning_module is not None:
            self._warn_of_missing(qualified_name)
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def _warn_of_missing(self, qualified_name):
        import warnings

        path, _, name = qualified_name.rpartition(".")
        owner, held = self.owning_module, False
        try:
            owner = owner.get_submodule(path)
            value = getattr(owner, name, None)
            held = isinstance(value, (torch.nn.Module, torch.nn.Parameter)) or name in owner._buffers
        except AttributeError:
            warnings.warn(f"Failed to fetch module {path}!", stacklevel=3)
        if not held:
            warnings.warn(
                "Attempted to insert a get_attr Node with no underlying reference in the owning GraphModule! "
                "Call GraphModule.add_submodule to add the necessary submodule, GraphModule.add_parameter to "
                "add the necessary Parameter, or nn.Module.register_buffer to add the necessary buffer",
                stacklevel=3,
            )

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a submodule."""
        if self.owning_module is not None:
            try:
                self.owning_module.get_submodule(module_name)
            except AttributeError:
                import warnings

                warnings.warn(
                    "Attempted to insert a call_module Node with no underlying reference in the owning "
                    "GraphModule! Call GraphModule.add_submodule to add the necessary submodule",
                    stacklevel=2,
                )
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a Python function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr=type_expr)

    def create_size_node(self, tensor_node: Any, dim: int) -> Node:
        """Reads one size of a tensor."""
        return self.call_method("size", (tensor_node, dim))

    def create_stride_node(self, tensor_node: Any, dim: int) -> Node:
        """Reads one stride of a tensor."""
        return self.call_method("stride", (tensor_node, dim))

    def create_storage_offset_node(self, tensor_node: Any) -> Node:
        """Reads where in its storage a tensor begins."""
        return self.call_method("storage_offset", (tensor_node,))

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """What the graph returns."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def _target_to_str(self, target):
        """A target as the beginning of a node's name."""
        if isinstance(target, str):
            text = target
        elif hasattr(target, "__name__") and not isinstance(target, type) and _is_from_torch(target):
            text = _short_name(target)
        else:
            text = target.__name__
        if text.startswith("__") and text.endswith("__"):
            text = text[2:-2]
        return snake_case(text)

    # -- editing

    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            import warnings

            warnings.warn(f"erase_node({to_erase}) on an already erased node", stacklevel=2)
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", None) or ():
            hook(to_erase)
        self._find_nodes_lookup_table.remove(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        # Other arguments stay: who kept the node may still ask for them.
        to_erase._update_args_kwargs(
            map_arg(to_erase.args, lambda n: None), map_arg(to_erase.kwargs, lambda n: None)
        )

    def inserting_before(self, n: Node | None = None) -> AbstractContextManager[Any]:
        """Let new nodes go before node n; without one, at the beginning."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> AbstractContextManager[Any]:
        """Let new nodes go after node n; without one, at the end."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of another graph's node; `arg_transform` gives the node here for one there."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError("arg_transform changed the kind of args or kwargs")
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Append all nodes of another graph; returns what that graph returned, in terms of this one."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return result if not return_output_node else (result, node)
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def process_inputs(self, *args: Any) -> Any:
        """What the placeholders get for the function's arguments."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        return self._codegen.process_outputs(out)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove nodes whose results nobody uses; says whether there were any."""
        from rushlight.fx.graph_module import GraphModule

        self.lint()
        impure = is_impure_node or (lambda node: node.is_impure())
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
                changed = True
        if self.owning_module is not None:
            for child in self.owning_module.children():
                if isinstance(child, GraphModule):
                    changed |= child.graph.eliminate_dead_code(is_impure_node)
        return changed

    def _clear_nodes(self):
        for node in reversed(self.nodes):
            node.users.clear()
            self.erase_node(node)

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[..., Any]) -> AbstractContextManager[None]:
        """Let a function edit the body of generated code: it gets the one in force and gives another."""
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextlib.contextmanager
        def restoring():
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return restoring()

    # -- copies

    def __deepcopy__(self, memo=None):
        memo = memo if memo is not None else {}
        made = Graph(tracer_cls=self._tracer_cls)
        returned = made.graph_copy(self, val_map=memo, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if returned is not None:
            value, old_output = returned
            new_output = made.output(value, type_expr=getattr(old_output, "type", None))
            new_output.meta = copy.copy(old_output.meta)
        return made

    def __getstate__(self):
        """A graph as flat records, for nodes in a linked list nest deeper than pickle can follow."""
        index = {node: i for i, node in enumerate(self.nodes)}
        records = [
            (n.op, n.target, _numbered(n.args, index), _numbered(n.kwargs, index), n.name, n.type, n.meta)
            for n in self.nodes
        ]
        return dict(records=records, codegen=self._codegen, tracer_cls=self._tracer_cls)

    def __setstate__(self, state):
        self.__init__(tracer_cls=state["tracer_cls"])
        self._codegen = state["codegen"]
        made = []
        for op, target, args, kwargs, name, type_expr, meta in state["records"]:
            args, kwargs = _by_number(args, made), _by_number(kwargs, made)
            node = self.create_node(op, target, args, dict(kwargs), name, type_expr)
            node.meta = meta
            made.append(node)

    # -- text and checks

    def python_code(
        self,
        root_module: str,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        **options,
    ) -> PythonCode:
        """The graph as source of a Python function; `root_module` is the name of its module there."""
        namespace = _Namespace()

        def code_name(node):
            return namespace.create_name(node.name, node)

        with self._named_by(code_name):
            return self._codegen._gen_python_code(
                self.nodes,
                root_module,
                namespace,
                verbose=verbose,
                include_stride=include_stride,
                include_device=include_device,
                colored=colored,
                expanded_def=expanded_def,
            )

    @contextlib.contextmanager
    def _named_by(self, repr_fn):
        before = {node: node._repr_fn for node in self.nodes}
        for node in self.nodes:
            node._repr_fn = repr_fn
        try:
            yield
        finally:
            for node, old in before.items():
                node._repr_fn = old

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)

    def print_tabular(self) -> None:
        """Print the nodes as a table."""
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(_table(rows, ["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """Raise if the graph is not well-formed: order, owners, names, targets."""
        from ._lint import check_graph

        check_graph(self)


def _short_name(target):
    return (
        _get_qualified_name(target).rpartition(".")[2] if not hasattr(target, "_schema") else target.__name__
    )


class _Index(int):
    """The number of a node, in a pickled graph."""


def _numbered(value, index):
    return map_arg(value, lambda node: _Index(index[node]))


def _by_number(value, made):
    from .node import map_aggregate

    return map_aggregate(value, lambda x: made[x] if isinstance(x, _Index) else x)


def _table(rows, headers):
    """Columns of text, as the package `tabulate` would print them."""
    try:
        from tabulate import tabulate

        return tabulate(rows, headers=headers)
    except ImportError:
        cells = [headers, *([str(cell) for cell in row] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
        cells.insert(1, ["-" * width for width in widths])
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in cells)
