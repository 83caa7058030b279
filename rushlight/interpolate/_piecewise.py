"""Piecewise polynomials, and the cubic ones that go through given points."""

from typing import Any

import rushlight as torch
from rushlight.interpolate import _tridiagonal
from rushlight.interpolate._linear import beside, floats, intervals


def _prepared(name, x, y, axis, least=2):
    """Knots, and values with the interpolated axis in front."""
    (x,) = floats(x)
    if x.is_complex():
        raise ValueError(f"{name}: x must contain real values")
    y = beside(y, x)
    x = x.to(y.real.dtype if y.is_complex() else y.dtype)
    if x.ndim != 1 or x.numel() < least:
        raise ValueError(
            f"{name}: x must be a vector of at least {least} points, but got shape {tuple(x.shape)}"
        )
    if not -y.ndim <= axis < y.ndim or y.shape[axis] != x.numel():
        raise ValueError(
            f"{name}: the length of y along axis {axis} doesn't match the length of x: y has shape "
            f"{tuple(y.shape)}, x has {x.numel()} points"
        )
    if not bool((x[1:] > x[:-1]).all()):
        raise ValueError(f"{name}: x must be strictly increasing sequence")
    return x, y.movedim(axis, 0)


def _column(t, like):
    """A vector shaped to multiply along the first dimension of `like`."""
    return t.reshape(-1, *(1,) * (like.ndim - 1))


class PPoly:
    """A polynomial on each interval of `x`: sum of c[m] (t - x[i])^(k - m) on [x[i], x[i+1]).

    `c` has shape (k + 1, n, ...). `extrapolate`: the outer pieces go on (True), NaN outside (False), or
    "periodic".
    """

    def __init__(self, c, x, extrapolate=True, axis=0):
        if c.ndim < 2 or x.ndim != 1 or c.shape[1] != x.numel() - 1:
            raise ValueError(
                f"PPoly: expected c of shape (k, {x.numel() - 1}, ...) for {x.numel()} points, but got "
                f"{tuple(c.shape)}"
            )
        self.c, self.x, self.extrapolate, self.axis = c, x, extrapolate, axis

    def __call__(self, x, nu=0, extrapolate=None):
        """Values, or derivatives of order nu, at x, whose dimensions take the place of the axis."""
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        x = torch.as_tensor(x, dtype=self.x.dtype, device=self.x.device)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            x = self.x[0] + (x - self.x[0]) % (self.x[-1] - self.x[0])
        i = intervals(self.x, x)
        trailing = (1,) * (self.c.ndim - 2)
        h = (x - self.x[i]).reshape(*x.shape, *trailing)
        result = self.c[0][i]
        if self.c.shape[0] == 1:
            result = result + h * 0  # NaN where x is
        for coefficient in self.c[1:]:
            result = result * h + coefficient[i]
        if extrapolate is False:
            inside = ((x >= self.x[0]) & (x <= self.x[-1])).reshape(*x.shape, *trailing)
            result = torch.where(inside, result, float("nan"))
        axis = self.axis % (self.c.ndim - 1)
        return result.movedim(tuple(range(x.ndim)), tuple(range(axis, axis + x.ndim))) if axis else result

    def derivative(self, nu=1):
        """The derivative of order nu, as another piecewise polynomial."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            k = c.shape[0] - 1
            powers = torch.arange(k, 0, -1, dtype=self.x.dtype, device=c.device)
            c = c[:-1] * _column(powers, c) if k else torch.zeros_like(c)
        return PPoly(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu=1):
        """The function with this one as its derivative of order nu; 0 at the first point, and continuous."""
        c, widths = self.c, self.x[1:] - self.x[:-1]
        for _ in range(nu):
            k = c.shape[0]
            powers = torch.arange(k, 0, -1, dtype=self.x.dtype, device=c.device)
            c = c / _column(powers, c)
            h = _column(widths, c[0])
            piece = torch.zeros_like(c[0])
            for coefficient in c:
                piece = (piece + coefficient) * h
            start = torch.cumsum(piece, 0) - piece
            c = torch.cat([c, start.unsqueeze(0)])
        return PPoly(c, self.x, self.extrapolate, self.axis)

    def integrate(self, a, b, extrapolate=None):
        """The integral from a to b."""
        whole = self.antiderivative()
        if (self.extrapolate if extrapolate is None else extrapolate) == "periodic":
            raise NotImplementedError("integrate: periodic functions are integrated within one period only")
        return whole(b, extrapolate=extrapolate) - whole(a, extrapolate=extrapolate)


class CubicHermiteSpline(PPoly):
    """The cubics through y with slopes dydx at x."""

    def __init__(self, x, y, dydx, axis=0, extrapolate=None):
        x, y = _prepared(type(self).__name__, x, y, axis)
        slopes = torch.as_tensor(dydx, dtype=y.dtype, device=y.device).movedim(axis, 0)
        if slopes.shape != y.shape:
            raise ValueError(f"dydx has shape {tuple(slopes.shape)}, but y has {tuple(y.shape)}")
        self._set(x, y, slopes, True if extrapolate is None else extrapolate, axis)

    def _set(self, x, y, slopes, extrapolate, axis):
        h = _column(x[1:] - x[:-1], y)
        secant = (y[1:] - y[:-1]) / h
        t = (slopes[:-1] + slopes[1:] - 2 * secant) / h
        c = torch.stack([t / h, (secant - slopes[:-1]) / h - t, slopes[:-1], y[:-1]])
        super().__init__(c, x, extrapolate, axis)


_CONDITIONS: dict[str, Any] = {"clamped": (1, 0.0), "natural": (2, 0.0)}


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through y at x: twice continuously differentiable.

    `bc_type` settles the ends: "not-a-knot", "natural", "clamped", "periodic", or a pair of these and of
    (order, value) for a given first or second derivative.
    """

    def __init__(self, x, y, axis=0, bc_type="not-a-knot", extrapolate=None):
        x, y = _prepared("CubicSpline", x, y, axis)
        periodic = bc_type == "periodic"
        if periodic:
            if not torch.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15):
                raise ValueError(
                    "CubicSpline: the first and last y must be equal (to within 1e-15) for bc_type='periodic'"
                )
            slopes = _periodic_slopes(x, y)
        else:
            slopes = _spline_slopes(x, y, *_end_conditions(bc_type, y))
        self._set(
            x, y, slopes, ("periodic" if periodic else True) if extrapolate is None else extrapolate, axis
        )


