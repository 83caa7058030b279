"""A directed graph of hashable nodes with attributes."""

from collections import deque

__all__ = ["DiGraph"]


class DiGraph:
    """Nodes, in the order in which they came, and edges between them."""

    def __init__(self):
        self._node, self._successors, self._predecessors = {}, {}, {}
        self._order = iter(range(1 << 62))
        self._node_order = {}

    def add_node(self, n, **attributes):
        """Add a node, or set more of its attributes."""
        if n not in self._node:
            self._node[n], self._successors[n], self._predecessors[n] = {}, {}, {}
            self._node_order[n] = next(self._order)
        self._node[n].update(attributes)

    def add_edge(self, u, v):
        """Add an edge, and its nodes where they are new."""
        self.add_node(u)
        self.add_node(v)
        self._successors[u][v] = self._predecessors[v][u] = True

    def successors(self, n):
        if n not in self._successors:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(self._successors[n])

    def predecessors(self, n):
        if n not in self._predecessors:
            raise ValueError(f"The node {n} is not in the digraph.")
        return iter(self._predecessors[n])

    @property
    def edges(self):
        return ((u, v) for u, following in self._successors.items() for v in following)

    @property
    def nodes(self):
        return self._node

    def __iter__(self):
        return iter(self._node)

    def __contains__(self, n):
        try:
            return n in self._node
        except TypeError:
            return False  # what cannot be hashed is no node

    def forward_transitive_closure(self, src):
        """All nodes that can be reached from one, with it."""
        return self._reached(src, self.successors)

    def backward_transitive_closure(self, src):
        """All nodes from which one can be reached, with it."""
        return self._reached(src, self.predecessors)

    @staticmethod
    def _reached(start, following):
        found, waiting = {start}, deque([start])
        while waiting:
            for n in following(waiting.popleft()):
                if n not in found:
                    found.add(n)
                    waiting.append(n)
        return found

    def all_paths(self, src, dst):
        """The part of the graph that lies on paths between two nodes, in the language of Graphviz."""
        between = self.forward_transitive_closure(src) & self.backward_transitive_closure(dst)
        edges = [(u, v) for u, v in self.edges if u in between and v in between]
        return _dot(edges, ())

    def first_path(self, dst):
        """Names on a path to a node from one that nothing leads to."""
        path = []
        while dst is not None and dst not in path:
            path.append(dst)
            dst = min(self._predecessors[dst], default=None)
        return path[::-1]

    def to_dot(self):
        """The graph in the language of Graphviz."""
        return _dot(list(self.edges), list(self._node))


def _dot(edges, nodes):
    lines = [f'"{u}" -> "{v}";' for u, v in edges]
    lone = set(nodes) - {n for edge in edges for n in edge}
    lines += [f'"{n}";' for n in nodes if n in lone]
    return "digraph G {\nrankdir = LR;\nnode [shape=box];\n" + "\n".join(lines) + "\n}\n"
