"""One module as several: a callback says which part each node belongs to."""

from __future__ import annotations

import operator
from collections import OrderedDict

from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule, _get_attr
from rushlight.fx.node import map_arg

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rushlight.fx.node import Node
    from rushlight.nn import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """One part: its nodes, what it takes from others and gives to them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.submod_name = f"submod_{name}"
        self.node_names = []
        self.inputs, self.outputs = {}, {}
        self.dependencies, self.dependents = {}, {}
        self.graph = Graph()
        self.environment = {}
        self.targets = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n "
            f"outputs: {self.outputs},\n partitions depended on: {self.dependencies},\n "
            f"partition dependents: {self.dependents}"
        )


class _Splitter:
    """The steps of `split_module`."""

    def __init__(self, m, callback, qualname_map, keep_original_order, keep_names, affix):
        self.m, self.callback = m, callback
        self.qualname_map, self.keep_names = qualname_map, keep_names
        self.keep_original_order, self.affix = keep_original_order, affix
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.partitions, self.part_of = OrderedDict(), {}

    def assign(self):
        """Ask the callback for each node that computes."""
        for node in self.m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = str(self.callback(node))
            partition = self.partitions.get(name)
            if partition is None:
                partition = self.partitions[name] = Partition(name)
                if self.affix is not None:
                    partition.submod_name = f"submod_{self.affix}_{name}"
            partition.node_names.append(node.name)
            self.part_of[node] = name

    def connect(self):
        """What crosses from one part into another."""
        for node in self.m.graph.nodes:
            for used in node.all_input_nodes:
                self._note_use(used, node if node.op != "output" else None)

    def _note_use(self, used, user):
        source, target = self.part_of.get(used), self.part_of.get(user)
        if source == target:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(used.name)
            if target is not None:
                self.partitions[source].dependents.setdefault(target)
                self.partitions[target].dependencies.setdefault(source)
        if target is not None:
            self.partitions[target].inputs.setdefault(used.name)

    def ordered(self):
        """Parts so that each comes after those it depends on."""
        waiting = {name: len(p.dependencies) for name, p in self.partitions.items()}
        ready, order = [name for name, count in waiting.items() if count == 0], []
        while ready:
            name = ready.pop(0)
            order.append(name)
            for dependent in self.partitions[name].dependents:
                waiting[dependent] -= 1
                if waiting[dependent] == 0:
                    ready.append(dependent)
        if len(order) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return order

    def fill(self):
        """Copy each node into its part's graph."""
        for name in self.partitions:
            partition = self.partitions[name]
            for used in partition.inputs:
                node = self.nodes[used]
                made = partition.graph.placeholder(used, type_expr=node.type)
                made.meta = node.meta.copy()
                partition.environment[node] = made
        for node in self.m.graph.nodes:
            if node in self.part_of:
                self._copy(node, self.partitions[self.part_of[node]])

    def _copy(self, node, partition):
        def here(used):
            return partition.environment[used]

        target = node.target
        if node.op == "call_module":
            target = target.replace(".", "_")  # parts hold their modules side by side
            partition.targets[target] = self.m.get_submodule(node.target)
            if self.qualname_map is not None:
                self.qualname_map[f"{partition.submod_name}.{target}"] = node.target
        args, kwargs = map_arg(node.args, here), map_arg(node.kwargs, here)
        name = node.name if self.keep_names else None
        made = partition.graph.create_node(node.op, target, args, kwargs, name, node.type)
        made.meta = node.meta.copy()
        partition.environment[node] = made


def _base_graph(splitter):
    """Placeholders and attributes of the whole, in their order; parts are called where they are ready.

    As in PyTorch, a placeholder that keeps its node's name gives it to the argument, too.
    """
    graph, env, attributes = Graph(), {}, {}
    for node in splitter.m.graph.nodes:
        if node.op == "placeholder":
            argument = node.name if splitter.keep_names else node.target
            made = graph.create_node("placeholder", argument, node.args, type_expr=node.type)
            made.meta, env[node.name] = node.meta.copy(), made
        elif node.op == "get_attr":
            attributes[node.target] = _get_attr(splitter.m, node.target)
            if not splitter.keep_original_order:
                env[node.name] = _copied(graph, node)
    return graph, env, attributes


def _copied(graph, node):
    made = graph.create_node(node.op, node.target, node.args, node.kwargs, node.name, node.type)
    made.meta = node.meta.copy()
    return made


def _call_partition(partition, graph, env, attributes, tuple_return):
    """Finish a part's graph, and put a call of it into the whole."""
    made = {node.name: copied for node, copied in partition.environment.items()}
    outputs = tuple(made[name] for name in partition.outputs)
    single = len(outputs) == 1 and not tuple_return
    partition.graph.output(outputs[0] if single else outputs)
    attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
    call = graph.call_module(partition.submod_name, tuple(env[name] for name in partition.inputs))
    names = list(partition.outputs)
    if single:
        env[names[0]] = call
        return
    for i, name in enumerate(names):
        env[name] = graph.call_function(operator.getitem, (call, i))


def split_module(
    m: Module,
    root_m: Module,
    split_callback: Callable[[Node], int],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool = False,
    keep_original_node_name: bool = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Split a graph module into submodules; ``split_callback(node)`` gives the number of a node's part.

    Returns a module that calls ``submod_0``, ``submod_1`` and so on. ``qualname_map`` takes up where each
    submodule's target came from. Nodes are named anew unless ``keep_original_node_name``. With
    ``tuple_return`` every part returns a tuple.
    """
    splitter = _Splitter(
        m, split_callback, qualname_map, keep_original_order, keep_original_node_name, partition_affix
    )
    splitter.assign()
    splitter.connect()
    splitter.fill()
    graph, env, attributes = _base_graph(splitter)
    order = splitter.ordered()
    if keep_original_order:
        order = _original_order(splitter, order)
    for name in order:
        partition = splitter.partitions[name]
        if keep_original_order:
            for used in partition.inputs:
                if used not in env and splitter.nodes[used].op == "get_attr":
                    env[used] = _copied(graph, splitter.nodes[used])
        _call_partition(partition, graph, env, attributes, tuple_return)
    _return(splitter, graph, env)
    made = GraphModule(attributes, graph)
    made.train(m.training)
    return made


def _original_order(splitter, order):
    """The order in which parts begin; an error if one would come before what it needs."""
    begin = list(splitter.partitions)
    place = {name: i for i, name in enumerate(begin)}
    for name in order:
        if any(place[d] > place[name] for d in splitter.partitions[name].dependencies):
            raise RuntimeError("the original order of the partitions contradicts their dependencies")
    return begin


def _return(splitter, graph, env):
    output = splitter.m.graph.output_node()

    def here(node):
        if node.name not in env and node.op == "get_attr":
            env[node.name] = _copied(graph, node)
        return env[node.name]

    made = graph.output(map_arg(output.args[0], here), type_expr=output.type)
    made.meta = output.meta.copy()
