"""Programs as files hold them: choices are computed whole and short maps go row by row; what loops, or must
not run in vain, stays an operator of functions, whose graphs read tensors alone."""

import copy

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._choice_operator import choice_operator
from rushlight._higher_order_ops._loop_operator import loop_operator
from rushlight._higher_order_ops._map_operator import map_operator
from rushlight._higher_order_ops._regions import all_nodes, module_of
from rushlight._higher_order_ops._scan_operator import scan_operator
from rushlight._higher_order_ops.wrap import wrap_with_autocast
from rushlight._ops import OpOverload

from ._decompose import decompose
from ._grad_regions import is_marked, mark, without_regions
from ._lower import UnsupportedError, place_of

aten = torch.ops.aten  # type: ignore[attr-defined]
_MOST_STEPS = 4096  # of the rows of a map or a scan that are written one by one
_CHECKS = "_assert_async", "_assert_scalar", "_assert_tensor_metadata"


def spread(program, writer="rushlight.export.save"):
    """The same program with no more operators of functions than it needs; ``writer`` is who refuses what
    files cannot hold."""
    if any(node.target is wrap_with_autocast for node in program.graph.nodes):
        program = decompose(program, {}, functional=False)  # whose casts are nodes
    program = without_regions(program)
    if not any("region" in node.meta for node in program.graph.nodes):
        return program
    made = copy.copy(program)
    graph = program.graph
    made.graph_module = module_of(_spread(graph, writer, set(graph.nodes)))
    return made


def _spread(source, writer, measured):
    """A copy of the graph. Of sizes at nodes that are not ``measured`` nobody knows whether they change."""
    graph, kept, copies = fx.Graph(), set(), {}
    graph.output(graph.graph_copy(source, copies))
    measured = {copies[node] for node in measured if node in copies}
    while calls := [node for node in graph.nodes if node.target in FUNCTION_OPERATORS and node not in kept]:
        for node in calls:
            call = _Spreading(graph, node, writer, node in measured)
            if call.stays():
                call.keep()
                kept.add(node)
            else:
                call.run()
    graph.eliminate_dead_code(lambda node: node.is_impure() and "region" not in node.meta)
    return graph


