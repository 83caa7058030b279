"""Programs whose choices are computed whole, and whose maps go row by row: files hold no functions."""

import copy

import rushlight as torch
from rushlight import fx
from rushlight._higher_order_ops._choice_operator import choice_operator
from rushlight._higher_order_ops._map_operator import map_operator
from rushlight._higher_order_ops._regions import module_of
from rushlight._higher_order_ops._scan_operator import scan_operator
from rushlight._higher_order_ops.wrap import wrap_with_autocast
from rushlight._ops import OpOverload

from ._decompose import decompose
from ._grad_regions import is_marked, mark, without_regions
from ._lower import UnsupportedError, place_of

aten = torch.ops.aten  # type: ignore[attr-defined]


def spread(program, writer="rushlight.export.save"):
    """The same program without operators that take functions, as far as it has the same results; ``writer``
    is who refuses others."""
    if any(node.target is wrap_with_autocast for node in program.graph.nodes):
        program = decompose(program, {}, functional=False)  # whose casts are nodes
    program = without_regions(program)
    if not any("region" in node.meta for node in program.graph.nodes):
        return program
    made, graph = copy.copy(program), fx.Graph()
    graph.output(graph.graph_copy(program.graph, {}))
    while calls := [node for node in graph.nodes if node.target in _KINDS]:
        for node in calls:
            _Spreading(graph, node, writer).run()
    graph.eliminate_dead_code(lambda node: node.is_impure() and "region" not in node.meta)
    made.graph_module = module_of(graph)
    return made


class _Spreading:
    """One call, which becomes the steps of its functions."""

    def __init__(self, graph, call, writer):
        self.graph, self.call, self.writer = graph, call, writer
        self.results = call.meta["val"]

    def run(self):
        before = set(self.graph.nodes)
        with self.graph.inserting_before(self.call):
            outputs = _KINDS[self.call.target](self)
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
        columns = [self._steps(function, [*rows, *given]) for rows in self._rows(xs, "maps a function")]
        return self._stacked(columns, self.results)

    def _scanned(self):
        function, carry, xs, given = self.call.args
        count, columns = len(carry), []
        for rows in self._rows(xs, "scans"):
            found = self._steps(function, [*carry, *rows, *given])
            carry = found[:count]
            columns.append(found[count:])
        return [*carry, *self._stacked(columns, self.results[count:])]

    def _rows(self, xs, what):
        first = xs[0].meta["val"]
        if getattr(first, "size_numbers", None) and 0 in first.size_numbers:
            self._refuse(f"{what} over a number of rows that may change, which files cannot hold")
        return [
            [self._node(aten.select.int, (x, 0, i), x.meta["val"][i]) for x in xs]
            for i in range(first.shape[0])
        ]

    def _stacked(self, columns, values):
        return [
            self._node(aten.stack.default, (list(column),), value)
            for column, value in zip(zip(*columns, strict=True), values, strict=True)
        ]

    def _steps(self, function, given):
        """The results of a function on nodes of the graph."""
        region = function.meta["region"]
        for node in region.graph.nodes:
            if isinstance(node.target, OpOverload) and node.target._schema.is_mutable:
                self._refuse(
                    f"calls {node.target} in a function of an operator: files need functions that write "
                    "to nothing, as run_decompositions() makes them"
                )
        inputs = [n for n in region.graph.nodes if n.op == "placeholder"]
        results = self.graph.graph_copy(region.graph, dict(zip(inputs, given, strict=True)))
        return results if isinstance(results, (tuple, list)) else (results,)

    def _node(self, target, args, value):
        node = self.graph.call_function(target, args)
        node.meta["val"] = value
        node.stack_trace = self.call.stack_trace
        return node

    def _refuse(self, what):
        place = place_of(self.call)
        where = f"{place[0]}, line {place[1]}: the" if place else "the"
        raise UnsupportedError(f"{self.writer}: {where} program {what}")


_KINDS = {
    choice_operator: _Spreading._chosen,
    map_operator: _Spreading._mapped,
    scan_operator: _Spreading._scanned,
}
