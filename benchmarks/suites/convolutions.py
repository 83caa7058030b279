"""Convolutions by shape: forward, the gradient of the image and that of the filters, in both layouts."""

from typing import NamedTuple

import torch
import torch.nn.functional as F

from ..case import Case
from ..kernels.data import normals


class Shape(NamedTuple):
    batch: int
    into: int
    out: int
    size: tuple[int, ...]
    kernel: int | tuple[int, ...]
    stride: int = 1
    padding: int | tuple[int, ...] = 0
    dilation: int = 1
    groups: int = 1
    transposed: bool = False


def square(batch, into, out, size, kernel, stride=1, padding=None, **more):
    """Images in the plane, padded so that the size stays unless told."""
    padding = kernel // 2 if padding is None else padding
    return Shape(batch, into, out, (size, size), kernel, stride, padding, **more)


def depthwise(batch, channels, size, kernel, stride=1):
    return square(batch, channels, channels, size, kernel, stride, groups=channels)


def transposed(batch, into, out, size, kernel, stride, padding=0):
    return square(batch, into, out, size, kernel, stride, padding, transposed=True)


SHAPES = {
    "first/3x3, 3 to 64, 112": square(1, 3, 64, 112, 3),
    "first/3x3 stride 2, 3 to 32, 112": square(8, 3, 32, 112, 3, 2),
    "first/7x7 stride 2, 3 to 64, 112": square(8, 3, 64, 112, 7, 2),
    "first/5x5, 1 to 16, 28": square(8, 1, 16, 28, 5),
    "first/11x11 stride 4, 3 to 64, 112": square(2, 3, 64, 112, 11, 4, 2),
    "patches/4x4, 3 to 96, 112": square(8, 3, 96, 112, 4, 4, 0),
    "patches/16x16, 3 to 384, 112": square(8, 3, 384, 112, 16, 16, 0),
    "patches/2x2, 128 to 256, 28": square(2, 128, 256, 28, 2, 2, 0),
    "1x1/16 to 96, 56": square(8, 16, 96, 56, 1),
    "1x1/256 to 64, 56": square(1, 256, 64, 56, 1),
    "1x1/512 to 128, 28": square(8, 512, 128, 28, 1),
    "1x1/512 to 512, 7": square(1, 512, 512, 7, 1),
    "1x1 stride 2/256 to 512, 28": square(2, 256, 512, 28, 1, 2),
    "3x3/16 to 16, 56": square(8, 16, 16, 56, 3),
    "3x3/64 to 64, 56": square(1, 64, 64, 56, 3),
    "3x3/64 to 64, 28": square(8, 64, 64, 28, 3),
    "3x3/256 to 256, 14": square(8, 256, 256, 14, 3),
    "3x3/512 to 512, 7": square(1, 512, 512, 7, 3),
    "3x3/64 to 3, 56": square(2, 64, 3, 56, 3),
    "3x3 stride 2/32 to 64, 56": square(8, 32, 64, 56, 3, 2),
    "3x3 stride 2/128 to 128, 56": square(1, 128, 128, 56, 3, 2),
    "3x3 stride 2/256 to 512, 14": square(8, 256, 512, 14, 3, 2),
    "4x4 stride 2/64 to 128, 28": square(8, 64, 128, 28, 4, 2, 1),
    "5x5/32 to 64, 28": square(8, 32, 64, 28, 5),
    "5x5/128 to 128, 14": square(1, 128, 128, 14, 5),
    "5x5 stride 2/64 to 64, 28": square(8, 64, 64, 28, 5, 2),
    "7x7/64 to 64, 28": square(1, 64, 64, 28, 7),
    "7x7/16 to 32, 14": square(8, 16, 32, 14, 7),
    "depthwise/3x3, 32, 112": depthwise(1, 32, 112, 3),
    "depthwise/3x3, 144, 56": depthwise(8, 144, 56, 3),
    "depthwise/3x3, 512, 14": depthwise(8, 512, 14, 3),
    "depthwise/3x3 stride 2, 96, 112": depthwise(1, 96, 112, 3, 2),
    "depthwise/3x3 stride 2, 144, 56": depthwise(8, 144, 56, 3, 2),
    "depthwise/5x5, 240, 28": depthwise(8, 240, 28, 5),
    "depthwise/5x5 stride 2, 96, 56": depthwise(8, 96, 56, 5, 2),
    "depthwise/7x7, 96, 56": depthwise(1, 96, 56, 7),
    "depthwise/7x7 stride 2, 192, 28": depthwise(8, 192, 28, 7, 2),
    "depthwise/3x3, 512, 7": depthwise(8, 512, 7, 3),
    "depthwise/3x3, 32 to 64, 56": square(8, 32, 64, 56, 3, groups=32),
    "groups/3x3, 2 of 64, 28": square(8, 128, 128, 28, 3, groups=2),
    "groups/3x3, 4 of 32, 28": square(8, 128, 128, 28, 3, groups=4),
    "groups/3x3, 8 of 16, 28": square(8, 128, 128, 28, 3, groups=8),
    "groups/3x3, 32 of 4, 56": square(1, 128, 128, 56, 3, groups=32),
    "groups/3x3, 32 of 16, 14": square(8, 512, 512, 14, 3, groups=32),
    "groups/3x3 stride 2, 32 of 8, 56": square(2, 256, 256, 56, 3, 2, groups=32),
    "groups/3x3 stride 2, 32 of 8, 28": square(8, 256, 256, 28, 3, 2, groups=32),
    "groups/1x1, 4 of 60, 28": square(8, 240, 240, 28, 1, groups=4),
    "transposed/2x2, 128 to 64, 28": transposed(2, 128, 64, 28, 2, 2),
    "transposed/2x2, 64 to 32, 56": transposed(1, 64, 32, 56, 2, 2),
    "transposed/3x3, 64 to 64, 28": transposed(8, 64, 64, 28, 3, 2, 1),
    "transposed/4x4, 64 to 32, 28": transposed(8, 64, 32, 28, 4, 2, 1),
    "transposed/4x4, 256 to 128, 7": transposed(8, 256, 128, 7, 4, 2, 1),
    "transposed/4x4, 64 to 3, 28": transposed(8, 64, 3, 28, 4, 2, 1),
    "transposed/4x4 stride 1, 64 to 256, 1": transposed(8, 64, 256, 1, 4, 1),
    "dilated/2, 64 to 64, 28": square(8, 64, 64, 28, 3, 1, 2, dilation=2),
    "dilated/4, 256 to 256, 14": square(1, 256, 256, 14, 3, 1, 4, dilation=4),
    "asymmetric/3x1, 64 to 64, 28": Shape(8, 64, 64, (28, 28), (3, 1), 1, (1, 0)),
    "asymmetric/1x3, 64 to 64, 28": Shape(8, 64, 64, (28, 28), (1, 3), 1, (0, 1)),
    "asymmetric/1x7, 192 to 192, 14": Shape(2, 192, 192, (14, 14), (1, 7), 1, (0, 3)),
    "asymmetric/7x1, 192 to 192, 14": Shape(2, 192, 192, (14, 14), (7, 1), 1, (3, 0)),
    "1d/3, 256 to 256, 112": Shape(8, 256, 256, (112,), 3, 1, 1),
    "1d/5, 64 to 64, 512": Shape(8, 64, 64, (512,), 5, 1, 2),
    "1d/80 stride 4, 1 to 32, 4000": Shape(4, 1, 32, (4000,), 80, 4, 38),
    "1d/dilated 8, 64 to 64, 512": Shape(4, 64, 64, (512,), 3, 1, 8, 8),
    "1d/depthwise 31, 256, 112": Shape(8, 256, 256, (112,), 31, 1, 15, 1, 256),
    "1d/transposed 8, 128 to 64, 112": Shape(4, 128, 64, (112,), 8, 4, 2, 1, 1, True),
    "3d/3, 16 to 16, 16": Shape(1, 16, 16, (16, 16, 16), 3, 1, 1),
    "3d/3, 3 to 32, 16": Shape(2, 3, 32, (16, 16, 16), 3, 1, 1),
    "3d/3 stride 2, 32 to 64, 14": Shape(2, 32, 64, (14, 14, 14), 3, 2, 1),
    "3d/1, 64 to 64, 14": Shape(1, 64, 64, (14, 14, 14), 1),
    "3d/transposed 2, 32 to 16, 7": Shape(2, 32, 16, (7, 7, 7), 2, 2, 0, 1, 1, True),
}
IN_BFLOAT16 = {
    "first/7x7 stride 2, 3 to 64, 112",
    "1x1/512 to 128, 28",
    "3x3/64 to 64, 28",
    "3x3 stride 2/32 to 64, 56",
    "depthwise/3x3, 144, 56",
    "groups/3x3 stride 2, 32 of 8, 28",
    "transposed/2x2, 128 to 64, 28",
    "patches/16x16, 3 to 384, 112",
}
PASSES = ("forward", "image", "filters")


