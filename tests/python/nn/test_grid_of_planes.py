"""Planes of floats are sampled by a way of their own: beside that of doubles, with points anywhere."""

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
def test_like_doubles(mode, padding_mode, align_corners):
    random = np.random.default_rng(0)
    inf, nan = float("inf"), float("nan")
    for height, width, points in ((2, 2, 1), (5, 3, 17), (1, 7, 64), (9, 1, 70), (16, 16, 333)):
        image = torch.from_numpy(random.standard_normal((2, 3, height, width)).astype("float32"))
        grid = random.uniform(-1.4, 1.4, (2, points, 1, 2)).astype("float32")
        grid[0, 0, 0] = (1.3, -1.2) if padding_mode == "reflection" else (5e8, -5e8)
        grid[1, -1, 0] = (1.1, -1.4) if padding_mode == "reflection" else (inf, -inf)
        if mode == "nearest":  # not halfway between two pixels, where the rounding of both decides
            for axis, size in ((0, width), (1, height)):
                scale, shift = ((size - 1) / 2, 0) if align_corners else (size / 2, -0.5)
                pixel = (grid[..., axis] + 1) * scale + shift
                between = abs(pixel - np.round(pixel)) > 0.499
                grid[..., axis][between] = 0.77
        given = torch.from_numpy(grid)
        options = {"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}
        ours = F.grid_sample(image, given, **options)
        exact = F.grid_sample(image.double(), given.double(), **options)
        assert torch.allclose(ours.double(), exact, atol=2e-5, rtol=2e-5, equal_nan=True), (
            height,
            width,
            points,
        )
        turned = image.transpose(2, 3).contiguous().transpose(2, 3)
        assert torch.equal(F.grid_sample(turned, given, **options), ours) or mode != "nearest"
        given[0, 0, 0, 0] = nan
        held = F.grid_sample(image, given, **options)
        assert torch.equal(held[1], ours[1]) or mode == "bicubic"
        assert held[0, :, 0].isfinite().all() or mode == "bicubic"


def test_pixels_outside_are_not_read():
    image = torch.full((1, 1, 4, 4), float("nan"))
    image[0, 0, 1:3, 1:3] = 1
    grid = torch.tensor([[[[0.0, 0.0], [-5.0, 0.0], [0.0, 7.0]]]])
    for mode in ("nearest", "bilinear"):
        out = F.grid_sample(image, grid, mode=mode, align_corners=False)
        assert out.tolist() == [[[[1.0, 0.0, 0.0]]]]
