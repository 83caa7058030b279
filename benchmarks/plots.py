"""Pictures of recorded ratios, as SVG files that come out the same each time."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .records import Record, Suite
from .stats import geometric_mean

AHEAD, BEHIND, PEER, MEAN, GRID = "#2f6db3", "#d1462f", "#8a8f98", "#1d1d1f", "#d9dce1"
SERIES = {
    "training float32": ("#2f6db3", "o"),
    "inference float32": ("#7fb2e5", "s"),
    "training bfloat16": ("#b3561d", "o"),
    "inference bfloat16": ("#f0a45d", "s"),
}
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rushlight",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial", "sans-serif"],
    "font.size": 9,
    "axes.edgecolor": "#8a8f98",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
}
Strip = tuple[str, list[float]]


def draw_all(found: Sequence[Record], folder: Path, titles: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Draw what there is to draw; the answer names each picture's suite ("" for the summary) and file."""
    import matplotlib

    matplotlib.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    with matplotlib.rc_context(STYLE):
        overview = [(record.title, by_suite(record, titles)) for record in found]
        drawn.append(("", save(strips(overview), folder / "summary.svg")))
        for suite in ("small", "kernels"):
            panels = [(r.title, by_family(r.suites[suite])) for r in found if suite in r.suites]
            if any(strips for _, strips in panels):
                drawn.append((suite, save(strips(panels), folder / f"{suite}.svg")))
        having = [record for record in found if "models" in record.suites]
        if having:
            drawn.append(("models", save(models(having), folder / "models.svg")))
        having = [record for record in found if "memory" in record.suites]
        if having:  # threads and other processes hardly matter to it
            drawn.append(("memory", save(memory(having[0]), folder / "memory.svg")))
    return drawn


def save(figure: Any, path: Path) -> Path:
    import matplotlib.pyplot as plt

    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata={"Date": None})
    plt.close(figure)
    # No spaces at the ends of lines, for the sake of version control.
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")
    return path


def by_suite(record: Record, titles: Mapping[str, str]) -> list[Strip]:
    found = [(titles[name], values(record.suites[name])) for name in titles if name in record.suites]
    return [(title, ratios) for title, ratios in found if ratios]


def by_family(suite: Suite) -> list[Strip]:
    """What stands before the slash in a row's name is its family."""
    families: dict[str, list[float]] = {}
    for name, row in suite.rows.items():
        if row.ratio:
            families.setdefault(name.partition("/")[0], []).append(row.ratio.value)
    return list(families.items())


def values(suite: Suite) -> list[float]:
    return [row.ratio.value for row in suite.rows.values() if row.ratio]


def ratio_axis(axes: Any, ratios: Sequence[float]) -> None:
    """Logarithmic, with 1 marked and plain numbers at 1, 2, 5 times powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = min([0.8, *ratios]), max([1.5, *ratios])
    axes.set_xscale("log")
    axes.set_xlim(low / 1.15, high * 1.15)
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    wide = high / low > 200
    ticks = [step * 10.0**power for power in decades for step in ((1,) if wide else (1, 2, 5))]
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if low / 1.15 <= tick <= high * 1.15]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.axvline(1, color="#6b7078", linewidth=1.2)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)


def label_rows(axes: Any, names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)


def panels_of(count: int, rows: int, height: float) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    size = (2.2 + 4.6 * min(count, 2), (0.9 + height * rows) * math.ceil(count / 2))
    figure, grid = plt.subplots(math.ceil(count / 2), min(count, 2), figsize=size, squeeze=False, sharey=True)
    axes = list(grid.flat)
    for unused in axes[count:]:
        unused.axis("off")
    return figure, axes[:count]


def strips(panels: Sequence[tuple[str, list[Strip]]]) -> Any:
    """A line of dots for each group of rows, and the group's geometric mean; one panel a record."""
    names = list(dict.fromkeys(name for _, groups in panels for name, _ in groups))
    figure, axes = panels_of(len(panels), len(names), 0.36)
    everything = [ratio for _, groups in panels for _, ratios in groups for ratio in ratios]
    for place, (title, groups) in zip(axes, panels):
        for name, ratios in groups:
            at = names.index(name)
            # Neighbours lie on different heights, so that dots can be told apart.
            heights = [at + 0.09 * (index % 5 - 2) for index in range(len(ratios))]
            colours = [AHEAD if ratio >= 1 else BEHIND for ratio in sorted(ratios)]
            place.scatter(sorted(ratios), heights, s=13, c=colours, alpha=0.55, linewidths=0)
            place.scatter([geometric_mean(ratios)], [at], s=46, c=MEAN, marker="d", zorder=3)
        label_rows(place, names)
        ratio_axis(place, everything)
        place.set_title(title)
        place.set_xlabel("PyTorch / Rushlight (diamond: geometric mean)")
    figure.tight_layout()
    return figure


def models(having: Sequence[Record]) -> Any:
    """Each model's four ratios with their ranges."""
    names = list(dict.fromkeys(name.partition("/")[0] for r in having for name in r.suites["models"].rows))
    figure, axes = panels_of(len(having), len(names), 0.42)
    everything: list[float] = []
    for place, record in zip(axes, having):
        for index, (series, (colour, marker)) in enumerate(SERIES.items()):
            for at, name in enumerate(names):
                row = record.suites["models"].rows.get(f"{name}/{series}")
                if row and (ratio := row.ratio):
                    height = at + 0.17 * (index - 1.5)
                    place.plot([ratio.low, ratio.high], [height] * 2, color=colour, linewidth=1.4, alpha=0.6)
                    place.plot(ratio.value, height, marker, color=colour, markersize=4.5)
                    everything += [ratio.low, ratio.high]
            place.plot([], [], marker, color=colour, markersize=4.5, label=series)
        label_rows(place, names)
        for at in range(1, len(names)):
            place.axhline(at - 0.5, color=GRID, linewidth=0.5)
        place.set_title(record.title)
        place.set_xlabel("PyTorch / Rushlight")
    for place in axes:
        ratio_axis(place, everything)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.tight_layout()
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, bbox_to_anchor=(0.5, 1.0))
    return figure


def memory(record: Record) -> Any:
    """Both peaks of each model, joined by a line."""
    rows = {name: row for name, row in record.suites["memory"].rows.items() if row.ratio}
    figure, (axes,) = panels_of(1, len(rows), 0.3)
    for at, row in enumerate(rows.values()):
        ours, peer = statistics.median(row.ours), statistics.median(row.peer)
        colour = AHEAD if ours <= peer else BEHIND
        axes.plot([ours, peer], [at, at], color=colour, linewidth=2, alpha=0.5)
        axes.plot(peer, at, "o", color=PEER, markersize=5)
        axes.plot(ours, at, "o", color=colour, markersize=5)
    axes.plot([], [], "o", color=AHEAD, label="Rushlight")
    axes.plot([], [], "o", color=PEER, label="PyTorch")
    label_rows(axes, [name.partition("/")[0] for name in rows])
    axes.set_xlim(0)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.set_xlabel("peak memory of the process, MB")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False)
    figure.tight_layout()
    return figure
