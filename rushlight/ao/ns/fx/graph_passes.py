"""Graphs with loggers in them, and with operations of another graph beside their own."""

import operator

import rushlight
from rushlight.ao.quantization.fx.utils import get_new_attr_name_with_prefix
from rushlight.fx import Graph, GraphModule, Node, map_arg

from .ns_types import NSSingleResultValuesType
from .utils import (
    NodeInputOrOutputType,
    first_operand,
    get_node_first_input_and_output_type,
    get_target_type_str,
    module_of,
)

__all__ = ["add_loggers_to_model", "create_a_shadows_b"]

_INPUT, _OUTPUT = NSSingleResultValuesType.NODE_INPUT, NSSingleResultValuesType.NODE_OUTPUT


def fqn_of(node, gm):
    """The path of the module that a node is in, or None."""
    if node.op == "call_module":
        return str(node.target)
    scopes = getattr(gm, "_node_name_to_scope", None)
    return scopes[node.name][0] if scopes and node.name in scopes else None


def _operands(node):
    """(where it stands, its place in a list, the node) of the operands that loggers look at."""
    values = list(node.args) + list(node.kwargs.values())
    count = 2 if node.target in _TWO else 1
    for i, value in enumerate(values[:count]):
        if isinstance(value, (list, tuple)):
            yield from ((i, j, part) for j, part in enumerate(value) if isinstance(part, Node))
        elif isinstance(value, Node):
            yield i, 0, value


_q = rushlight.ops.quantized
_TWO = {rushlight.add, rushlight.mul, _q.add, _q.add_relu, _q.mul, _q.mul_relu}
_TWO |= {operator.add, operator.mul}


class _Instrumenting:
    """One graph under construction: nodes of other graphs are copied to it, loggers are put behind them."""

    def __init__(self, base, logger_cls):
        self.root, self.logger_cls = rushlight.nn.Module(), logger_cls
        self.graph, self.base = Graph(), base
        for name, child in base.named_children():
            self.root.add_module(name, child)
        for name, value in [*base.named_parameters(recurse=False), *base.named_buffers(recurse=False)]:
            if isinstance(value, rushlight.nn.Parameter):
                self.root.register_parameter(name, value)
            else:
                self.root.register_buffer(name, value)
        for node in base.graph.nodes:  # packed weights and numbers
            if node.op == "get_attr" and "." not in node.target and not hasattr(self.root, node.target):
                setattr(self.root, node.target, getattr(base, node.target))

    def hold(self, prefix, value):
        """The name under which the graph holds one more module or tensor."""
        name = get_new_attr_name_with_prefix(prefix)(self.root)
        if isinstance(value, rushlight.Tensor) and not isinstance(value, rushlight.nn.Parameter):
            self.root.register_buffer(name, value)
        else:
            setattr(self.root, name, value)
        return name

    def log(self, value, **about):
        name = self.hold(f"{value.name}_ns_logger_", self.logger_cls(**about))
        return self.graph.create_node("call_module", name, (value,), {})

    def finish(self):
        return GraphModule(self.root, self.graph)


def _about(gm, model_name, ref_name, ref_node, node, kind, index=0, within=0):
    module = module_of(ref_node, gm)
    return {
        "ref_node_name": ref_node.name,
        "prev_node_name": node.name,
        "model_name": model_name,
        "ref_name": ref_name,
        "prev_node_target_type": get_target_type_str(node, gm),
        "ref_node_target_type": get_target_type_str(ref_node, gm),
        "results_type": kind.value,
        "index_within_arg": within,
        "index_of_arg": index,
        "fqn": fqn_of(ref_node, gm),
        "qconfig_str": str(getattr(module, "qconfig", "")),
    }


