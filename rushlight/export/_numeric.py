"""Whether a graph and its program give the same results at some sizes."""

import copy
import itertools
from dataclasses import dataclass
from typing import Any

import rushlight as torch
from rushlight import compiler
from rushlight._higher_order_ops._regions import numbers_of, put
from rushlight._subclasses.fake_tensor import FakeTensor
from rushlight.fx.node import Node
from rushlight.nn.utils.stateless import _reparametrize_module
from rushlight.utils import _pytree as pytree

_TOLERANCE = 1e-3


@dataclass
class Computation:
    """A program and example inputs, which are cut to other sizes."""

    module: Any
    leaves: list
    in_spec: Any
    places: list

    def inputs(self, sizes):
        wanted = {}
        for p in self.places:
            if p.symbol in sizes:
                wanted.setdefault(p.leaf, {})[p.dim] = p.factor * sizes[p.symbol] + p.offset
        return [_cut(leaf, wanted.get(i, {})) for i, leaf in enumerate(self.leaves)]


def _cut(leaf, wanted):
    """The example at other sizes: some of its elements, or all several times."""
    if not isinstance(leaf, torch.Tensor):
        return wanted.get(None, leaf)
    leaf = leaf.detach()
    for dim, size in wanted.items():
        leaf = leaf.index_select(dim, torch.arange(size, device=leaf.device) % max(leaf.shape[dim], 1))
    return leaf.clone()


def computes_alike(trace, planned, sizes, computation):
    """Run both on parts of the example; anything that cannot run is not alike."""
    tensors = [held.tensor for held in trace.held]
    if any(isinstance(t, FakeTensor) or t.is_meta for t in (*tensors, *_tensors(computation.leaves))):
        return False
    try:
        with torch.random.fork_rng(), torch.no_grad():
            torch.manual_seed(0)
            results = pytree.tree_leaves(_run_program(trace, computation, computation.inputs(sizes)))
            torch.manual_seed(0)
            found = _run_graph(trace, planned, sizes, computation.inputs(sizes))
        return len(results) == len(found) and all(map(_close, results, found))
    except Exception:
        return False


def _tensors(values):
    return [v for v in values if isinstance(v, torch.Tensor)]


def _run_program(trace, computation, inputs):
    """The program with copies of its buffers, so that no state changes."""
    from .graph_signature import InputKind

    copies = {h.target: h.tensor.clone() for h in trace.held if h.kind == InputKind.BUFFER}
    args, kwargs = pytree.tree_unflatten(inputs, computation.in_spec)
    with _reparametrize_module(computation.module, copies), compiler._exporting_program():
        return computation.module(*args, **kwargs)


def _run_graph(trace, planned, sizes, inputs):
    expected = {(node, i): polynomial.number(sizes) for node, i, polynomial in planned}
    given = iter([*(h.tensor.detach().clone() for h in trace.held), *inputs])
    known = {}
    for node in trace.graph.nodes:
        if node.op == "placeholder":
            known[node] = _constant_at(node, next(given), expected)
            continue
        if node.op == "get_attr":
            constant = node.meta.get("constant")
            known[node] = (
                _region_at(node, expected) if constant is None else _constant_at(node, constant, expected)
            )
            continue
        leaves, spec = pytree.tree_flatten((node.args, node.kwargs))
        leaves = [
            known[leaf] if isinstance(leaf, Node) else expected.get((node, i), leaf)
            for i, leaf in enumerate(leaves)
        ]
        args, kwargs = pytree.tree_unflatten(leaves, spec)
        if node.op == "output":
            return pytree.tree_leaves(args)
        known[node] = node.target(*args, **kwargs)
    return []


def _constant_at(node, tensor, expected):
    """What a node stands for, a tensor of numbers with those that it has at other sizes."""
    changed = {i: value for (at, i), value in expected.items() if at is node}
    if not changed:
        return tensor
    numbers = node.meta["constant"].flatten().tolist()
    made = [changed.get(i, number) for i, number in enumerate(numbers)]
    return torch.tensor(made, dtype=tensor.dtype, device=tensor.device).reshape(tensor.shape)


def _region_at(node, expected):
    """The graph of an operator with the numbers that it has at other sizes."""
    changed = {i: value for (at, i), value in expected.items() if at is node}
    if not changed:
        return node.meta["region"]
    region = copy.deepcopy(node.meta["region"])
    for (inner, i), k in zip(numbers_of(region), itertools.count()):
        if k in changed:
            put(inner, i, changed[k])
    region.recompile()
    return region


def _close(a, b):
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return type(a) is type(b) and a == b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_floating_point() or a.is_complex():
        return torch.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    return torch.equal(a, b)
