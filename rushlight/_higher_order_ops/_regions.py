"""Functions as graphs of their own within a graph: what operators that take functions record.

A tensor of the trace around it that a function uses becomes a further input of its graph, for which the
operator's node passes the tensor on.
"""

import rushlight as torch
from rushlight.fx import Graph, GraphModule
from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, PythonKeyTracer, _describe


class _RegionTracer(PythonKeyTracer):
    """Takes tensors from elsewhere as inputs of the graph."""

    def __init__(self, captured):
        super().__init__()
        self.root, self.graph, self.tensor_attrs = torch.nn.Module(), Graph(tracer_cls=PythonKeyTracer), {}
        self.captured = captured  # id -> tensor, of all functions of the operator
        self.places = {}  # id -> the node that stands for it here

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

    def trace(self, function, inputs):
        """Trace a function, which gives one tensor or a sequence of them, on tensors; returns these."""
        mode, tracer = self.mode, _RegionTracer(self.captured)
        inner = ProxyTorchDispatchMode(tracer, mode.tracing_mode, refuse_values=mode.refuse_values)
        inner.decomposition_table, inner.fakes = mode.decomposition_table, mode.fakes
        fresh = [self._like(t) for t in inputs]
        for i, t in enumerate(fresh):
            proxy = tracer.create_proxy("placeholder", f"arg{i}_1", (), {})
            tracer.track(t, proxy)
            _describe(proxy.node, t, mode.fakes)
        numbers, mode.fakes.data_numbers = mode.fakes.data_numbers, None  # of the graph around this one
        try:
            with inner:
                result = function(*fresh)
        finally:
            mode.fakes.data_numbers = numbers
        tracer.create_node("output", "output", (tracer.create_arg(result),), {})
        self.traced.append((tracer, len(fresh)))
        return result

    def _like(self, tensor):
        """A tensor of which nothing is known but what the graph may rely on."""
        return tensor.detach().clone() if self.mode.tracing_mode == "real" else torch.empty_like(tensor)

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
        return GraphModule(tracer.root, graph)

    def attach(self, name, module):
        """The proxy of a module of the graph around, by a name that is free there."""
        tracer, count = self.mode.tracer, 0
        while hasattr(tracer.root, f"{name}_{count}"):
            count += 1
        setattr(tracer.root, f"{name}_{count}", module)
        proxy = tracer.create_proxy("get_attr", f"{name}_{count}", (), {})
        proxy.node.meta["region"] = module
        return proxy


def module_of(graph, root=None):
    """A graph as a module that holds the functions of its operators, beside what ``root`` holds."""
    root = torch.nn.Module() if root is None else root
    for node in graph.nodes:
        if "region" in node.meta:
            setattr(root, node.target, node.meta["region"])
    return GraphModule(root, graph)


def same_region(one, other):
    """Whether two graphs compute the same."""
    names: dict = {}
    nodes = list(one.graph.nodes), list(other.graph.nodes)
    if len(nodes[0]) != len(nodes[1]):
        return False
    for a, b in zip(*nodes):
        names[b] = a
        arguments = torch.fx.node.map_arg((b.args, b.kwargs), lambda n: names[n])
        if (
            a.op != b.op
            or (a.op == "call_function" and a.target is not b.target)
            or (a.args, a.kwargs) != arguments
        ):
            return False
        if a.op == "get_attr" and not same_region(a.meta["region"], b.meta["region"]):
            return False
    return True
