"""A drawn graph: boxes and arrows, as SVG or DOT."""

import os
from dataclasses import dataclass, field
from html import escape

from rushlight.viz._layout import place

__all__ = ["Box", "Picture"]

_LETTER = 6.7  # width of a letter, in pixels
_LINE = 15
_ROW = 34  # between layers
_INDENT = 26  # of a tree's branches
_COLOURS = {
    "leaf": ("#cfe3ff", "#2f6db5"),
    "saved": ("#ffe3c2", "#c0762a"),
    "result": ("#cdeccd", "#3b8a3e"),
    "node": ("#f2f2f2", "#777777"),
}


@dataclass
class Box:
    """A node of the picture: lines of text, and what it is (`leaf`, `saved`, `result` or `node`)."""

    lines: list
    kind: str = "node"
    x: float = 0  # of the middle, once it has its place
    y: float = 0  # of the top

    @property
    def width(self):
        return max(map(len, self.lines)) * _LETTER + 18

    @property
    def height(self):
        return len(self.lines) * _LINE + 8


@dataclass
class Picture:
    """Boxes by name and arrows between them. Notebooks show it; `save` writes a file.

    A ``tree`` has its boxes below each other, in their order, and arrows from each to its branches.
    """

    boxes: dict
    arrows: list = field(default_factory=list)
    title: str = ""
    tree: bool = False

    @property
    def dot(self):
        """The picture in Graphviz's language."""
        number = {name: f"n{i}" for i, name in enumerate(self.boxes)}
        lines = [
            "digraph {",
            '  node [shape=box, style="rounded,filled", fontname="monospace", fontsize=10];',
        ]
        if self.tree:
            lines.append("  rankdir=LR;")
        for name, box in self.boxes.items():
            fill, line = _COLOURS[box.kind]
            text = "\\n".join(t.replace("\\", "\\\\").replace('"', '\\"') for t in box.lines)
            lines.append(f'  {number[name]} [label="{text}", fillcolor="{fill}", color="{line}"];')
        lines += [f"  {number[a]} -> {number[b]};" for a, b in self.arrows]
        return "\n".join([*lines, "}", ""])

    @property
    def svg(self):
        """The picture as an SVG document."""
        paths = self._place_tree() if self.tree else self._place_layers()
        width = max((box.x + box.width / 2 for box in self.boxes.values()), default=0) + 20
        height = max((box.y + box.height for box in self.boxes.values()), default=0) + 20
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -10 {width:.0f} {height:.0f}" '
            f'width="{width:.0f}" height="{height:.0f}" font-family="monospace" font-size="11">',
            f"<title>{escape(self.title)}</title>",
            '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0 0L8 4L0 8z" fill="#777"/></marker></defs>',
        ]
        parts += [f'<path d="{d}" fill="none" stroke="#777" marker-end="url(#end)"/>' for d in paths]
        parts += [_draw(box) for box in self.boxes.values()]
        return "\n".join([*parts, "</svg>", ""])

    def _place_tree(self):
        parent = {b: a for a, b in self.arrows}
        y, paths = 0, []
        for name, box in self.boxes.items():
            above = self.boxes.get(parent.get(name))
            left = above.x - above.width / 2 + _INDENT if above else 0
            box.x, box.y = left + box.width / 2, y
            y += box.height + 6
            if above:
                paths.append(f"M{left - 14:.1f} {above.y + above.height}V{box.y + box.height / 2}H{left:.1f}")
        return paths

    def _place_layers(self):
        widths = {name: box.width for name, box in self.boxes.items()}
        points, paths = place(list(self.boxes), self.arrows, widths)
        tallest = {}
        for name, (_, layer) in points.items():
            tallest[layer] = max(tallest.get(layer, 0), self.boxes[name].height)
        middles, y = {}, 0
        for layer in sorted(tallest):
            middles[layer] = y + tallest[layer] / 2
            y += tallest[layer] + _ROW
        for name, (x, layer) in points.items():
            box = self.boxes[name]
            box.x, box.y = x, middles[layer] - box.height / 2
        curves = []
        for (start, end), path in zip(self.arrows, paths, strict=True):
            waypoints = [(x, middles[layer], tallest[layer]) for x, layer in path[1:-1]]
            curves.append(_curve(self.boxes[start], waypoints, self.boxes[end]))
        return curves

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Writes the picture as SVG or DOT, as the name's ending (`.svg`, `.dot`, `.gv`) says.

        Raises:
            ValueError: another ending.
        """
        ending = os.path.splitext(path)[1]
        if ending not in (".svg", ".dot", ".gv"):
            raise ValueError(f"save: the name must end in .svg, .dot or .gv, but it is {os.fspath(path)!r}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg if ending == ".svg" else self.dot)


def _draw(box):
    fill, line = _COLOURS[box.kind]
    left, bold = box.x - box.width / 2, ' font-weight="bold"'
    text = "".join(
        f'<tspan x="{box.x:.1f}" y="{box.y + 15 + i * _LINE:.1f}"{"" if i else bold}>{escape(t)}</tspan>'
        for i, t in enumerate(box.lines)
    )
    return (
        f'<rect x="{left:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height}" rx="5" '
        f'fill="{fill}" stroke="{line}"/><text text-anchor="middle">{text}</text>'
    )


def _curve(start, waypoints, end):
    """From the bottom of a box past the boxes of the layers between to the top of another."""
    stops = [(start.x, start.y + start.height)]
    for x, middle, height in waypoints:
        stops += [(x, middle - height / 2), (x, middle + height / 2)]
    stops.append((end.x, end.y))
    d = f"M{start.x:.1f} {start.y + start.height:.1f}"
    for (x0, y0), (x1, y1) in zip(stops, stops[1:], strict=False):
        half = (y0 + y1) / 2
        d += f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
    return d
