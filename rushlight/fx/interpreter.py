"""`Interpreter` runs a graph node by node, `Transformer` makes a new graph that way."""

from __future__ import annotations

import inspect
from contextlib import contextmanager

from . import traceback as fx_traceback
from ._lazy_graph_module import _make_graph_module
from .graph import Graph
from .node import map_aggregate, map_arg
from .proxy import Proxy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx.graph_module import GraphModule
    from rushlight.fx.node import Argument, Node
    from rushlight.nn import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a GraphModule; override a method to change what a kind of node does.

    Values are dropped when the last user has run, unless ``garbage_collect_values`` is False.
    """

    def __init__(
        self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.submodules = dict(self.module.named_modules())
        self.graph = graph if graph is not None else module.graph
        self.env = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        if garbage_collect_values:
            self.user_to_last_uses = self._last_uses()

    def _last_uses(self):
        seen, last = set(), {}
        for node in reversed(self.graph.nodes):
            for used in node.all_input_nodes:
                if used not in seen:
                    seen.add(used)
                    last.setdefault(node, []).append(used)
        return last

    def run(
        self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True
    ) -> Any:
        """Run the graph; values in ``initial_env`` are taken as computed."""
        self.env = dict(initial_env or {})
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node not in self.env:
                self.env[node] = self._run_reporting(node)
            for used in self.user_to_last_uses.get(node, ()) if self.garbage_collect_values else ():
                self.env.pop(used, None)
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Run with inputs in a list, which is emptied so that they may be freed early."""
        placeholders = [n for n in self.graph.nodes if n.op == "placeholder"]
        if len(args_list) != len(placeholders):
            raise AssertionError(f"Expected {len(placeholders)} args, got {len(args_list)}")
        env = dict(zip(placeholders, args_list))
        args_list.clear()
        return self.run(initial_env=env)

    def _run_reporting(self, node):
        try:
            return self.run_node(node)
        except Exception as error:
            if self.extra_traceback:
                message = f"While executing {node.format_node()}"
                text = f"{error.args[0]}\n\n{message}" if error.args else str(message)
                text += f"\nOriginal traceback:\n{node.stack_trace}"
                error.args = (text, *error.args[1:])
                if isinstance(error, KeyError):  # its text would be quoted in one line
                    raise RuntimeError(*error.args) from error
            raise

    @contextmanager
    def _set_current_node(self, node):
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """Run one node, by the method of its kind."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    # -- kinds of nodes

    def placeholder(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        """An input: the next argument, or all that are left."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        owner, *rest = args
        return getattr(owner, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return args[0]

    # -- help

    def fetch_attr(self, target: str) -> Any:
        """The module's attribute at a qualified name."""
        value = self.module
        atoms = target.split(".")
        for i, atom in enumerate(atoms):
            if not hasattr(value, atom):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(atoms[: i + 1])}")
            value = getattr(value, atom)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a node's arguments."""
        args, kwargs = self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)
        if not isinstance(args, tuple) or not isinstance(kwargs, dict):
            raise AssertionError(f"arguments of {n} are not a tuple and a dict")
        return args, kwargs

    def map_nodes_to_values(self, args: Argument, n: Node) -> Argument:
        """Replace nodes in arguments by their values."""

        def load(used):
            if used not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {used}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[used]

        return map_arg(args, load)


class Transformer(Interpreter):
    """Runs a graph with proxies, which makes a new graph: override methods to change nodes on the way."""

    def __init__(self, module: Module) -> None:
        from ._symbolic_trace import Tracer

        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)

        class TransformerTracer(Tracer):
            def __init__(self, graph):
                super().__init__()
                self.graph = graph
                self.tensor_attrs = {}

            def is_leaf_module(self, _, __):
                return True

        self.tracer = TransformerTracer(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        default = next(iter(args)) if args else inspect.Signature.empty
        return Proxy(
            self.new_graph.placeholder(
                target, default_value=... if default is inspect.Signature.empty else default
            ),
            self.tracer,
        )

    def get_attr(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return self.tracer.call_module(self.fetch_attr(target), self.fetch_attr(target).forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> Any:
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """Run, and return the new module."""
        with fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:
            value = map_aggregate(result, lambda a: a.node if isinstance(a, Proxy) else a)
            output = self.new_graph.output(value)
            old = self.graph.output_node()
            output.type = old.type
            output.meta = dict(old.meta)
        return _make_graph_module(self.module, self.new_graph)
