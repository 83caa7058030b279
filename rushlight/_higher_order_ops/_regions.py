"""Functions as graphs of their own within a graph: what operators that take functions record.

A tensor of the trace around it that a function uses becomes a further input of its graph, for which the
operator's node passes the tensor on.
"""

import contextlib
import functools

import rushlight as torch
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight._subclasses.region_numbers import RegionNumbers
from rushlight.fx import Graph, GraphModule, Interpreter, Node
from rushlight.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    _describe,
    track_tensor_tree,
)
from rushlight.utils import _pytree as pytree


@contextlib.contextmanager
def _own_numbers(fakes, tracer):
    """Within it, numbers of the data are those of a function, not of the graph around."""
    around = fakes.data_numbers
    if around is not None:
        fakes.data_numbers = RegionNumbers(around, tracer)
    try:
        yield
    finally:
        fakes.data_numbers = around


class _ReadingModule(GraphModule):
    """A graph that reads numbers of its data, which stay known as such where it is traced."""

    def __call__(self, *args):
        if any(isinstance(a, FakeTensor) and a.fake_mode.data_numbers is not None for a in args):
            return _Reader(self).run(*args)
        return super().__call__(*args)


class _Reader(Interpreter):
    def call_function(self, target, args, kwargs):
        name = getattr(target, "_opname", None)
        if name == "_local_scalar_dense":
            number, numbers = args[0].item(), args[0].fake_mode.data_numbers
            if numbers.last is not None:
                numbers.again.add(numbers.last[0])
            return number
        if name == "sym_size":
            return args[0].size(args[1])
        return torch._check(*args) if name == "_assert_scalar" else target(*args, **kwargs)


class _RegionTracer(PythonKeyTracer):
    """Takes tensors from elsewhere as inputs of the graph."""

    def __init__(self, captured, around=None):
        super().__init__()
        self.around, self.without_gradients = around, []
        self.root, self.graph, self.tensor_attrs = torch.nn.Module(), Graph(tracer_cls=PythonKeyTracer), {}
        self.captured = captured  # id -> tensor, of all functions of the operator
        self.places = {}  # id -> the node that stands for it here

    @property
    def apart(self):  # type: ignore[override]
        return self.around is not None and self.around.apart

    def calling_functions(self):
        return super().calling_functions() if self.around is None else self.around.calling_functions()

    def _describe(self, node, kind):
        super()._describe(node, kind)
        if self.apart and kind == "call_function":
            self.without_gradients.append(node)

    def detach(self):
        """Let no gradient flow through what is computed where gradients are switched off."""
        apart = set(self.without_gradients)
        for node in self.without_gradients:
            users = [user for user in node.users if user not in apart]
            value = node.meta.get("val")
            if (
                users
                and isinstance(value, torch.Tensor)
                and (value.is_floating_point() or value.is_complex())
            ):
                with self.graph.inserting_after(node):
                    made = self.graph.call_function(torch.ops.aten.detach.default, (node,))
                made.meta = {**node.meta, "val": value.detach()}
                node.replace_all_uses_with(made, delete_user_cb=users.__contains__)

    def create_arg(self, a):
        if isinstance(a, torch.Tensor) and self.proxy_of(a) is None:
            self.captured.setdefault(id(a), a)
            if id(a) not in self.places:
                self.places[id(a)] = self.graph.placeholder(f"captured{len(self.places)}_1")
            return self.places[id(a)]
        return super().create_arg(a)


class Regions:
    """The functions of one operator, traced below a recording mode."""

    def __init__(self, mode):
        self.mode, self.captured, self.traced = mode, {}, []

    def trace(self, function, inputs, watches=False):
        """Trace a function, which gives one tensor or a sequence of them, on tensors; returns these.

        With ``watches`` what it computes under `torch.no_grad` is detached."""
        mode = self.mode
        tracer = _RegionTracer(self.captured, mode.tracer if watches else None)
        tracer.whole_scans = mode.tracer.whole_scans
        inner = ProxyTorchDispatchMode(tracer, "fake", mode.pre_dispatch, refuse_values=mode.refuse_values)
        inner.decomposition_table, inner.fakes = mode.decomposition_table, mode.fakes
        with mode.fakes:  # of which nothing is known but what the graph may rely on
            fresh = [torch.empty_like(t) for t in inputs]
        for i, t in enumerate(fresh):
            proxy = tracer.create_proxy("placeholder", f"arg{i}_1", (), {})
            tracer.track(t, proxy)
            _describe(proxy.node, t, mode.fakes)
        with _own_numbers(mode.fakes, tracer), mode.fakes, inner:
            result = function(*fresh)
        tracer.create_node("output", "output", (tracer.create_arg(result),), {})
        tracer.detach()
        self.traced.append((tracer, len(fresh)))
        return result

    def modules(self):
        """The graphs as modules, all with the captured tensors after their own inputs."""
        return [self._module(*traced) for traced in self.traced]

    def _module(self, tracer, count):
        graph = tracer.graph
        own = [n for n in graph.nodes if n.op == "placeholder"][:count]
        before = next(n for n in graph.nodes if n not in own)
        for i, (key, tensor) in enumerate(self.captured.items()):
            with graph.inserting_before(before):
                node = graph.placeholder(f"arg{count + i}_1")
            _describe(node, tensor, self.mode.fakes)
            if key in tracer.places:
                tracer.places[key].replace_all_uses_with(node)
                graph.erase_node(tracer.places[key])
        reads = any(getattr(n.target, "_opname", None) == "_local_scalar_dense" for n in graph.nodes)
        return (_ReadingModule if reads else GraphModule)(tracer.root, graph)

    def attach(self, name, module):
        """The proxy of a module of the graph around, by a name that is free there."""
        tracer, count = self.mode.tracer, 0
        while hasattr(tracer.root, f"{name}_{count}"):
            count += 1
        setattr(tracer.root, f"{name}_{count}", module)
        proxy = tracer.create_proxy("get_attr", f"{name}_{count}", (), {})
        proxy.node.meta["region"] = module
        return proxy

    def record(self, operator, arguments, given):
        """The node of a call, and its result; ``given`` are the arguments with the program's functions."""
        mode = self.mode
        proxy = mode.tracer.create_proxy("call_function", operator, arguments, {}, name=operator.name())
        tensors = {id(t) for t in pytree.tree_leaves(given) if isinstance(t, torch.Tensor)}
        with _own_numbers(mode.fakes, None):
            result = operator(*given)
        result = tuple(t.detach() if id(t) in tensors else t for t in result)  # an operand stays one
        track_tensor_tree(result, proxy, tracer=mode.tracer)
        _describe(proxy.node, result, mode.fakes)
        return result


