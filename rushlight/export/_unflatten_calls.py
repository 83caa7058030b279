"""Taking an exported graph apart at the calls of modules, which the nodes' `nn_module_stack` remembers."""

import operator

import rushlight as torch
from rushlight import fx
from rushlight.utils import _pytree as pytree

from ._grad_regions import enclose, is_marked, without_regions
from .graph_signature import InputKind


class _Frame:
    """The graph of one call of a module, while it is made."""

    def __init__(self, path, tensors):
        self.path, self.tensors = path, tensors
        self.graph, self.env = fx.Graph(), {}

    def take(self, node):
        """An input of the call: this node of the exported graph, or nothing that is still there."""
        name = node.name if node is not None else "unused"
        made = self.graph.placeholder(name)
        if node is not None:
            made.meta = dict(node.meta)
            self.env.setdefault(node, made)

    def own(self, node):
        """What a tensor of the program is called from here, if this module or one inside has it."""
        prefix = self.path + "." if self.path else ""
        for target in self.tensors.get(node, ()):
            if target.startswith(prefix):
                return target[len(prefix) :]
        return None

    def value(self, node):
        if node not in self.env:
            self.env[node] = self.graph.create_node("get_attr", self.own(node), name=node.name)
            self.env[node].meta = dict(node.meta)
        return self.env[node]


class _Calls:
    """All calls of a program; `graphs` lists them by module."""

    def __init__(self, program):
        specs = program.graph_signature.input_specs
        nodes = [n for n in program.graph.nodes if n.op == "placeholder"]
        held = {**program.constants, **program.state_dict}
        names = {}
        for target, tensor in held.items():
            names.setdefault(id(tensor), []).append(target)
        self.tensors = {
            node: [spec.target, *names.get(id(held.get(spec.target)), ())]
            for node, spec in zip(nodes, specs)
            if spec.kind != InputKind.USER_INPUT
        }
        self.inputs = [n for n, s in zip(nodes, specs) if s.kind == InputKind.USER_INPUT]
        self.by_name = {n.name: n for n in program.graph.nodes}
        self.signatures = {e.fqn: e.signature for e in program.module_call_graph if e.fqn and e.signature}
        self.output = program.graph.output_node()
        self.stacks, self.graphs, self.types = {}, {}, {}
        steps = [n for n in program.graph.nodes if n.op not in ("placeholder", "output")]
        self._read_stacks(steps)
        self.root = _Frame("", self.tensors)
        for node in self.inputs:
            self.root.take(node)
        self._fill(self.root, steps, 0)
        self.root.graph.output(tuple(fx.map_arg(v, self.root.value) for v in self.output.args[0]))

    def _read_stacks(self, steps):
        """For each node the calls around it, outermost first: (name of the call, path of the module)."""
        last: list = []
        for node in steps:
            found = node.meta.get("nn_module_stack")
            if found is not None:
                last, inside = [], ""
                for key, (path, kind) in found.items():
                    self.types.setdefault(path, kind if isinstance(kind, str) else kind.__name__)
                    if path and (not inside or path.startswith(inside + ".")):
                        number = key.rpartition("@")[2] if "@" in key else ""
                        last.append((f"{path}@{number}" if number else path, path))
                        inside = path
            self.stacks[node] = tuple(last)  # a node without a stack goes with the one before

    def _fill(self, frame, steps, depth):
        at = 0
        while at < len(steps):
            stack = self.stacks[steps[at]]
            if len(stack) <= depth:
                frame.env[steps[at]] = frame.graph.node_copy(steps[at], frame.value)
                at += 1
                continue
            end = at
            while end < len(steps) and self.stacks[steps[end]][depth : depth + 1] == (stack[depth],):
                end += 1
            self._call(frame, stack[depth], steps[at:end], depth + 1)
            at = end

    def _call(self, outer, call, steps, depth):
        name, path = call
        inner, inside = _Frame(path, self.tensors), set(steps)
        used = _in_order_of_use(steps, inside, inner)
        left = [n for n in steps if any(user not in inside for user in n.users)]
        signature = self.signatures.get(name)
        if signature and not self._covers(signature, used, left, inner):
            signature = None
        given = used if signature is None else self._nodes(signature.inputs)
        returned = left if signature is None else self._nodes(signature.outputs)
        for node in given:
            inner.take(node if isinstance(node, fx.Node) else None)
        self._fill(inner, steps, depth)
        results = [inner.value(n) if isinstance(n, fx.Node) else n for n in returned]
        inner.graph.output(results[0] if signature is None and len(results) == 1 else tuple(results))
        self.graphs.setdefault(path, []).append((inner.graph, signature))
        self._add_call(outer, path, given, returned, signature)

    def _covers(self, signature, used, left, inner):
        given, returned = self._nodes(signature.inputs), self._nodes(signature.outputs)
        known = {n for n in given if isinstance(n, fx.Node)}
        return set(used) <= known and set(left) <= {n for n in returned if isinstance(n, fx.Node)}

    def _nodes(self, arguments):
        """What a signature names: nodes of the exported graph, and plain values."""
        return [
            getattr(a, "value", None) if hasattr(a, "value") else self.by_name.get(a.name) for a in arguments
        ]

    def _add_call(self, outer, path, given, returned, signature):
        target = path[len(outer.path) + 1 :] if outer.path else path
        leaves = [outer.value(n) if isinstance(n, fx.Node) else n for n in given]
        args, kwargs = (tuple(leaves), {}) if signature is None else _nested(leaves, signature.in_spec)
        result = outer.graph.create_node("call_module", target, args, kwargs)
        values = [n.meta.get("val") if isinstance(n, fx.Node) else n for n in returned]
        if signature is None:
            result.meta["val"] = values[0] if len(values) == 1 else tuple(values)
            parts = None if len(returned) == 1 else result
        else:
            result.meta["val"] = pytree.tree_unflatten(values, signature.out_spec)
            parts = None if signature.out_spec.is_leaf() else _leaves_of(outer.graph, result, values)
        for i, node in enumerate(returned):
            if not isinstance(node, fx.Node) or node in outer.env:
                continue
            if parts is None:
                outer.env[node] = result
            else:
                outer.env[node] = outer.graph.call_function(operator.getitem, (parts, i))
                outer.env[node].meta = dict(node.meta)


