"""Layered drawings of directed acyclic graphs, after Sugiyama, Tagawa and Toda (1981).

Nodes go to layers by their longest path to a sink, edges that cross layers get a waypoint in each, layers are
ordered by the mean place of the neighbours, and every node moves towards the middle of its neighbours.
"""

from collections import defaultdict
from graphlib import TopologicalSorter

__all__ = ["place"]

_SWEEPS = 8
_GAP = 18


def _layers(nodes, edges):
    """{node: layer}; each node stands right above the first of those it leads to."""
    after = defaultdict(list)
    for source, target in edges:
        after[source].append(target)
    height = {}
    for node in TopologicalSorter({n: after[n] for n in nodes}).static_order():
        height[node] = max((height[t] + 1 for t in after[node]), default=0)
    top = max(height.values(), default=0)
    return {node: top - height[node] for node in nodes}


def _with_waypoints(layer, edges):
    """Edges from layer to layer only, and the waypoints of each edge."""
    short, paths = [], {}
    for number, (source, target) in enumerate(edges):
        path = [source]
        for at in range(layer[source] + 1, layer[target]):
            waypoint = ("waypoint", number, at)
            layer[waypoint] = at
            path.append(waypoint)
        path.append(target)
        short += zip(path, path[1:], strict=False)
        paths[number] = path
    return short, paths


def _mean(values, otherwise):
    return sum(values) / len(values) if values else otherwise


def _order(rows, above, below):
    """Sorts each row by the mean place of its neighbours, going down and up again."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = above if down else below
        for row in rows if down else reversed(rows):
            place = {node: i for other in rows for i, node in enumerate(other)}
            wanted = {n: _mean([place[m] for m in neighbours[n]], place[n]) for n in row}
            row.sort(key=wanted.__getitem__)


def _spread(row, x, wanted, width):
    """Moves the row's nodes towards where they want to be, as far as their widths allow."""
    for order in (row, row[::-1]):
        edge = None
        sign = 1 if order is row else -1
        for node in order:
            target = wanted[node] * sign
            if edge is not None:
                target = max(target, edge + width[node] / 2 + _GAP)
            x[node] = target * sign if order is row else (x[node] + target * sign) / 2
            edge = target + width[node] / 2
    edge = None
    for node in row:  # averaging may have brought neighbours too close
        if edge is not None:
            x[node] = max(x[node], edge + width[node] / 2 + _GAP)
        edge = x[node] + width[node] / 2


def place(nodes, edges, widths):
    """Where to draw nodes and edges.

    Args:
        nodes: hashable names.
        edges: pairs of names.
        widths: {name: width}.

    Returns:
        ({name: (x, layer)}, [[(x, layer), ...] for each edge]).
    """
    layer = _layers(nodes, edges)
    short, paths = _with_waypoints(layer, edges)
    above, below = defaultdict(list), defaultdict(list)
    for source, target in short:
        above[target].append(source)
        below[source].append(target)
    rows = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node, at in layer.items():
        rows[at].append(node)
    _order(rows, above, below)

    width = {node: widths.get(node, 4) for node in layer}
    x = {}
    for row in rows:
        edge = 0.0
        for node in row:
            x[node] = edge + width[node] / 2
            edge += width[node] + _GAP
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 else reversed(rows):
            neighbours = above if sweep % 2 else below
            wanted = {n: _mean([x[m] for m in neighbours[n]], x[n]) for n in row}
            _spread(row, x, wanted, width)
    left = min((x[n] - width[n] / 2 for n in x), default=0)
    points = {node: (x[node] - left, layer[node]) for node in x}
    return {n: points[n] for n in nodes}, [[points[n] for n in paths[i]] for i in range(len(edges))]