def _end_conditions(bc_type, y):
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if len(ends) != 2:
        raise ValueError(f"CubicSpline: bc_type must contain 2 elements, but got {len(ends)}")
    if "periodic" in ends:
        raise ValueError("CubicSpline: 'periodic' is a condition of both ends together")
    found = []
    for end in ends:
        if end == "not-a-knot":
            found.append((3, None))
            continue
        if isinstance(end, str) and end not in _CONDITIONS:
            raise ValueError(f"CubicSpline: bc_type={end!r} is not allowed; use not-a-knot, natural, clamped")
        order, value = _CONDITIONS[end] if isinstance(end, str) else end
        if order not in (1, 2):
            raise ValueError(f"CubicSpline: the order of a given derivative must be 1 or 2, not {order}")
        found.append((order, torch.as_tensor(value, dtype=y.dtype, device=y.device).expand(y.shape[1:])))
    return found


def _spline_slopes(x, y, start, end):
    """The slopes for which second derivatives agree at the inner points."""
    n = x.numel()
    h = x[1:] - x[:-1]
    hc = _column(h, y)
    secant = (y[1:] - y[:-1]) / hc
    if n == 2:  # a line through two points has no third derivative to match
        start, end = ((1, secant[0]) if order == 3 else (order, value) for order, value in (start, end))
    lower, diagonal, upper = [h[1:]], [2 * (h[:-1] + h[1:])], [h[:-1]]
    rhs = [3 * (hc[1:] * secant[:-1] + hc[:-1] * secant[1:])]
    both = n == 3 and start[0] == 3 and end[0] == 3
    near = _end_row(start, h, hc, secant, both, 1)
    far = _end_row(end, h.flip(0), hc.flip(0), secant.flip(0), both, -1)
    diagonal = [near[0].reshape(1), *diagonal, far[0].reshape(1)]
    upper = [near[1].reshape(1), *upper, h.new_zeros(1)]
    lower = [h.new_zeros(1), *lower, far[1].reshape(1)]
    rhs = [near[2].unsqueeze(0), *rhs, far[2].unsqueeze(0)]
    return _tridiagonal.solve(torch.cat(lower), torch.cat(diagonal), torch.cat(upper), torch.cat(rhs))