def _leaves_of(graph, result, values):
    leaves = graph.call_function(pytree.tree_leaves, (result,))
    leaves.meta["val"] = values
    return leaves


def _in_order_of_use(steps, inside, frame):
    found = {}
    for node in steps:
        for used in node.all_input_nodes:
            if used not in inside and frame.own(used) is None:
                found[used] = None
    return list(found)


def _nested(leaves, spec):
    """Arguments of a call, as nested as the program's were."""
    args, kwargs = pytree.tree_unflatten(leaves, spec)
    return tuple(args), dict(kwargs)


def _text(graph):
    """Equal for graphs that do the same."""
    number = {node: i for i, node in enumerate(graph.nodes)}

    def plain(value):
        return fx.map_arg(value, lambda n: f"%{number[n]}")

    return [
        (n.op, "" if n.op == "placeholder" else str(n.target), str(plain((n.args, n.kwargs))), is_marked(n))
        for n in number
    ]


def build(root, program):
    """Give the modules under `root` their graphs."""
    from .unflatten import InterpreterModule, InterpreterModuleDispatcher

    calls = _Calls(without_regions(program))
    texts = {path: {str(_text(graph)) for graph, _ in made} for path, made in calls.graphs.items()}
    enclose(calls.root.graph)
    for made in calls.graphs.values():
        known = 0
        for graph, _ in made:  # parts of a module's graphs are parts of the module
            before = len(graph.nodes)
            enclose(graph, known)
            known += before
    _settle(root, calls.root.graph, None, calls.types.get(""))
    for path, made in sorted(calls.graphs.items(), key=lambda item: -item[0].count(".")):
        module = root.get_submodule(path)
        first, signature = made[0]
        _settle(module, first, signature, calls.types.get(path))
        if len(texts[path]) == 1:
            continue
        variants = []
        for graph, signature in made:
            variant = InterpreterModule(graph)
            _settle(variant, graph, signature, calls.types.get(path))
            _hold_regions(module, graph)
            variants.append(variant)
        several = InterpreterModuleDispatcher(variants)
        for part in ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set"):
            vars(several)[part] = vars(module)[part]
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor):  # a constant, which is a plain attribute
                vars(several)[name] = value
        _replace(root, module, several)


def _settle(module, graph, signature, kind):
    module.graph, module.signature, module._ty = graph, signature, kind
    graph.owning_module = module
    _hold_regions(module, graph)


def _hold_regions(module, graph):
    """A module has the functions of its graph's operators, whose names are those of the whole program."""
    for node in graph.nodes:
        if "region" in node.meta:
            setattr(module, node.target, node.meta["region"])


def _replace(root, old, new):
    for owner in list(root.modules()):
        for name, child in owner._modules.items():
            if child is old:
                owner._modules[name] = new
