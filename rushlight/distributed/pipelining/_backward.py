"""A stage's backward pass in two halves: the gradients of its inputs at once, those of its parameters later.

The graph has nodes that lead to the inputs, and branches off them that lead to parameters only. The first
half runs the former and keeps the gradients that arrive where a branch begins; the second half starts there.
"""

import rushlight as torch
from rushlight.autograd.graph import GradientEdge, get_gradient_edge

__all__ = ["input_gradients"]


def input_gradients(outputs, gradients, inputs, parameters):
    """(the gradients of `inputs`, a function that adds those of `parameters` to their `.grad`).

    `gradients` are those of `outputs`. Where a parameter is used in several places, whose gradients could not
    be told apart later, all is done at once."""
    graph = _Graph(outputs, inputs, parameters)
    if graph.tangled:
        return _all_at_once(outputs, gradients, inputs), lambda: None
    arrived: dict = {}
    handles = [
        node.register_prehook(lambda grads, node=node: arrived.__setitem__(node, grads))
        for node in graph.branches
        if node in graph.to_inputs
    ]
    try:
        found = torch.autograd.grad(outputs, inputs, gradients, retain_graph=True, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
    for output, gradient in zip(outputs, gradients):  # those that do not depend on the inputs
        if output.grad_fn in graph.branches and output.grad_fn not in graph.to_inputs:
            before = arrived.setdefault(output.grad_fn, [None] * (output.output_nr + 1))
            before += [None] * (output.output_nr + 1 - len(before))
            before[output.output_nr] = gradient

    def finish():
        for node, grads in arrived.items():
            edges = [(GradientEdge(node, i), g) for i, g in enumerate(grads) if g is not None]
            if edges:
                torch.autograd.backward(
                    [edge for edge, _ in edges], [g for _, g in edges], inputs=graph.branches[node]
                )

    return found, finish


def _all_at_once(outputs, gradients, inputs):
    before = [t.grad for t in inputs]
    for t in inputs:
        t.grad = None
    torch.autograd.backward(outputs, gradients)
    found = [t.grad for t in inputs]
    for t, gradient in zip(inputs, before):
        t.grad = gradient
    return found


class _Graph:
    """What lies between outputs and leaves.

    `to_inputs` are the nodes that lead to inputs; `branches` has, for each node at which a branch to
    parameters begins, those parameters; `tangled` says that a parameter is at the end of more than one.
    """

    def __init__(self, outputs, inputs, parameters):
        roots = list(dict.fromkeys(t.grad_fn for t in outputs if t.grad_fn is not None))
        self._leaves = {get_gradient_edge(p).node: p for p in parameters if p.requires_grad}
        sources = {get_gradient_edge(t).node for t in inputs}
        order = _children_first(roots)
        self.to_inputs = set()
        for node in order:
            if node in sources or any(n in self.to_inputs for n, _ in node.next_functions):
                self.to_inputs.add(node)
        self.branches: dict = {}
        for node in order:
            if node in self.to_inputs:
                starts = [n for n, _ in node.next_functions if n is not None and n not in self.to_inputs]
                self._branch(node, starts)
        for node in roots:
            if node not in self.to_inputs:
                self._branch(node, [node])
        held = [id(p) for own in self.branches.values() for p in own]
        self.tangled = len(held) != len(set(held))

    def _branch(self, node, starts):
        own = [self._leaves[n] for n in _children_first(starts) if n in self._leaves]
        if own:
            self.branches[node] = own


def _children_first(roots):
    """All nodes that can be reached, each after those it leads to."""
    order, seen = [], set()
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(root.next_functions))]
        while stack:
            node, rest = stack[-1]
            following = next((n for n, _ in rest if n is not None and n not in seen), None)
            if following is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(following)
                stack.append((following, iter(following.next_functions)))
    return order
