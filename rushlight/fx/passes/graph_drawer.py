"""Graphs as pictures, by the package `pydot`."""

from __future__ import annotations

import hashlib

import rushlight as torch
from rushlight import fx
from rushlight.fx.node import _format_arg
from rushlight.fx.passes.shape_prop import TensorMetadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from rushlight.fx.graph_module import GraphModule

try:
    import pydot
except ImportError:
    pydot = None

__all__ = ["FxGraphDrawer"]

_COLORS = {
    "placeholder": '"AliceBlue"',
    "call_module": "LemonChiffon1",
    "get_param": "Yellow2",
    "get_attr": "LightGrey",
    "output": "PowderBlue",
}
_MODULE_COLORS = ["CadetBlue1", "Coral", "DarkOliveGreen1", "DarkSeaGreen1", "GhostWhite", "Khaki1"]
_MODULE_COLORS += [
    "LavenderBlush1",
    "LightSkyBlue",
    "MistyRose1",
    "MistyRose2",
    "PaleTurquoise2",
    "PeachPuff1",
]
_MODULE_COLORS += ["Salmon", "Thistle1", "Thistle3", "Wheat1"]


def _color_of(text):
    """The same colour for the same module or function in all pictures."""
    return _MODULE_COLORS[int(hashlib.md5(text.encode()).hexdigest()[:8], 16) % len(_MODULE_COLORS)]


class FxGraphDrawer:
    """Draws a graph module: ``FxGraphDrawer(module, "name").get_dot_graph().write_svg("net.svg")``."""

    def __init__(
        self,
        graph_module: GraphModule,
        name: str,
        ignore_getattr: bool = False,
        ignore_parameters_and_buffers: bool = False,
        skip_node_names_in_args: bool = True,
        parse_stack_trace: bool = False,
        dot_graph_shape: str | None = None,
        normalize_args: bool = False,
    ) -> None:
        if pydot is None:
            raise RuntimeError(
                "FXGraphDrawer requires the pydot package to be installed. Please install pydot through your "
                "favorite Python package manager."
            )
        self.options = ignore_getattr, ignore_parameters_and_buffers, skip_node_names_in_args
        self.parse_stack_trace = parse_stack_trace
        self.dot_graph_shape = dot_graph_shape or "record"
        self.normalize_args = normalize_args
        self._name = name
        self._dot_graphs = {name: self._draw(graph_module, name)}
        for node in graph_module.graph.nodes:
            if node.op == "call_module" and isinstance(
                graph_module.get_submodule(node.target), fx.GraphModule
            ):
                own = f"{name}_{node.target}"
                self._dot_graphs[own] = self._draw(graph_module.get_submodule(node.target), own)

    def get_dot_graph(self, submod_name: str | None = None) -> Any:
        """The picture as a `pydot.Dot`."""
        return self._dot_graphs[self._name if submod_name is None else submod_name]

    def get_main_dot_graph(self) -> Any:
        return self._dot_graphs[self._name]

    def get_submod_dot_graph(self, submod_name: str) -> Any:
        return self._dot_graphs[f"{self._name}_{submod_name}"]

    def get_all_dot_graphs(self) -> dict[str, Any]:
        return self._dot_graphs

    def _draw(self, module, name):
        ignore_getattr, ignore_parameters, _ = self.options
        dot = pydot.Dot(name, rankdir="TB")
        drawn = [n for n in module.graph.nodes if not (ignore_getattr and n.op == "get_attr")]
        for node in drawn:
            dot.add_node(pydot.Node(node.name, label=self._label(module, node), **self._style(module, node)))
            if node.op == "call_module" and not ignore_parameters:
                self._draw_parameters(dot, module, node)
        for node in drawn:
            for user in node.users:
                dot.add_edge(pydot.Edge(node.name, user.name))
        return dot

    def _draw_parameters(self, dot, module, node):
        leaf = module.get_submodule(node.target)
        if isinstance(leaf, fx.GraphModule):
            return
        for kind in ("parameters", "buffers"):
            for name, value in getattr(leaf, f"named_{kind}")():
                full = f"{node.target}.{name}"
                label = f"{{{full}|op_code=get_{kind[:-1]}\\l{self._tensor_text(value)}}}"
                style = self._style(module, node) | {"shape": "record", "fillcolor": "Yellow2"}
                dot.add_node(pydot.Node(full, label=label, **style))
                dot.add_edge(pydot.Edge(full, node.name))

    def _style(self, module, node):
        style = {"shape": self.dot_graph_shape, "fillcolor": "#CAFFE3", "style": '"filled,rounded"'}
        style["fontcolor"] = "#000000"
        if node.op in _COLORS:
            style["fillcolor"] = _COLORS[node.op]
        elif node.op in ("call_function", "call_method"):
            style["fillcolor"] = _color_of(str(node._pretty_print_target(node.target)))
        if node.op == "call_module":
            style["fillcolor"] = _color_of(torch.typename(module.get_submodule(node.target)))
        return style

    def _label(self, module, node):
        rows = [f"name=%{node.name}", f"op_code={node.op}\\n"]
        if node.op == "call_module":
            leaf = module.get_submodule(node.target)
            constants = getattr(leaf, "__constants__", ())
            rows.append(torch.typename(leaf))
            rows += [f"{name}: {getattr(leaf, name)}" for name in constants if hasattr(leaf, name)]
        else:
            rows.append(f"target={self._target_text(node)}\\n")
            rows += self._arguments_text(node)
            rows.append(f"num_users={len(node.users)}\\n")
        meta = node.meta.get("tensor_meta")
        text = self._tensor_text(meta) if meta is not None else ""
        return "{" + "|".join(_escaped(row) for row in rows) + "|" + text + "}"

    def _target_text(self, node):
        return node._pretty_print_target(node.target) if node.op == "call_function" else str(node.target)

    def _arguments_text(self, node):
        _, _, skip_names = self.options
        rows = []
        if node.args:
            rows.append(f"args={_format_arg(_without_nodes(node.args) if skip_names else node.args, 8)}\\l")
        if node.kwargs:
            rows.append(f"kwargs={_format_arg(dict(node.kwargs))}\\l")
        return rows

    def _tensor_text(self, value):
        if isinstance(value, TensorMetadata) or isinstance(value, torch.Tensor):
            stride = value.stride if isinstance(value, TensorMetadata) else value.stride()
            return (
                f"dtype={value.dtype}\\nshape={tuple(value.shape)}\\nrequires_grad={value.requires_grad}\\n"
                f"stride={tuple(stride)}\\n"
            )
        if isinstance(value, (list, tuple)):
            return "".join(self._tensor_text(item) for item in value)
        return ""


def _without_nodes(args):
    return tuple("%" if isinstance(a, fx.Node) else a for a in args)


def _escaped(text):
    for mark in "{}<>|":
        text = text.replace(mark, "\\" + mark)
    return text
