"""The sizes of all results of a program as functions of its symbols, for its nodes to describe."""

import rushlight as torch
from rushlight._errors.capture import GuardOnDataDependentSymNode
from rushlight._subclasses.fake_tensor import FakeTensor

from ._align import Specialized, partners
from ._explain import Samples, Unexplained, explain, few


def describe(dynamics):
    """Let the tensors that nodes of the template describe have symbols where their sizes change."""
    sizes = _Sizes(dynamics)
    explained: dict = {}  # the numbers at the points tried -> what they are
    for node in dynamics.template.graph.nodes:
        for k, tensor in enumerate(_tensors(node.meta.get("val"))):
            found = {}
            for dim in range(tensor.dim()):
                column = sizes.column(node, k, dim)
                if column is None or len(set(column)) == 1:
                    continue
                if column not in explained:
                    explained[column] = sizes.explained(node, k, dim)
                if explained[column] is not None:
                    found[dim] = explained[column].sized(sizes.symbols)
            if found and isinstance(tensor, FakeTensor):
                tensor.size_numbers = found


class _Sizes:
    """The sizes of results at any sizes of the symbols."""

    def __init__(self, dynamics):
        self.dynamics, self.known = dynamics, {}
        self.base = {name: symbol.value for name, symbol in dynamics.kept.items()}
        self.symbols = dynamics.kept
        self.points = [self.base]
        for name, ends in dynamics.ranges.items():
            tried = ({**self.base, name: size} for size in few(ends, self.base[name]))
            self.points += [at for at in tried if dynamics.usable(at)]

    def at(self, sizes):
        """{node of the template: the shapes of its tensors}."""
        key = tuple(sizes.items())
        if key not in self.known:
            other = self.dynamics.at(sizes)
            found = partners(self.dynamics.template.graph, other.graph)
            self.known[key] = {
                node: [tuple(map(int, t.shape)) for t in _tensors(partner.meta.get("val"))]
                for node, partner in found.items()
            }
        return self.known[key]

    def column(self, node, k, dim):
        """The size at all points that are tried; None where it is not known of each."""
        try:
            return tuple(self.at(point)[node][k][dim] for point in self.points)
        except (Specialized, KeyError, IndexError):
            return None

    def explained(self, node, k, dim):
        def value_at(sizes):
            return self.at(sizes)[node][k][dim]

        dynamics = self.dynamics
        names = [
            name
            for name, ends in dynamics.ranges.items()
            if any(
                value_at({**self.base, name: size}) != value_at(self.base)
                for size in few(ends, self.base[name])
                if dynamics.usable({**self.base, name: size})
            )
        ]
        try:
            return explain(Samples(value_at, self.base, dynamics.ranges, dynamics.usable), names)
        except (Unexplained, Specialized, GuardOnDataDependentSymNode, KeyError, IndexError):
            return None


def _tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, (list, tuple)) else []
