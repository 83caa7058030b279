"""The cheapest set of values that separates one end of a graph from the other: Dinic's minimum cut."""

import math
from collections import deque

__all__ = ["FlowGraph"]


class FlowGraph:
    """Edges with capacities between any keys; `cut` finds the side of the source."""

    def __init__(self):
        self.edges = {}  # key -> numbers of edges that leave it
        self.targets, self.capacities = [], []  # by number; edge i and edge i ^ 1 are one another's reverse

    def add(self, source, target, capacity):
        for start, end, room in ((source, target, capacity), (target, source, 0)):
            self.edges.setdefault(start, []).append(len(self.targets))
            self.targets.append(end)
            self.capacities.append(room)

    def cut(self, source, sink):
        """(what the cut costs, keys on the source's side)."""
        total = 0
        while True:
            levels = self._levels(source)
            if sink not in levels or total == math.inf:
                return total, set(levels)
            rest = {key: iter(edges) for key, edges in self.edges.items()}
            while (pushed := self._push(source, sink, levels, rest)) > 0:
                total += pushed

    def _levels(self, source):
        """Distance from the source, over edges with room."""
        levels, pending = {source: 0}, deque([source])
        while pending:
            key = pending.popleft()
            for edge in self.edges.get(key, ()):
                target = self.targets[edge]
                if self.capacities[edge] > 0 and target not in levels:
                    levels[target] = levels[key] + 1
                    pending.append(target)
        return levels

    def _push(self, source, sink, levels, rest):
        """Send what one path takes; 0 where there is none."""
        path, key = [], source
        while key != sink:
            for edge in rest[key]:
                target = self.targets[edge]
                if self.capacities[edge] > 0 and levels.get(target, -1) == levels[key] + 1:
                    path.append(edge)
                    key = target
                    break
            else:
                if not path:
                    return 0
                key = self.targets[path.pop() ^ 1]  # a dead end, whose edges are used up
        amount = min(self.capacities[edge] for edge in path)
        for edge in path:
            self.capacities[edge] -= amount
            self.capacities[edge ^ 1] += amount
        return amount