def module_of(graph, root=None):
    """A graph as a module that holds the functions of its operators, beside what ``root`` holds."""
    root = torch.nn.Module() if root is None else root
    for node in graph.nodes:
        if "region" in node.meta:
            setattr(root, node.target, node.meta["region"])
    return GraphModule(root, graph)


def all_nodes(graph):
    """The nodes of a graph and of the functions of its operators."""
    for node in graph.nodes:
        yield node
        if "region" in node.meta:
            yield from all_nodes(node.meta["region"].graph)


def same_region(one, other):
    """Whether two graphs compute the same, but for numbers in them."""
    names: dict = {}
    nodes = list(one.graph.nodes), list(other.graph.nodes)
    if len(nodes[0]) != len(nodes[1]):
        return False
    for a, b in zip(*nodes):
        names[b] = a
        if a.op != b.op or (a.op == "call_function" and a.target is not b.target):
            return False
        (ours, spec), (theirs, others) = (pytree.tree_flatten((n.args, n.kwargs)) for n in (a, b))
        if spec != others or not all(map(functools.partial(_alike, names), ours, theirs)):
            return False
        if a.op == "get_attr" and not same_region(a.meta["region"], b.meta["region"]):
            return False
    return True


def _alike(names, one, other):
    if isinstance(other, Node):
        return names[other] is one
    return type(one) is type(other) and (isinstance(one, (int, float)) or one == other)


def numbers_of(region):
    """Where a graph has plain values, and those of its operators' graphs: (node, index of the leaf)."""
    for node in region.graph.nodes:
        if node.op == "get_attr":
            for i in range(len(list(numbers_of(node.meta["region"])))):
                yield node, i
        else:
            leaves = pytree.tree_leaves((node.args, node.kwargs))
            yield from ((node, i) for i, leaf in enumerate(leaves) if not isinstance(leaf, Node))


def values_of(region):
    """The plain values of a graph, in the order of `numbers_of`."""
    return [value_at(*place) for place in numbers_of(region)]


def value_at(node, i):
    """A leaf of a node's arguments; of the node that stands for a graph, one of its plain values."""
    if node.op == "get_attr":
        return value_at(*list(numbers_of(node.meta["region"]))[i])
    return pytree.tree_leaves((node.args, node.kwargs))[i]


def put(node, i, value):
    """Replace what `value_at` gives by another value, or a node of the graph around.

    Places of a graph do not move when one of its plain values becomes a node, if the last goes first."""
    if node.op != "get_attr":
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        leaves[i] = value
        node.args, node.kwargs = pytree.tree_unflatten(leaves, spec)
        return
    inner, k = list(numbers_of(node.meta["region"]))[i]
    put(inner, k, _inputs_for(node, value)[node] if isinstance(value, Node) else value)
    node.meta["region"].recompile()


def _inputs_for(region_node, value):
    """The inputs that stand for a node of the graph around, in each of the graphs of one operator."""
    (call,) = region_node.users
    *rest, last = call.args
    regions = [a for a in rest if isinstance(a, Node) and "region" in a.meta]
    given = [n for some in (*rest, last) if isinstance(some, (tuple, list)) for n in some]
    if value not in given:
        call.args = (*rest, type(last)([*last, value]))
        for node in regions:
            _add_input(node.meta["region"].graph, value)
            node.meta["region"].recompile()
    at = given.index(value) if value in given else len(given)
    return {
        node: [n for n in node.meta["region"].graph.nodes if n.op == "placeholder"][at] for node in regions
    }


def _add_input(graph, value):
    *_, last = [None, *(n for n in graph.nodes if n.op == "placeholder")]
    count = sum(n.op == "placeholder" for n in graph.nodes)
    with graph.inserting_after(last) if last else graph.inserting_before(next(iter(graph.nodes))):
        graph.placeholder(f"arg{count}_1").meta["val"] = value.meta["val"]
