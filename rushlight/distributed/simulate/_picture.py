"""Predictions as pictures, in SVG."""

import html
from math import log10

_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}" font-family="sans-serif" font-size="12">'
)


def draw_timeline(prediction, path=None):
    """A step over time, two rows a stage: what it computes, what it sends. SVG, also written to `path`."""
    stages = sorted({stage for stage, *_ in prediction.timeline})
    scale = 1000 / max(prediction.step_time, 1e-12)
    parts = [_HEAD.format(1130, 44 * len(stages) + 40)]
    for row, stage in enumerate(stages):
        parts.append(f'<text x="4" y="{row * 44 + 26}">stage {stage}</text>')
    for stage, what, name, start, end in prediction.timeline:
        y = stages.index(stage) * 44 + (4 if what == "compute" else 22)
        color = _COLORS[1] if what == "network" else _COLORS[4] if name.endswith("back") else _COLORS[0]
        title = html.escape(f"{name}: {(end - start) * 1e3:.3f} ms")
        parts.append(
            f'<rect x="{80 + start * scale:.1f}" y="{y}" width="{max((end - start) * scale, 0.5):.1f}" '
            f'height="16" fill="{color}" stroke="white" stroke-width="0.3"><title>{title}</title></rect>'
        )
    text = f"{prediction.step_time * 1e3:.2f} ms a step; blue: computing, red: the network"
    parts.append(f'<text x="80" y="{44 * len(stages) + 24}">{text}</text></svg>')
    return _finished(parts, path)


def draw_scaling(curves, path=None, title="Efficiency"):
    """Lines of {name: [(ranks, share between 0 and 1)]} over a logarithmic axis of ranks, as SVG."""
    ranks = [r for points in curves.values() for r, _ in points]
    low, high = log10(min(ranks)), max(log10(max(ranks)), log10(min(ranks)) + 1e-9)

    def place(r, share):
        return 60 + 620 * (log10(r) - low) / (high - low), 330 - 290 * min(max(share, 0.0), 1.0)

    parts = [_HEAD.format(900, 380), f'<text x="60" y="22" font-size="14">{html.escape(title)}</text>']
    for tenth in range(0, 11, 2):
        y = place(min(ranks), tenth / 10)[1]
        parts.append(f'<line x1="60" x2="680" y1="{y:.0f}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(f'<text x="52" y="{y + 4:.0f}" text-anchor="end">{tenth * 10}%</text>')
    for r in sorted(set(ranks)):
        x = place(r, 0)[0]
        parts.append(f'<text x="{x:.0f}" y="350" text-anchor="middle" font-size="10">{r}</text>')
    parts.append('<text x="370" y="372" text-anchor="middle">ranks</text>')
    for i, (name, points) in enumerate(curves.items()):
        color = _COLORS[i % len(_COLORS)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="694" y="{50 + 20 * i}" fill="{color}">{html.escape(name)}</text>')
    return _finished([*parts, "</svg>"], path)


def _finished(parts, path):
    text = "\n".join(parts) + "\n"
    if path is not None:
        with open(path, "w") as file:
            file.write(text)
    return text
