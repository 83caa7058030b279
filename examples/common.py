"""What all examples share: their arguments and their figures."""

import argparse
from pathlib import Path

from matplotlib.figure import Figure

import rushlight as torch
from rushlight import nn


def arguments(description, steps, **more):
    """The parsed command line: --steps, --out (made if it is not there), and options with their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--out", type=Path, default=Path("out"))
    for name, value in more.items():
        parser.add_argument(f"--{name.replace(chr(95), chr(45))}", type=type(value), default=value)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    return given


def figure(width: float = 6, height: float = 4, columns=1):
    """A figure and its axes, which `figure.savefig` writes without a display."""
    made = Figure(figsize=(width, height), layout="constrained")
    return made, made.subplots(1, columns)


def draw_images(images, path, columns=10):
    """A sheet of grey images of shape (count, 1, height, width), in rows of so many."""
    framed = nn.functional.pad(images[:, 0], (1, 1, 1, 1))
    rows = [torch.cat(list(row), 1) for row in framed.split(columns) if len(row) == columns]
    made, axes = figure(columns * 0.6, len(rows) * 0.6)
    axes.imshow(torch.cat(rows).tolist(), cmap="gray_r", vmin=0, vmax=1)
    axes.set_axis_off()
    made.savefig(path, dpi=100)