def add_loggers_to_model(gm, inputs, outputs, logger_cls, model_name):
    """A copy of a graph with loggers; ``inputs`` and ``outputs`` have (reference node, name) by node."""
    made, copies = _Instrumenting(gm, logger_cls), {}
    for node in gm.graph.nodes:
        if node.op == "output":
            made.graph.output(map_arg(node.args[0], copies.__getitem__))
            continue
        found = dict(copies)
        if node in inputs:
            base, name = inputs[node]
            for index, within, arg in _operands(node):
                about = _about(gm, model_name, name, base, arg, _INPUT, index, within)
                about["ref_node_name"] = node.name
                found[arg] = made.log(copies[arg], **about)
        copies[node] = made.graph.node_copy(node, found.__getitem__)
        if node in outputs:
            base, name = outputs[node]
            about = _about(gm, model_name, name, base, node, _OUTPUT)
            about["ref_node_name"] = node.name
            copies[node] = made.log(copies[node], **about)
    return made.finish()


# ---- operations of one graph beside those of another --------------------------------------------------


def _chain(subgraph):
    """The nodes of an operation from its first on, along the first operands."""
    found, node = [subgraph.end_node], subgraph.end_node
    while node is not subgraph.start_node:
        node = first_operand(node)
        found.append(node)
    return found[::-1]


def _scale_before(node, gm):
    """Nodes or numbers that say the scale of the integers that a node takes, by what made them."""
    node = first_operand(node)
    while node is not None:
        if node.op == "call_function" and node.target is rushlight.quantize_per_tensor:
            values = [getattr(gm, a.target) if isinstance(a, Node) else a for a in node.args[1:3]]
            return float(values[0]), int(values[1])
        module = module_of(node, gm)
        if module is not None and hasattr(module, "scale") and hasattr(module, "zero_point"):
            return module.scale, module.zero_point
        node = first_operand(node)
    return None


def _cast(made, value, given, wanted, start_a, gm_a):
    """A value of the second graph as the first one's operation takes it, or None."""
    kind = NodeInputOrOutputType
    if (given, wanted) in ((kind.FP32, kind.FP32), (kind.INT8, kind.INT8), (kind.FP16, kind.FP16)):
        return value
    if wanted is kind.FP32 and given in (kind.INT8, kind.FP16):
        return made.graph.call_method("dequantize", (value,))
    if wanted is kind.FP16 and given is kind.FP32:
        return made.graph.call_method("to", (value, rushlight.float16))
    scale = _scale_before(start_a, gm_a) if (given, wanted) == (kind.FP32, kind.INT8) else None
    if scale is None:
        return None
    names = []
    for part, number in zip(("scale", "zero_point"), scale):
        name = made.hold(f"{start_a.name}_input_{part}_", number)
        names.append(made.graph.get_attr(name))
    return made.graph.call_function(rushlight.quantize_per_tensor, (value, *names, rushlight.quint8))


def _copied(made, arg, gm_a):
    """An operand that only the first graph has: numbers, attributes and what observes them."""
    if not isinstance(arg, Node):
        return arg
    if arg.op == "get_attr":
        owner, _, name = arg.target.rpartition(".")
        value = getattr(gm_a.get_submodule(owner) if owner else gm_a, name)
        return made.graph.get_attr(made.hold(f"{arg.name}_shadow_copy_", value))
    if arg.op == "call_module":
        name = made.hold(f"{arg.name}_shadow_copy_", module_of(arg, gm_a))
        return made.graph.create_node("call_module", name, tuple(_copied(made, a, gm_a) for a in arg.args))
    if arg.op == "call_method" and arg.target in ("to", "dequantize"):
        return made.graph.call_method(arg.target, tuple(_copied(made, a, gm_a) for a in arg.args))
    return None


def _can_copy(arg):
    while isinstance(arg, Node) and arg.op != "get_attr":
        watched = arg.op == "call_module" or (arg.op == "call_method" and arg.target in ("to", "dequantize"))
        if not watched or not arg.args:
            return False
        arg = arg.args[0]
    return True


