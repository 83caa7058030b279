"""Computing once what depends on parameters only."""

import rushlight as torch
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.passes.split_module import split_module

__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]


class FoldedGraphModule(GraphModule):
    """Runs its constant part before the first call, and keeps the result as parameters."""

    def __init__(
        self,
        root,
        graph,
        const_subgraph=None,
        fx_const_folded_attrs_name=None,
        device_for_folded_attrs="cuda",
    ):
        super().__init__(root, graph)
        self.const_subgraph_module = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args, **kwargs):
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self):
        """Compute the constant part."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("folding has been run already")
        self.has_folding_been_run = True
        folded = self.const_subgraph_module()

        def parameter(value):
            if isinstance(value, int):
                value = torch.tensor(value)
            return torch.nn.Parameter(value.detach(), requires_grad=value.requires_grad)

        held = (
            torch.nn.ParameterList([parameter(v) for v in folded])
            if isinstance(folded, tuple)
            else parameter(folded)
        )
        setattr(self, self.fx_const_folded_attrs_name, held)


def get_unique_attr_name_in_module(mod_traced, name):
    """A name like `name` that the module does not have."""
    base, number = name.rstrip("0123456789"), 0
    base = base if base.endswith("_") or base == name else name
    while hasattr(mod_traced, name):
        number += 1
        name = f"{base.rstrip('_')}_{number}"
    return name


def _constant_nodes(graph, skip_folding_node_fn):
    """The nodes that depend on no input."""
    found = set()
    for node in graph.nodes:
        if node.op in ("placeholder", "output") or node.is_impure():
            continue
        if node.op != "get_attr" and not set(node.all_input_nodes) <= found:
            continue
        if node.op != "get_attr" and skip_folding_node_fn is not None and skip_folding_node_fn(node):
            continue
        found.add(node)
    return found


def split_const_subgraphs(module, skip_folding_node_fn=None, device_for_folded_attrs="cpu"):
    """The module with what depends on no input apart, to be computed once.

    Returns a `FoldedGraphModule`; ``skip_folding_node_fn(node)`` keeps nodes from being folded.
    """
    traced = module if isinstance(module, GraphModule) else torch.fx.symbolic_trace(module)
    constant = _constant_nodes(traced.graph, skip_folding_node_fn)
    if not any(node.op != "get_attr" for node in constant):
        return FoldedGraphModule(traced, traced.graph)
    split = split_module(traced, module, lambda node: 0 if node in constant else 1)
    const_call = next(n for n in split.graph.nodes if n.target == "submod_0")
    const_graph = _constant_program(split, const_call)
    name = get_unique_attr_name_in_module(split, "_FX_CONST_FOLDED_ATTRS")
    with split.graph.inserting_before(const_call):
        folded = split.graph.create_node("get_attr", name)
    result = split.submod_0.graph.output_node().args[0]
    if isinstance(result, torch.fx.Node):
        folded.meta = result.meta.copy()
    setattr(split, name, torch.nn.ParameterList() if _returns_many(split) else torch.nn.Parameter())
    const_call.replace_all_uses_with(folded)
    split.graph.erase_node(const_call)
    _inline(split, "submod_1")
    split.graph.eliminate_dead_code()
    return FoldedGraphModule(split, split.graph, const_graph, name, device_for_folded_attrs)


def _returns_many(split):
    return isinstance(split.submod_0.graph.output_node().args[0], tuple)


def _constant_program(split, call):
    """The constant part as a graph that reads its own attributes."""
    graph, env = torch.fx.Graph(), {}
    inner = split.submod_0.graph
    for placeholder, used in zip((n for n in inner.nodes if n.op == "placeholder"), call.args):
        env[placeholder] = graph.node_copy(used)
    for node in inner.nodes:
        if node.op == "output":
            graph.output(torch.fx.map_arg(node.args[0], lambda n: env[n]))
        elif node not in env:
            env[node] = graph.node_copy(node, lambda n: env[n])
            if node.op in ("call_module", "get_attr"):
                env[node].target = f"submod_0.{node.target}"
    return graph


def _inline(split, name):
    """Put the nodes of a submodule in the place of its call."""
    call = next((n for n in split.graph.nodes if n.op == "call_module" and n.target == name), None)
    if call is None:
        return
    inner, env = getattr(split, name), {}
    for placeholder, used in zip((n for n in inner.graph.nodes if n.op == "placeholder"), call.args):
        env[placeholder] = used
    with split.graph.inserting_before(call):
        for node in inner.graph.nodes:
            if node.op in ("placeholder", "output"):
                continue
            env[node] = split.graph.node_copy(node, lambda n: env[n])
            if node.op in ("call_module", "get_attr"):
                env[node].target = f"{name}.{node.target}"
    _replace_result(split, call, torch.fx.map_arg(inner.graph.output_node().args[0], lambda n: env[n]))


def _replace_result(split, call, result):
    if isinstance(result, torch.fx.Node):
        call.replace_all_uses_with(result)
    else:
        for item in list(call.users):  # each takes one of the results
            item.replace_all_uses_with(result[item.args[1]])
            split.graph.erase_node(item)
    split.graph.erase_node(call)
