"""Interpolation of data on a rectangular grid."""

import itertools
from typing import Any

import rushlight as torch
from rushlight.interpolate._linear import beside, floats, intervals
from rushlight.interpolate._piecewise import CubicSpline, PchipInterpolator

_LEAST = {"linear": 2, "slinear": 2, "nearest": 1, "cubic": 4, "pchip": 4}


class RegularGridInterpolator:
    """Values at any points of data on the grid that `points` (a vector for each axis) span.

    `method` is "linear", "nearest", "cubic" (not-a-knot splines axis by axis) or "pchip". Outside the grid:
    ValueError with `bounds_error`, else `fill_value`; None extrapolates.
    """

    def __init__(self, points, values, method="linear", *, bounds_error=True, fill_value=float("nan")):
        self.grid = floats(*points)
        if not self.grid or any(g.is_complex() for g in self.grid):
            raise ValueError("points must be one vector of real numbers for each dimension")
        values = beside(values, self.grid[0])
        if len(self.grid) > values.ndim:
            raise ValueError(
                f"There are {len(self.grid)} point arrays, but values has {values.ndim} dimensions"
            )
        self.method, self.bounds_error, self.fill_value = method, bounds_error, fill_value
        for axis, g in enumerate(self.grid):
            if g.ndim != 1 or values.shape[axis] != g.numel():
                raise ValueError(
                    f"There are {tuple(g.shape)} points and {values.shape[axis]} values along "
                    f"dimension {axis}"
                )
            if g.numel() > 1 and bool((g[1:] < g[:-1]).all()):
                self.grid[axis], values = g.flip(0), values.flip(axis)
            elif not bool((g[1:] > g[:-1]).all()):
                raise ValueError(f"The points in dimension {axis} must be strictly ascending or descending")
        self.values = values
        self._check_method(method)

    def _check_method(self, method):
        if method not in _LEAST:
            raise ValueError(f"Method '{method}' is not defined")
        for axis, g in enumerate(self.grid):
            if g.numel() < _LEAST[method]:
                raise ValueError(
                    f"There are {g.numel()} points in dimension {axis}, but method {method} requires at "
                    f"least {_LEAST[method]} points per dimension."
                )

    def __call__(self, xi, method=None):
        """Values at xi, a tensor (..., number of axes) or a tuple of coordinates that broadcast."""
        method = self.method if method is None else method
        self._check_method(method)
        if isinstance(xi, (tuple, list)) and any(isinstance(x, torch.Tensor) for x in xi):
            xi = torch.stack(torch.broadcast_tensors(*xi), -1)
        xi = torch.as_tensor(xi, dtype=self.grid[0].dtype, device=self.values.device)
        if xi.ndim == 1 and len(self.grid) == 1 and xi.shape[0] != 1:
            xi = xi.unsqueeze(-1)
        if xi.shape[-1] != len(self.grid):
            raise ValueError(
                f"The requested sample points xi have dimension {xi.shape[-1]} but this "
                f"RegularGridInterpolator has dimension {len(self.grid)}"
            )
        shape, columns = xi.shape[:-1], xi.reshape(-1, len(self.grid)).unbind(1)
        outside = [(x < g[0]) | (x > g[-1]) for x, g in zip(columns, self.grid, strict=True)]
        if self.bounds_error:
            for axis, out in enumerate(outside):
                if bool(out.any()):
                    raise ValueError(f"One of the requested xi is out of bounds in dimension {axis}")
        evaluate = {"nearest": self._nearest, "cubic": self._curved, "pchip": self._curved}
        result = evaluate.get(method, self._linear)(columns, method)
        trailing = self.values.shape[len(self.grid) :]
        spread = (-1, *(1,) * len(trailing))
        if not self.bounds_error and self.fill_value is not None:
            any_out = torch.stack(outside).any(0).reshape(spread)
            result = torch.where(any_out, torch.as_tensor(self.fill_value, dtype=result.dtype), result)
        lost = torch.stack([x.isnan() for x in columns]).any(0).reshape(spread)
        result = torch.where(lost, torch.as_tensor(float("nan"), dtype=result.dtype), result)
        return result.reshape(*shape, *trailing)

    def _places(self, columns):
        """Interval and relative position in it, by axis."""
        for x, g in zip(columns, self.grid, strict=True):
            i = intervals(g, x)
            yield i, ((x - g[i]) / (g[i + 1] - g[i]) if g.numel() > 1 else torch.zeros_like(x))

    def _linear(self, columns, method):
        places = list(self._places(columns))
        result = 0
        for corner in itertools.product((0, 1), repeat=len(places)):
            weight: Any = 1
            for (_, t), side in zip(places, corner, strict=True):
                weight = weight * (t if side else 1 - t)
            value = self.values[tuple(i + side for (i, _), side in zip(places, corner, strict=True))]
            result = result + value * weight.reshape(-1, *(1,) * (value.ndim - 1))
        return result

    def _nearest(self, columns, method):
        return self.values[tuple(torch.where(t <= 0.5, i, i + 1) for i, t in self._places(columns))]

    def _curved(self, columns, method):
        """A spline along the last axis, then for each point one of its own along the axis before."""
        kind = CubicSpline if method == "cubic" else PchipInterpolator
        last = len(self.grid) - 1
        result = kind(self.grid[last], self.values, axis=last)(columns[last])
        points = torch.arange(result.shape[last], device=result.device)
        for axis in range(last - 1, -1, -1):
            x, g = columns[axis], self.grid[axis]
            c = kind(g, result, axis=axis).c.movedim(2 + axis, 2)  # (4, intervals, points, ...)
            i = intervals(g, x)
            h = (x - g[i]).reshape(-1, *(1,) * (c.ndim - 3))
            result = c[0, i, points]
            for k in range(1, 4):
                result = result * h + c[k, i, points]
            result = result.movedim(0, axis)
        return result


def interpn(points, values, xi, method="linear", bounds_error=True, fill_value=float("nan")):
    """`RegularGridInterpolator` for one use."""
    return RegularGridInterpolator(points, values, method, bounds_error=bounds_error, fill_value=fill_value)(
        xi
    )
