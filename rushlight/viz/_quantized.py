"""The error of each layer of a quantised model, as bars on a page."""

from html import escape

_ROW, _LEFT, _WIDTH = 16, 230, 460


def bars(errors):
    """An SVG with a bar for each (layer, relative error), in their order."""
    most = max((error for _, error in errors), default=0) or 1
    height = _ROW * len(errors) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LEFT + _WIDTH + 70}" height="{height}" '
        'font-family="monospace" font-size="11">'
    ]
    for i, (name, error) in enumerate(errors):
        y, width = _ROW * i, _WIDTH * error / most
        shown = name if len(name) <= 32 else "…" + name[-31:]
        parts.append(
            f'<text x="{_LEFT - 6}" y="{y + 12}" text-anchor="end" fill="currentColor">{escape(shown)}</text>'
            f'<rect x="{_LEFT}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 4}" fill="#c0762a">'
            f"<title>{escape(name)}: {100 * error:.3f} %</title></rect>"
            f'<text x="{_LEFT + width + 5:.1f}" y="{y + 12}" fill="currentColor">{100 * error:.2f} %</text>'
        )
    return "".join([*parts, "</svg>"])


def page(done, name, table):
    """A page of its own about a `Quantized`."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: {escape(done.method)}</title>
<style>body {{ font-family: sans-serif; margin: 2em; color-scheme: light dark }}</style></head><body>
<h1>{escape(name)}: {escape(done.method)}</h1>
<pre>{escape(table)}</pre>
<p>How far the result of each layer is off, beside its size, for the first samples. Long bars are layers to
keep as floats, or that want more samples.</p>
{bars(done.errors)}
</body></html>
"""
