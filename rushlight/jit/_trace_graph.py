"""The graph of one run as tools read it that count or draw what a model computes: `_get_trace_graph`.

An observer is told of each operator that ran, composites whole, with the tensors that went in and came out.
Values carry their shapes; parameters and buffers are inputs of the graph, after the example inputs."""

import functools

import rushlight
from rushlight import _C, Tensor
from rushlight.jit import _decorations
from rushlight.jit._annotations import value_type
from rushlight.jit._graph_nodes import Graph, Node, Value
from rushlight.jit._graph_types import TensorType
from rushlight.jit._types import ANY, INT, TENSOR, list_of
from rushlight.nn import Module
from rushlight.utils._pytree import tree_leaves

__all__ = ["OperatorGraph"]


def _get_trace_graph(
    f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False,
    _return_inputs_states=False,
):  # fmt: skip
    """(the graph of one run, its result), and the graph's inputs if asked for; for tools that read it."""
    args, kwargs = args if isinstance(args, tuple) else (args,), kwargs or {}
    recorded, inputs = OperatorGraph(), []
    own = f.state_dict(keep_vars=True).values() if isinstance(f, Module) else ()
    for tensor in [*tree_leaves((args, kwargs)), *own]:
        if isinstance(tensor, Tensor) and not recorded.knows(tensor):
            recorded.add_input(tensor)
            inputs.append(tensor.clone() if return_inputs else tensor)  # the run may write to it
    with _decorations.tracing(recorded.scopes):
        result = _C._observe_calls(recorded.ran, lambda: f(*args, **kwargs))
    recorded.set_results(tree_leaves(result))
    more = (tuple(inputs),) if return_inputs else ((args, args),) if _return_inputs_states else ()
    return recorded.graph, result, *more


class OperatorGraph:
    """Makes the graph of what an observer is told."""

    def __init__(self):
        self.graph, self.scopes = Graph(), _decorations.Scopes()
        self._values, self._alive, self._inner, self._count = {}, [], {}, 0

    def knows(self, tensor):
        return id(tensor) in self._values

    def add_input(self, tensor):
        value = self._value(tensor)
        self.graph._inputs.append(value)
        return value

    def set_results(self, results):
        self.graph._outputs = [self._of(results[0] if len(results) == 1 else tuple(results))]

    def ran(self, operator, arguments, result, depth):
        """An operator has run. Those that a composite calls are told of before it, one deeper."""
        inside = self._inner.pop(depth + 1, [])
        calls = [_Call(operator, arguments, result)]
        if any(call.kind == _CONVOLUTION for call in inside):  # graphs have the general one
            calls = inside
        if depth:
            self._inner.setdefault(depth, []).extend(calls)
        else:
            for call in calls:
                self._write(call)

    def _write(self, call):
        inputs = [self._of(argument) for argument in call.arguments]
        if isinstance(call.result, list):
            listed = self._emit(call.kind, inputs, [self._unnamed(list_of(TENSOR))])
            self._emit("prim::ListUnpack", listed, [self._value(t) for t in call.result])
        else:
            results = call.result if isinstance(call.result, tuple) else (call.result,)
            outputs = [
                self._value(r) if isinstance(r, Tensor) else self._unnamed(_type_of(r)) for r in results
            ]
            self._emit(call.kind, inputs, outputs)

    def _emit(self, kind, inputs, outputs, attributes=None):
        node = Node(kind, inputs, outputs, attributes, scope=self.scopes.current_scope())
        self.graph._nodes.append(node)
        return outputs

    def _unnamed(self, kind):
        self._count += 1
        return Value(str(self._count - 1), kind.schema(), annotation=str(kind))

    def _value(self, tensor):
        """A new value, which the tensor is from now on: writes make another one."""
        value = self._unnamed(TENSOR)
        value._complete = TensorType.create_from_tensor(tensor)
        self._values[id(tensor)] = value
        self._alive.append(tensor)  # or another one gets its identity
        return value

    def _of(self, argument):
        """The value of an argument; what the run did not compute is a constant."""
        if isinstance(argument, Tensor) and id(argument) in self._values:
            return self._values[id(argument)]
        if isinstance(argument, (list, tuple)):
            parts = [self._of(part) for part in argument]
            kind = "prim::ListConstruct" if isinstance(argument, list) else "prim::TupleConstruct"
            return self._emit(kind, parts, [self._unnamed(_type_of(argument))])[0]
        if isinstance(argument, dict):
            parts = [self._of(part) for pair in argument.items() for part in pair]
            return self._emit("prim::DictConstruct", parts, [self._unnamed(_type_of(argument))])[0]
        made = self._value(argument) if isinstance(argument, Tensor) else self._unnamed(_type_of(argument))
        attributes = {} if argument is None else {"value": argument}
        return self._emit("prim::Constant", [], [made], attributes)[0]


def _type_of(value):
    """The type of a value that is no tensor with a shape; what is not TorchScript's is one of its numbers."""
    kind = value_type(value)
    return kind if kind.known else INT if isinstance(value, _NUMBERED) else ANY


_NUMBERED = (rushlight.dtype, rushlight.layout, rushlight.memory_format)


class _Call:
    """An operator's call as PyTorch's graphs have it: its name, its arguments in their order."""

    def __init__(self, operator, arguments, result):
        name, order = _public_form(operator)
        given = [
            a for a, wanted in zip(arguments, operator._schema.arguments, strict=False) if not wanted.is_out
        ]
        if _writes(operator, arguments):
            name += "_"
        self.kind, self.result = f"{operator.namespace}::{name}", result
        self.arguments = [given[w] if isinstance(w, int) else w.value for w in order]


def _writes(operator, arguments):
    """Whether a function was called with ``inplace=True``."""
    named = zip(operator._schema.arguments, arguments, strict=False)
    return any(a.name == "inplace" and given for a, given in named)


class _Default:
    """An argument that the call does not have."""

    def __init__(self, value):
        self.value = value


@functools.cache
def _public_form(operator):
    """(the name in graphs, for each argument where the call has it). Functions of `nn` have records of their
    own, whose arguments may stand in another order than those of the operator of their name."""
    name = operator._schema.name.partition("::")[2]
    name = _NAMES.get(name, name)
    own = [a.name for a in operator._schema.arguments if not a.is_out]
    packet = getattr(getattr(rushlight.ops, operator.namespace), name, None)
    public = [getattr(packet, o) for o in packet.overloads()] if packet is not None else []
    if not public or operator in public or any(a.is_out for a in operator._schema.arguments):
        return name, [i for i, n in enumerate(own) if n != "inplace" and not n.startswith("_")]
    wanted = public[0]._schema.arguments
    names = {a.name for a in wanted}
    others = [i for i, n in enumerate(own) if n not in names]
    order: list[int | _Default] = []
    for argument in wanted:
        if argument.name in own:
            order.append(own.index(argument.name))
        elif argument.has_default_value():
            order.append(_Default(argument.default_value))
        else:  # by another name, or not asked of programs
            order.append(others.pop(0) if others else _Default(_UNASKED.get(argument.name)))
    return name, order


_UNASKED = {"cudnn_enabled": True, "benchmark": False, "deterministic": False, "allow_tf32": True}
_NAMES = {
    "convolution": "_convolution",
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
}
_CONVOLUTION = "aten::_convolution"
