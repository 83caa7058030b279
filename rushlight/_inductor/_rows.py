"""Reductions and softmax along the last dimension as steps of a chain: its tiles are whole rows, so that what
leads to a row's sum, and what is done with it, find the row in cache.
"""

import operator

import rushlight as torch
from rushlight.fx import Node

from ._layouts import laid_out

__all__ = ["RowStep", "emit_rows", "row_shape", "row_step"]

aten = torch.ops.aten  # type: ignore[attr-defined]
_SUM, _MAX, _MIN, _SOFTMAX, _LOG_SOFTMAX = -2, -3, -4, -5, -6
_REDUCTIONS = {"sum.dim_IntList": _SUM, "mean.dim": _SUM, "amax.default": _MAX, "amin.default": _MIN}
_SOFTMAXES = {"_softmax.default": _SOFTMAX, "_log_softmax.default": _LOG_SOFTMAX}
_LONGEST = 1 << 12  # row
_FEWEST = {"cpu": 1 << 20}  # elements: what is smaller lies in cache anyway


class RowStep:
    """A node as a step over rows of `shape`: of one operand, with one result a row, or a row of them."""

    def __init__(self, code, operand, reduces, keeps, divisor=None):
        self.formula, self.operands, self.parameters = code, [operand], [] if divisor is None else [divisor]
        self.reduces, self.keeps = reduces, keeps  # keeps: the dimension stays, with size 1


def row_shape(shape):
    """The shape of what has one element for each row."""
    return (*shape[:-1], 1)


def row_step(node, device):
    """How a node is a step over rows on a type of device, or None."""
    if node.op != "call_function" or getattr(node.target, "namespace", None) != "aten" or node.kwargs:
        return None
    name, args = f"{node.target._opname}.{node.target._overloadname}", node.args
    if name not in _REDUCTIONS and name not in _SOFTMAXES or len(args) < 2 or not isinstance(args[0], Node):
        return None
    value, result = args[0].meta["val"], node.meta["val"]
    if not value.dim() or not 2 <= value.shape[-1] <= _LONGEST or result.dtype != value.dtype:
        return None
    if value.numel() < _FEWEST.get(device, 1):
        return None
    dims = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
    if [d % value.dim() for d in dims if isinstance(d, int)] != [value.dim() - 1]:
        return None
    if name in _SOFTMAXES:
        return None if args[2] else RowStep(_SOFTMAXES[name], args[0], False, True)
    divisor = {"sum.dim_IntList": 1.0, "mean.dim": float(value.shape[-1])}.get(name)
    return RowStep(_REDUCTIONS[name], args[0], True, bool(len(args) > 2 and args[2]), divisor)


class _Program:
    """The steps of a chain, and the inputs and numbers that they take."""

    def __init__(self, chain):
        self.chain = chain
        self.inputs: dict = {}  # (node, one element a row) -> position
        self.numbers: list = []
        self.steps: list = []
        self.at: dict = {}  # member -> its step

    def add(self, member, step):
        by_row = member in self.chain.by_row and not isinstance(step, RowStep)
        operands = [self._operand(a, by_row) for a in step.operands]
        self.at[member] = "step", len(self.steps)
        self.steps.append((step.formula, operands, [self._number(p) for p in step.parameters]))

    def _operand(self, value, by_row):
        if not isinstance(value, Node):
            return self._number(value)
        if value not in self.chain.nodes:
            return "input", self.inputs.setdefault((value, by_row), len(self.inputs))
        return self.at[value]

    def _number(self, value):
        self.numbers.append(float(value))
        return "number", len(self.numbers) - 1

    def code(self, outputs):
        first = {"input": 0, "number": len(self.inputs), "step": len(self.inputs) + len(self.numbers)}
        words = [len(self.steps)]
        for formula, operands, parameters in self.steps:
            words += [formula, *(first[kind] + i for kind, i in operands), *(i for _, i in parameters)]
        return [*words, len(outputs), *(first["step"] + self.at[m][1] for m in outputs)]


def emit_rows(graph, chain, members, outputs):
    """One node in place of the members; returns what stands for the outputs."""
    program = _Program(chain)
    for member in members:
        program.add(member, chain.nodes[member])
    by_row = [i for (_, rows), i in program.inputs.items() if rows]
    inputs = [node for node, _ in program.inputs]
    arguments = (inputs, program.code(outputs), program.numbers, chain.dtype, list(chain.shape), by_row)
    with graph.inserting_after(members[-1]):
        fused = last = graph.call_function(aten._fused_rows.default, arguments)
    fused.meta["val"], parts = [], []
    for i, member in enumerate(outputs):
        value = member.meta["val"]
        with graph.inserting_after(last):
            last = graph.call_function(operator.getitem, (fused, i))
        last.meta["val"] = value
        if member in chain.closed:
            last.meta["val"] = torch.empty(row_shape(chain.shape), dtype=value.dtype, device="meta")
            fused.meta["val"].append(last.meta["val"])
            with graph.inserting_after(last):
                last = graph.call_function(aten.squeeze.dim, (last, -1))
            last.meta["val"] = value
        else:
            last.meta["val"] = value.contiguous()
            fused.meta["val"].append(last.meta["val"])
        last = laid_out(graph, last, None, value)
        parts.append(last)
    return fused, parts
