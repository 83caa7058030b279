"""Programs that compute with numbers, of which files know sums and products of whole ones: the others are
computed by tensors of one element, and numbers that a program takes or returns are such tensors."""

import copy
import operator

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._regions import module_of

from .graph_signature import InputKind

aten = torch.ops.aten  # type: ignore[attr-defined]
_READ, _ASSERT = aten._local_scalar_dense.default, aten._assert_scalar.default
_FLOAT, _WHOLE = torch.float64, torch.int64

# What computes it, and the dtype of its operands; None: as they are.
_COMPUTED = {
    operator.truediv: (aten.div.Tensor, _FLOAT),
    operator.pow: (aten.pow.Tensor_Tensor, _FLOAT),
    torch._sym_sqrt: (aten.sqrt.default, _FLOAT),  # type: ignore[attr-defined]
    torch.sym_float: (None, _FLOAT),
    operator.mod: (aten.remainder.Tensor, None),
    operator.neg: (aten.neg.default, None),
    operator.ge: (aten.ge.Tensor, None),
    operator.gt: (aten.gt.Tensor, None),
    operator.le: (aten.le.Tensor, None),
    operator.lt: (aten.lt.Tensor, None),
    operator.eq: (aten.eq.Tensor, None),
    operator.ne: (aten.ne.Tensor, None),
    operator.and_: (aten.logical_and.default, None),
    operator.or_: (aten.logical_or.default, None),
    operator.not_: (aten.logical_not.default, None),
    torch.sym_not: (aten.logical_not.default, None),
}
_OF_FLOATS = {
    operator.add: aten.add.Tensor,
    operator.sub: aten.sub.Tensor,
    operator.mul: aten.mul.Tensor,
    operator.floordiv: aten.floor_divide.default,
    torch.sym_max: aten.maximum.default,
    torch.sym_min: aten.minimum.default,
}


def with_number_tensors(program):
    """The same program, in which files know all steps between numbers."""
    made, graph = copy.copy(program), fx.Graph()
    graph.output(graph.graph_copy(program.graph, {}))
    _Numbers(graph, program).run()
    made.graph_module = module_of(graph)
    return made


def number_tensors(source):
    """The same of the graph of a function that tensors are given."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(source, {}))
    _Numbers(graph, None).run()
    return graph


class _Numbers:
    def __init__(self, graph, program):
        self.graph, self.program = graph, program
        self.tensors = {}  # number -> the tensor of one element that it was read from

    def run(self):
        nodes = list(self.graph.nodes)
        inputs = [node for node in nodes if node.op == "placeholder"]
        rest = next(node for node in nodes if node.op != "placeholder")
        if self.program is not None:
            with self.graph.inserting_before(rest):
                self._read_inputs(inputs)
        for node in nodes:
            if node.op != "call_function":
                continue
            with self.graph.inserting_before(node):
                if node.target is _ASSERT:
                    truth, text = node.args
                    self._replace(node, self._call(node, aten._assert_async.msg, self._tensor(truth), text))
                elif node.target in _COMPUTED:
                    self._compute(node, *_COMPUTED[node.target])
                elif node.target in _OF_FLOATS and any(isinstance(self._value(a), float) for a in node.args):
                    self._compute(node, _OF_FLOATS[node.target], _FLOAT)
        output = self.graph.output_node()
        with self.graph.inserting_before(output):
            given = output.args[0]
            many = isinstance(given, (list, tuple))
            output.args = (tuple(map(self._result, given)) if many else self._result(given),)

    def _read_inputs(self, inputs):
        guards = iter(self.program.guards)
        for node, spec in zip(inputs, self.program.graph_signature.input_specs):
            if spec.kind != InputKind.USER_INPUT or (place := next(guards).places().get(None)) is None:
                continue
            number = self.graph.call_function(_READ, (node,))
            number.meta["val"] = int(node.meta["val"])
            node.replace_all_uses_with(number, delete_user_cb=lambda user, number=number: user is not number)
            self.tensors[number] = node
            self._check_range(number, self.program.symbols[place.symbol])

    def _check_range(self, number, symbol):
        for compare, bound in ((aten.ge.Scalar, symbol.lower), (aten.le.Scalar, symbol.upper)):
            if isinstance(bound, int) and bound > 0:
                found = self._call(number, compare, self.tensors[number], bound)
                text = f"{number.args[0]} is outside of [{symbol.lower}, {symbol.upper}]"
                self._call(number, aten._assert_async.msg, found, text)

    def _compute(self, node, target, dtype):
        values = [self._value(a) for a in node.args]
        if dtype is None and any(isinstance(v, float) for v in values):
            dtype = _FLOAT
        made = [self._tensor(a, dtype) for a in node.args]
        found = made[0] if target is None else self._call(node, target, *made)
        number = self._call(node, _READ, found)
        number.meta["val"] = node.meta["val"]
        self.tensors[number] = found
        self._replace(node, number)

    def _replace(self, node, made):
        node.replace_all_uses_with(made)
        self.graph.erase_node(node)

    def _result(self, value):
        return self._tensor(value) if isinstance(self._value(value), (bool, int, float)) else value

    def _value(self, argument):
        return argument.meta.get("val") if isinstance(argument, fx.Node) else argument

    def _tensor(self, number, dtype=None):
        """A tensor of one element for a number or a node that is one."""
        value = self._value(number)
        own = torch.bool if isinstance(value, bool) else _FLOAT if isinstance(value, float) else _WHOLE
        known = self.tensors.get(number) if isinstance(number, fx.Node) else None
        if known is not None and dtype in (None, own):
            return known
        made = self.graph.call_function(aten.scalar_tensor.default, (number,), {"dtype": dtype or own})
        made.meta["val"] = torch.empty((), dtype=dtype or own, device="meta")
        return made

    def _call(self, like, target, *args):
        made = self.graph.call_function(target, args)
        made.stack_trace = like.stack_trace
        return made
