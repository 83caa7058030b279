"""Operators of functions as ONNX's: If, Loop and Scan, whose bodies read what is around them by name."""

import dataclasses

import rushlight as torch
from rushlight._higher_order_ops._choice_operator import choice_operator
from rushlight._higher_order_ops._loop_operator import loop_operator
from rushlight._higher_order_ops._map_operator import map_operator
from rushlight._higher_order_ops._scan_operator import scan_operator
from rushlight.onnx._graph import Value

__all__ = ["OPERATORS", "write"]


def write(graph, steps, node, args):
    """The values of a call of such an operator.

    Args:
        steps: ``steps(function, values)`` writes the nodes of a function, and gives its results.
        args: the call's, with values in place of nodes.
    """
    results, like = OPERATORS[node.target](_Call(graph, steps), *args), node.meta["val"]
    return [dataclasses.replace(r, shape=tuple(v.shape)) for r, v in zip(results, like, strict=True)]


class _Call:
    def __init__(self, graph, steps):
        self.graph, self.steps = graph, steps

    def choose(self, truth, one, other, given):
        branches, results = [], []
        for function in (one, other):
            with self.graph.body() as nodes:
                results = self._results(function, given)
            branches.append(self.graph.subgraph("branch", nodes, (), results))
        return self._op("If", results, self._truth(truth), then_branch=branches[0], else_branch=branches[1])

    def loop(self, condition, body, carried, given):
        g, carried = self.graph, self._plain(carried)
        begin = self._truth(self.steps(condition, [*carried, *given])[0])
        inputs = [g.input("iteration", torch.int64, ()), g.input("going", torch.bool, ())]
        inputs += [g.input("carried", v.dtype, v.shape) for v in carried]
        with g.body() as nodes:
            results = self._results(body, [*inputs[2:], *given])
            again = g.op("Identity", self._truth(self.steps(condition, [*results, *given])[0]))
        steps = g.subgraph("steps", nodes, inputs, [again, *results])
        return self._op("Loop", carried, None, begin, *carried, body=steps)

    def map(self, function, rows, given):
        return self.scan(function, (), rows, given)

    def scan(self, function, carried, rows, given):
        g, carried, rows = self.graph, self._plain(carried), self._plain(rows)
        inputs = [g.input("carried", v.dtype, v.shape) for v in carried]
        inputs += [g.input("row", v.dtype, v.shape[1:]) for v in rows]
        with g.body() as nodes:
            results = self._results(function, [*inputs, *given])
        steps = g.subgraph("steps", nodes, inputs, results)
        return self._op("Scan", results, *carried, *rows, body=steps, num_scan_inputs=len(rows))

    def _results(self, function, values):
        """A function's results by names that the body alone has."""
        return [self.graph.op("Identity", v) for v in self._plain(self.steps(function, values))]

    def _plain(self, values):
        for value in values:
            if not isinstance(value, Value):
                raise NotImplementedError("onnx.export: a loop, a map or a choice of complex numbers")
            if value.quantizer is not None:
                raise NotImplementedError("onnx.export: a loop, a map or a choice of quantised tensors")
        return list(values)

    def _truth(self, value):
        value = self.graph.cast(value, torch.bool)
        return self.graph.reshape(value, []) if value.dim else value

    def _op(self, kind, like, *inputs, **attributes):
        made = self.graph.op(kind, *inputs, outputs=len(like), dtype=torch.bool, shape=(), **attributes)
        made = made if isinstance(made, tuple) else (made,)
        return [dataclasses.replace(m, dtype=v.dtype) for m, v in zip(made, like, strict=True)]


OPERATORS: dict = {
    choice_operator: _Call.choose,
    loop_operator: _Call.loop,
    map_operator: _Call.map,
    scan_operator: _Call.scan,
}
