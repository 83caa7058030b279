"""Parts of an exported program that run under `torch.no_grad`: nodes that are marked, or one operator that
takes their graph. Programs hold the operator; what takes graphs apart sees the nodes."""

import copy
import itertools
import operator

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of
from rushlight._higher_order_ops.wrap import wrap_with_set_grad_enabled

from ._data import is_check
from ._sizes import SIZE

_MARK = "grad_enabled"
_PLACES = "nn_module_stack", "stack_trace", "torch_fn"  # what a node tells of where the program made it


def mark(nodes):
    """Tell of nodes that they run without gradients."""
    for node in nodes:
        node.meta[_MARK] = False


def is_marked(node):
    return node.meta.get(_MARK, True) is False


def enclose(graph, known=0):
    """Put marked nodes that follow each other into one operator each. Names of values stay; so many parts are
    there ``known`` by name already."""
    taken = {node.target for node in graph.nodes if node.op == "get_attr"}  # by operators that stay
    numbers = (n for n in itertools.count(2 * known + 1, 2) if f"submod_{n}" not in taken)
    for group in list(_groups(graph)):
        _enclose(graph, group, next(numbers))
    return graph


def _groups(graph):
    group: dict = {}
    for node in list(graph.nodes):
        if node.op == "placeholder":
            continue
        if _belongs(node, group):
            group[node] = None
        elif group and _may_go_ahead(node) and group.keys().isdisjoint(node.all_input_nodes):
            next(iter(group)).prepend(node)
        else:
            if group:
                yield list(group)
            group = {}


def _belongs(node, group):
    if node.op == "get_attr":
        return "region" in node.meta and all(map(is_marked, node.users))
    if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        return node.args[0] in group or is_marked(node)
    return is_marked(node) and not _is_number(node)


def _is_number(node):
    """Whether a node has no tensor as result, so no gradients: its users may stand anywhere."""
    return node.target is SIZE or is_check(node) or isinstance(node.meta.get("val"), (int, float, bool))


def _may_go_ahead(node):
    if node.op != "call_function":
        return node.op == "get_attr"
    reads = isinstance(node.target, torch._ops.OpOverload) and node.target is not SIZE
    return _is_number(node) and (is_check(node) or not reads)


def _enclose(graph, group, number):
    inside = set(group)
    body, env = fx.Graph(), {}
    given = list(dict.fromkeys(n for node in group for n in node.all_input_nodes if n not in inside))
    for node in given:
        env[node] = body.placeholder(node.name)
        env[node].meta = {"val": node.meta.get("val")}
    for node in group:
        env[node] = body.node_copy(node, env.__getitem__)
        env[node].meta.pop(_MARK, None)
    readers = [n for n in graph.nodes if n not in inside and not inside.isdisjoint(n.all_input_nodes)]
    left = list(dict.fromkeys(n for reader in readers for n in reader.all_input_nodes if n in inside))
    if left and isinstance(left[0].meta.get("val"), (list, tuple)):
        raise AssertionError(f"the items of {left[0]} stand apart from it")
    body.output(tuple(env[node] for node in left))
    with graph.inserting_before(group[0]):
        function = graph.create_node("get_attr", f"submod_{number}", (), {}, f"submod_{number}")
        function.meta["region"] = module_of(body)
        call = graph.call_function(wrap_with_set_grad_enabled, (False, function, *given))
        call.meta.update({key: group[0].meta[key] for key in _PLACES if key in group[0].meta})
        call.meta["val"] = tuple(node.meta["val"] for node in left)
        parts = [graph.call_function(operator.getitem, (call, i)) for i in range(len(left))]
    names = [node.name for node in left]
    for node, part in zip(left, parts):
        part.meta = {k: v for k, v in node.meta.items() if k != _MARK}
        node.replace_all_uses_with(part)
    for node in reversed(group):
        graph.erase_node(node)
    for name, part in zip(names, parts):
        part.name = name


def spread_regions(graph):
    """A graph with marked nodes in place of the operators; one without any is returned as it is."""
    if not any(node.target is wrap_with_set_grad_enabled for node in graph.nodes):
        return graph
    made, env = fx.Graph(), {}
    for node in graph.nodes:
        if node.target is wrap_with_set_grad_enabled:
            _spread(made, node, env)
        elif node.op == "output":
            made.output(fx.map_arg(node.args[0], env.__getitem__)).meta = dict(node.meta)
        elif node not in env and not _holds_region(node):
            env[node] = made.node_copy(node, env.__getitem__)
    return made


def _holds_region(node):
    users = list(node.users)
    return "region" in node.meta and users and all(n.target is wrap_with_set_grad_enabled for n in users)


def _spread(made, call, env):
    enabled, function, *given = call.args
    body = function.meta["region"].graph
    inputs = [n for n in body.nodes if n.op == "placeholder"]
    inner = {n: fx.map_arg(v, env.__getitem__) for n, v in zip(inputs, given, strict=True)}
    left = body.output_node().args[0]
    names = {left[user.args[1]]: user for user in call.users}
    for node in body.nodes:
        if node.op in ("placeholder", "output"):
            continue
        args, kwargs = (fx.map_arg(v, inner.__getitem__) for v in (node.args, node.kwargs))
        target = f"{function.target}_{node.target}" if "region" in node.meta else node.target
        inner[node] = made.create_node(node.op, target, args, kwargs, names.get(node, node).name)
        inner[node].meta = dict(node.meta)
        if not enabled:
            mark([inner[node]])
    for user in call.users:
        env[user] = inner[left[user.args[1]]]


def without_regions(program):
    """A program whose nodes are those that run, some of them marked."""
    graph = spread_regions(program.graph)
    if graph is program.graph:
        return program
    made = copy.copy(program)
    made.graph_module = module_of(graph)
    return made


def each_region(graph, change):
    """Change the graphs of the operators: each becomes one of its own first."""
    for node in list(graph.nodes):
        if _holds_region(node):
            body = fx.Graph()
            body.output(body.graph_copy(node.meta["region"].graph, {}))
            change(body)
            each_region(body, change)
            node.meta["region"] = module_of(body)