def _states(a, b, gm_a):
    """Arguments of a recurrent layer beside its operand: those of the second graph by those of the first."""
    if not isinstance(module_of(a.base_op_node, gm_a), rushlight.nn.RNNBase):
        return {}
    pairs = zip(a.base_op_node.args[1:], b.base_op_node.args[1:])
    return {one: other for one, other in pairs if isinstance(one, Node) and isinstance(other, Node)}


def _shadow(made, a, gm_a, first, states):
    """The nodes of an operation of the first graph on an operand of the second."""
    value = first
    for node in _chain(a):
        operand = first_operand(node)

        def given(arg, value=value, operand=operand):
            if isinstance(arg, Node) and arg in states:
                return states[arg]
            return value if arg is operand else _copied(made, arg, gm_a)

        args = tuple(map(given, node.args))
        kwargs = {name: given(arg) for name, arg in node.kwargs.items()}
        target = node.target
        if node.op == "call_module":
            target = made.hold(f"{node.name}_shadow_copy_", module_of(node, gm_a))
        value = made.graph.create_node(node.op, target, args, kwargs)
    return value


def _shadowed(a, b, gm_a, gm_b, logger_cls, io_types):
    """What the operations of a pair take, or None where one cannot run beside the other."""
    kinds = []
    for one, gm in ((a, gm_a), (b, gm_b)):
        taken, _ = get_node_first_input_and_output_type(one.start_node, gm, logger_cls, io_types)
        _, given = get_node_first_input_and_output_type(one.end_node, gm, logger_cls, io_types)
        if NodeInputOrOutputType.UNKNOWN in (taken, given):
            return None
        kinds.append(taken)
    if (
        a.base_op_node.target in _TWO | {rushlight.cat, rushlight.stack}
        or first_operand(b.start_node) is None
    ):
        return None
    states = _states(a, b, gm_a)
    for node in _chain(a):
        operand = first_operand(node)
        others = [arg for arg in [*node.args, *node.kwargs.values()] if arg is not operand]
        others = [arg for arg in others if not (isinstance(arg, Node) and arg in states)]
        if operand is None or not all(map(_can_copy, others)):
            return None
    return kinds


def create_a_shadows_b(
    name_a, gm_a, name_b, gm_b, pairs, logger_cls, should_log_inputs, node_type_to_io_type_map
):
    """The second graph, beside whose operations those of the first run on the same operands."""
    made, copies = _Instrumenting(gm_b, logger_cls), {}
    starts = {b.start_node: (key, a, b) for key, (a, b) in pairs.items()}
    ends = {b.end_node: (key, a, b) for key, (a, b) in pairs.items()}
    operands = {}
    for node in gm_b.graph.nodes:
        if node.op == "output":
            made.graph.output(map_arg(node.args[0], copies.__getitem__))
            continue
        found = dict(copies)
        if node in starts:
            key, a, b = starts[node]
            kinds = _shadowed(a, b, gm_a, gm_b, logger_cls, node_type_to_io_type_map)
            source = first_operand(node)
            if kinds is not None:
                value = _cast(made, copies[source], kinds[1], kinds[0], a.start_node, gm_a)
                if value is not None:
                    if should_log_inputs:
                        about = _about(gm_b, name_b, key, b.base_op_node, source, _INPUT)
                        found[source] = made.log(copies[source], **about)
                        value = made.log(value, **{**about, "model_name": name_a})
                    operands[key] = value
        copies[node] = made.graph.node_copy(node, found.__getitem__)
        if node in ends and ends[node][0] in operands:
            key, a, b = ends[node]
            about = _about(gm_b, name_b, key, b.base_op_node, node, _OUTPUT)
            about["ref_node_name"] = node.name
            copies[node] = made.log(copies[node], **about)
            shadow = _shadow(
                made, a, gm_a, operands[key], {x: copies[y] for x, y in _states(a, b, gm_a).items()}
            )
            about = _about(gm_a, name_a, key, a.base_op_node, a.end_node, _OUTPUT)
            about["ref_node_name"] = a.end_node.name
            made.log(shadow, **about)
    return made.finish()