class _Spreading:
    """One call, which becomes the steps of its functions."""

    def __init__(self, graph, call, writer, measured):
        self.graph, self.call, self.writer, self.measured = graph, call, writer, measured
        self.results = call.meta["val"]

    def stays(self):
        """Whether the call is written as an operator of functions."""
        target, args = self.call.target, self.call.args
        if target is loop_operator:
            return True
        regions = self._regions()
        if target is choice_operator:
            return any(_runs_only_if_chosen(node) for region in regions for node in all_nodes(region.graph))
        rows = args[2 if target is scan_operator else 1][0].meta["val"]
        changes = not self.measured or 0 in (getattr(rows, "size_numbers", None) or {})
        return changes or rows.shape[0] * len(regions[0].graph.nodes) > _MOST_STEPS

    def keep(self):
        """The graphs without operators that need not be there; numbers they are given become tensors."""
        functions = [a for a in self.call.args if isinstance(a, fx.Node) and "region" in a.meta]
        *rest, given = self.call.args
        numbers = [i for i, a in enumerate(given) if not isinstance(_value(a), torch.Tensor)]
        with self.graph.inserting_before(self.call):
            tensors = [self._tensor(a) if i in numbers else a for i, a in enumerate(given)]
        self.call.args = (*rest, tensors)
        for node in functions:
            region = node.meta["region"]
            self._refuse_writes(region)
            graph = fx.Graph()
            graph.output(graph.graph_copy(region.graph, {}))
            inputs = [n for n in graph.nodes if n.op == "placeholder"]
            for i in numbers:
                _read(graph, inputs[len(inputs) - len(given) + i], tensors[i].meta["val"])
            node.meta["region"] = module_of(_spread(graph, self.writer, ()))

    def _tensor(self, number):
        dtype = torch.float64 if isinstance(_value(number), float) else torch.int64
        value = torch.empty((), dtype=dtype, device="meta")
        made = self._node(aten.scalar_tensor.default, (number,), value)
        made.kwargs = {"dtype": dtype}
        return made

    def _regions(self):
        return [a.meta["region"] for a in self.call.args if isinstance(a, fx.Node) and "region" in a.meta]

    def run(self):
        before = set(self.graph.nodes)
        with self.graph.inserting_before(self.call):
            outputs = FUNCTION_OPERATORS[self.call.target](self)
        if is_marked(self.call):
            mark(set(self.graph.nodes) - before)
        for user in list(self.call.users):
            user.replace_all_uses_with(outputs[user.args[1]])
            self.graph.erase_node(user)
        self.graph.erase_node(self.call)

    def _chosen(self):
        truth, one, other, operands = self.call.args
        if truth.meta["val"].dim():
            truth = self._node(aten.view.default, (truth, []), truth.meta["val"].new_empty(()))
        if truth.meta["val"].dtype is not torch.bool:
            value = truth.meta["val"].to(torch.bool)
            truth = self._node(aten.ne.Scalar, (truth, 0), value)
        pairs = zip(self._steps(one, operands), self._steps(other, operands), self.results, strict=True)
        return [self._node(aten.where.self, (truth, a, b), value) for a, b, value in pairs]

    def _mapped(self):
        function, xs, given = self.call.args
        columns = [self._steps(function, [*rows, *given]) for rows in self._rows(xs)]
        return self._stacked(columns, self.results)

    def _scanned(self):
        function, carry, xs, given = self.call.args
        count, columns = len(carry), []
        for rows in self._rows(xs):
            found = self._steps(function, [*carry, *rows, *given])
            carry = found[:count]
            columns.append(found[count:])
        return [*carry, *self._stacked(columns, self.results[count:])]

    def _rows(self, xs):
        return [
            [self._node(aten.select.int, (x, 0, i), x.meta["val"][i]) for x in xs]
            for i in range(xs[0].meta["val"].shape[0])
        ]

    def _stacked(self, columns, values):
        return [
            self._node(aten.stack.default, (list(column),), value)
            for column, value in zip(zip(*columns, strict=True), values, strict=True)
        ]

    def _steps(self, function, given):
        """The results of a function on nodes of the graph."""
        region = function.meta["region"]
        self._refuse_writes(region)
        inputs = [n for n in region.graph.nodes if n.op == "placeholder"]
        results = self.graph.graph_copy(region.graph, dict(zip(inputs, given, strict=True)))
        return results if isinstance(results, (tuple, list)) else (results,)

    def _refuse_writes(self, region):
        for node in region.graph.nodes:
            if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
                self._refuse(
                    f"calls {node.target} in a function of an operator: files need functions that write "
                    "to nothing, as run_decompositions() makes them"
                )

    def _node(self, target, args, value):
        node = self.graph.call_function(target, args)
        node.meta["val"] = value
        node.stack_trace = self.call.stack_trace
        return node

    def _refuse(self, what):
        place = place_of(self.call)
        where = f"{place[0]}, line {place[1]}: the" if place else "the"
        raise UnsupportedError(f"{self.writer}: {where} program {what}")


def _value(argument):
    return argument.meta.get("val") if isinstance(argument, fx.Node) else argument


def _runs_only_if_chosen(node):
    """Whether a node may fail, or go on for ever, where a program would not have come to it."""
    return node.target is loop_operator or getattr(node.target, "_opname", None) in _CHECKS


def _read(graph, node, value):
    """An input that was a number, and is a tensor of one element now."""
    users, node.meta["val"] = list(node.users), value
    after = [n for n in graph.nodes if n.op == "placeholder"][-1]
    with graph.inserting_after(after):
        number = graph.call_function(aten._local_scalar_dense.default, (node,))
    number.meta["val"] = 0.0 if value.dtype.is_floating_point else 2
    node.replace_all_uses_with(number, delete_user_cb=users.__contains__)


# The operators that take functions, and what writes their steps.
FUNCTION_OPERATORS: dict = {
    choice_operator: _Spreading._chosen,
    map_operator: _Spreading._mapped,
    scan_operator: _Spreading._scanned,
    loop_operator: None,  # always stays
}
