"""Linear interpolation on a line, and the intervals that numbers fall into."""

from functools import reduce

import rushlight as torch


def floats(*values):
    """The values as tensors of one floating (or complex) dtype and device."""
    device = next((v.device for v in values if isinstance(v, torch.Tensor)), None)
    found = [torch.as_tensor(v) if device is None else torch.as_tensor(v, device=device) for v in values]
    dtype = reduce(torch.promote_types, (t.dtype for t in found))
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = torch.get_default_dtype()
    return [t.to(dtype) for t in found]


def beside(values, like):
    """Data whose points are `like`: of a dtype at least as wide, complex or not."""
    values = torch.as_tensor(values, device=like.device)
    return values.to(torch.promote_types(values.dtype, like.dtype))


def intervals(knots, x):
    """For each x the i with knots[i] <= x < knots[i + 1]; the first or last interval outside."""
    at = torch.searchsorted(knots.detach(), x.detach().contiguous(), right=True) - 1
    return at.clamp(0, max(knots.numel() - 2, 0))


def _wrapped(x, xp, fp, period):
    """The data of one period in order, with a neighbour from the periods before and after."""
    if period == 0:
        raise ValueError("period must be a non-zero value")
    period = abs(period)
    x, xp = x % period, xp % period
    order = torch.argsort(xp.detach())
    xp, fp = xp[order], fp[order]
    xp = torch.cat([xp[-1:] - period, xp, xp[:1] + period])
    return x, xp, torch.cat([fp[-1:], fp, fp[:1]])


def interp(x, xp, fp, left=None, right=None, period=None):
    """The piecewise linear function through (xp, fp) at x, as `numpy.interp`.

    Before xp[0] it is `left` (fp[0] by default), after xp[-1] `right`; with a `period`, x and xp are taken
    modulo it and the ends meet.
    """
    x, xp = floats(x, xp)
    fp = beside(fp, x)
    if xp.ndim != 1 or fp.ndim != 1 or xp.shape != fp.shape:
        raise ValueError(
            "interp: xp and fp must be vectors of one length, but got shapes "
            f"{tuple(xp.shape)} and {tuple(fp.shape)}"
        )
    if xp.numel() == 0:
        raise ValueError("interp: array of sample points is empty")
    if period is not None:
        x, xp, fp = _wrapped(x, xp, fp, period)
        left = right = None
    i = intervals(xp, x)
    j = (i + 1).clamp(max=xp.numel() - 1)
    width = xp[j] - xp[i]
    width = torch.where(width == 0, torch.ones_like(width), width)
    y = fp[i] + (fp[j] - fp[i]) * ((x - xp[i]) / width)
    y = torch.where(x == xp[-1], fp[-1], y)
    y = torch.where(x < xp[0], fp[0] if left is None else torch.as_tensor(left, dtype=y.dtype), y)
    return torch.where(x > xp[-1], fp[-1] if right is None else torch.as_tensor(right, dtype=y.dtype), y)


def digitize(x, bins, right=False):
    """The number of the bin that each x is in, as `numpy.digitize`: i with bins[i-1] <= x < bins[i].

    With `right`, i with bins[i-1] < x <= bins[i]. Decreasing bins are counted from the front too.
    """
    x = torch.as_tensor(x)
    bins = torch.as_tensor(bins, device=x.device)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, but got shape {tuple(bins.shape)}")
    if x.is_complex():
        raise TypeError("x may not be complex")
    dtype = torch.promote_types(x.dtype, bins.dtype)
    x, bins = x.to(dtype).contiguous(), bins.to(dtype)
    if bool((bins[1:] >= bins[:-1]).all()):
        return torch.searchsorted(bins, x, right=not right)
    if not bool((bins[1:] <= bins[:-1]).all()):
        raise ValueError("bins must be monotonically increasing or decreasing")
    return bins.numel() - torch.searchsorted(bins.flip(0), x, right=not right)
