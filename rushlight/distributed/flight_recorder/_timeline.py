"""The dumps of all ranks as one picture: a page of HTML with a row for each rank."""

import argparse
import html
import zlib

from ._analysis import analyse, describe, operation, read_dumps

_WIDTH, _LEFT, _ROW, _BAR = 1400, 90, 34, 22  # pixels
_STYLE = """
body { font: 14px sans-serif; margin: 24px; color: #222 }
svg { background: #fafafa; border: 1px solid #ddd }
text { font: 12px sans-serif; fill: #444 }
rect.failed, rect.unfinished { stroke: #c00; stroke-width: 2 }
li { margin: 4px 0 }
"""


def _color(name):
    return f"hsl({zlib.crc32(name.encode()) % 300 + 20}, 55%, 62%)"


def _span(entry, end):
    start = entry["time_discovered_started_ns"] or entry["time_created_ns"]
    return start, entry["time_discovered_completed_ns"] or end


def _bar(entry, row, begin, end, scale):
    start, stop = _span(entry, end)
    x, width = _LEFT + (start - begin) * scale, max((stop - start) * scale, 1.5)
    kind = {"failed": "failed", "completed": "done"}.get(entry["state"], "unfinished")
    number = (
        "" if entry["is_p2p"] else f"call {entry['collective_seq_id']} of group {entry['process_group'][0]}: "
    )
    title = f"{number}{describe(entry)}\n{entry['state']}, {(stop - start) / 1e6:.3f} ms"
    if entry.get("error"):
        title += f"\n{entry['error']}"
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{row * _ROW + 6}" width="{width:.1f}" height="{_BAR}" '
        f'fill="{_color(operation(entry))}"><title>{html.escape(title)}</title></rect>'
    )


def _axis(begin, end, scale, height):
    parts = []
    for i in range(11):
        x = _LEFT + (end - begin) * scale * i / 10
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="#e4e4e4"/>')
        milliseconds = (end - begin) * i / 10e6
        parts.append(f'<text x="{x:.1f}" y="{height + 16}" text-anchor="middle">{milliseconds:.1f} ms</text>')
    return parts


def draw(dumps):
    """A page of HTML that shows dumps (rank -> contents) over time, and says where the ranks part."""
    entries = [entry for dump in dumps.values() for entry in dump["entries"]]
    begin = min((entry["time_created_ns"] for entry in entries), default=0)
    end = max((max(_span(entry, 0)) for entry in entries), default=begin + 1)
    end += max((end - begin) // 50, 1)
    scale = (_WIDTH - _LEFT - 40) / (end - begin)
    height = len(dumps) * _ROW + 4
    shapes = _axis(begin, end, scale, height)
    for row, (rank, dump) in enumerate(dumps.items()):
        shapes.append(f'<text x="8" y="{row * _ROW + 21}">rank {rank}</text>')
        shapes += [_bar(entry, row, begin, end, scale) for entry in dump["entries"]]
    found = analyse(dumps) or ["All calls that were recorded fit together, and ended."]
    legend = "".join(
        f'<span style="background:{_color(name)}">&nbsp;&nbsp;&nbsp;</span> {html.escape(name)} &nbsp; '
        for name in sorted({operation(entry) for entry in entries})
    )
    return (
        f'<!DOCTYPE html><html><head><meta charset="utf-8"><title>Collectives</title>'
        f"<style>{_STYLE}</style></head>"
        f"<body><h2>Collectives of {len(dumps)} ranks</h2>"
        f"<ul>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in found)}</ul><p>{legend}</p>"
        f'<svg width="{_WIDTH}" height="{height + 26}">{"".join(shapes)}</svg>'
        "<p>Clocks are the hosts' own. Red frames: failed or not finished.</p></body></html>"
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m rushlight.distributed.flight_recorder",
        description="Draw the collectives of all ranks, and say where the ranks part.",
    )
    parser.add_argument("dumps", nargs="+", help="files that the ranks wrote, or a folder of them")
    parser.add_argument("-o", "--output", default="timeline.html", help="the page to write")
    options = parser.parse_args(arguments)
    dumps = read_dumps(options.dumps)
    with open(options.output, "w") as file:
        file.write(draw(dumps))
    for sentence in analyse(dumps) or ["all calls fit together"]:
        print(sentence)