def _end_row(condition, h, hc, secant, parabola, direction):
    """Diagonal, neighbour and right-hand side of an end's equation; seen from that end."""
    order, value = condition
    one = torch.ones_like(h[0])
    if order == 1:
        return one, 0 * one, value
    if order == 2:
        return 2 * h[0], h[0], 3 * hc[0] * secant[0] - direction * value * hc[0] ** 2 / 2
    if parabola:
        return one, one, 2 * secant[0]
    width = h[0] + h[1]
    wide = hc[0] + hc[1]
    return h[1], width, ((hc[0] + 2 * wide) * hc[1] * secant[0] + hc[0] ** 2 * secant[1]) / wide


def _periodic_slopes(x, y):
    h = x[1:] - x[:-1]
    hc = _column(h, y)
    secant = (y[1:] - y[:-1]) / hc
    if h.numel() == 1:
        return torch.zeros_like(y)
    previous, hp, sp = h.roll(1), hc.roll(1, 0), secant.roll(1, 0)
    rhs = 3 * (hc * sp + hp * secant)
    slopes = _tridiagonal.solve_cyclic(h, 2 * (previous + h), previous, rhs)
    return torch.cat([slopes, slopes[:1]])


class PchipInterpolator(CubicHermiteSpline):
    """Monotone cubics: no overshoot between the points (Fritsch and Butland's slopes)."""

    def __init__(self, x, y, axis=0, extrapolate=None):
        x, y = _prepared("PchipInterpolator", x, y, axis)
        self._set(x, y, _monotone_slopes(x, y), True if extrapolate is None else extrapolate, axis)


def _monotone_slopes(x, y):
    h = _column(x[1:] - x[:-1], y)
    m = (y[1:] - y[:-1]) / h
    if x.numel() == 2:
        return torch.cat([m, m])
    turns = (torch.sign(m[1:]) != torch.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    left, right = torch.where(turns, 1, m[:-1]), torch.where(turns, 1, m[1:])
    inner = torch.where(turns, 0, (w1 + w2) / (w1 / left + w2 / right))
    ends = (_monotone_end(h[0], h[1], m[0], m[1]), _monotone_end(h[-1], h[-2], m[-1], m[-2]))
    return torch.cat([ends[0].unsqueeze(0), inner, ends[1].unsqueeze(0)])


def _monotone_end(h0, h1, m0, m1):
    """A parabola's slope, unless it would turn back or overshoot."""
    d = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    d = torch.where((torch.sign(m0) != torch.sign(m1)) & (d.abs() > 3 * m0.abs()), 3 * m0, d)
    return torch.where(torch.sign(d) != torch.sign(m0), 0, d)


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's local cubics, which an outlier disturbs only nearby; NaN outside unless told to extrapolate."""

    def __init__(self, x, y, axis=0, *, method="akima", extrapolate=None):
        if method not in ("akima", "makima"):
            raise NotImplementedError(f"`method`={method} is unsupported.")
        x, y = _prepared("Akima1DInterpolator", x, y, axis)
        self._set(x, y, _akima_slopes(x, y, method), False if extrapolate is None else extrapolate, axis)


def _akima_slopes(x, y, method):
    m = (y[1:] - y[:-1]) / _column(x[1:] - x[:-1], y)
    if x.numel() == 2:
        return torch.cat([m, m])
    one_before = 2 * m[:1] - m[1:2]
    one_after = 2 * m[-1:] - m[-2:-1]
    m = torch.cat([2 * one_before - m[:1], one_before, m, one_after, 2 * one_after - m[-1:]])
    change = (m[1:] - m[:-1]).abs()
    if method == "makima":
        change = change + (m[1:] + m[:-1]).abs() / 2
    after, before = change[2:], change[:-2]
    total = after + before
    plain = (m[3:] + m[:-3]) / 2
    usable = total > 1e-9 * total.max()
    weight = before / torch.where(usable, total, 1)
    return torch.where(usable, m[1:-2] + weight * (m[2:-1] - m[1:-2]), plain)
