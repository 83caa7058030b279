"""`split_by_tags`: one module as several, by what each node is tagged with."""

from __future__ import annotations

import rushlight as torch
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.split_module import split_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["getattr_recursive", "setattr_recursive", "split_by_tags"]


def getattr_recursive(obj: object, name: str) -> Any:
    """An attribute of an attribute: "a.b.c". None for what a ModuleList does not have."""
    for layer in name.split("."):
        if isinstance(obj, torch.nn.ModuleList):
            obj = obj._modules.get(layer)
            if obj is None:
                return None
        elif hasattr(obj, layer):
            obj = getattr(obj, layer)
        else:
            return None
    return obj


def setattr_recursive(obj: object, attr: str, value: object) -> None:
    """Set an attribute of an attribute."""
    path, _, name = attr.rpartition(".")
    for layer in path.split(".") if path else ():
        obj = getattr(obj, layer)
    setattr(obj, name, value)


def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: type[GraphModule] = GraphModule,
) -> GraphModule | tuple[GraphModule, dict[str, str]]:
    """Split a module by ``node.tag``, which every node that computes must have and which ``tags`` must list.

    The parts are submodules named by their tag, in the order of ``tags``. With ``return_fqn_mapping`` also
    says what each submodule is called now.
    """

    def part_of(node):
        tag = getattr(node, "tag", None)
        if tag not in tags:
            raise AssertionError(f"node {node.name}: tag {tag!r} is not one of {tags}")
        return tag

    names: dict[str, str] = {}
    split = split_module(gm, gm, part_of, qualname_map=names, tuple_return=return_tuple)
    children = {}
    for tag in tags:
        if f"submod_{tag}" in split._modules:
            children[tag] = split._modules.pop(f"submod_{tag}")
    children = {tag: _as_class(child, GraphModuleCls) for tag, child in children.items()}
    split._modules = {**children, **split._modules}
    for node in split.graph.nodes:
        if node.op == "call_module":
            node.target = node.target.removeprefix("submod_")
            node.name = split.graph._graph_namespace.create_name(node.target, node)
    split.graph.set_codegen(gm.graph._codegen)
    made = _as_class(split, GraphModuleCls)
    made.recompile()
    mapping = {old: new.removeprefix("submod_") for new, old in names.items()}
    return (made, mapping) if return_fqn_mapping else made


def _as_class(module, cls):
    return module if cls is GraphModule else cls(module, module.graph)