def function(shape, kind, layout, dtype="float32"):
    """The forward pass, or the gradient of one operand with the other's left out."""
    dimensions = len(shape.size)
    kernel = shape.kernel if isinstance(shape.kernel, tuple) else (shape.kernel,) * dimensions
    ends = (shape.into, shape.out) if shape.transposed else (shape.out, shape.into)
    last = {2: torch.channels_last, 3: torch.channels_last_3d}[dimensions] if layout == "last" else None
    image = normals(shape.batch, shape.into, *shape.size, dtype=dtype)
    filters = normals(ends[0], ends[1] // shape.groups, *kernel, dtype=dtype)
    if last:
        image, filters = image.to(memory_format=last), filters.to(memory_format=last)
    if shape.transposed:
        apply, rest = getattr(F, f"conv_transpose{dimensions}d"), [0, shape.groups, shape.dilation]
    else:
        apply, rest = getattr(F, f"conv{dimensions}d"), [shape.dilation, shape.groups]
    call = lambda: apply(image, filters, None, shape.stride, shape.padding, *rest)
    if kind == "forward":
        return call
    leaf = (image if kind == "image" else filters).requires_grad_()
    result = call()
    gradient = torch.randn_like(result)
    return lambda: torch.autograd.grad(result, leaf, gradient, retain_graph=True)


def tiny(shape):
    return shape._replace(batch=1, size=tuple(min(size, 16) for size in shape.size))


def cases(sizes):
    for name, full in SHAPES.items():
        shape = sizes(full, tiny(full))
        layouts = ("planes", "last") if len(shape.size) > 1 else ("planes",)
        for kind in PASSES:
            for layout in layouts:
                yield Case(f"{name}/{kind}, {layout}", lambda s=shape, k=kind, o=layout: function(s, k, o))
            if name in IN_BFLOAT16:
                yield Case(
                    f"{name}/{kind}, bfloat16", lambda s=shape, k=kind: function(s, k, "planes", "bfloat16")
                )
