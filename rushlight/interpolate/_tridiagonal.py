"""Tridiagonal systems by parallel cyclic reduction: log2(n) differentiable steps on whole vectors."""

import rushlight as torch


def _shifted(t, step, fill):
    """t moved by `step` rows (down where positive), rows that come in filled."""
    n = t.shape[0]
    step = max(-n, min(n, step))
    rows = t.new_full((abs(step), *t.shape[1:]), fill)
    return torch.cat([rows, t[: n - step]]) if step > 0 else torch.cat([t[-step:], rows])


def solve(lower, diagonal, upper, rhs):
    """x with lower[i] x[i-1] + diagonal[i] x[i] + upper[i] x[i+1] = rhs[i]; trailing dimensions are a batch.

    lower[0] and upper[-1] do not count. Stable where the diagonal dominates.
    """
    n = diagonal.shape[0]
    extra = (1,) * (rhs.ndim - 1)
    a, b, c = (t.reshape(n, *extra) for t in (lower, diagonal, upper))
    mask = torch.arange(n, device=b.device).reshape(n, *extra)
    a, c = torch.where(mask == 0, 0, a), torch.where(mask == n - 1, 0, c)
    step = 1
    while step < n:
        # Each row takes in the rows `step` before and after; what lies outside is the row x = 0.
        alpha, gamma = -a / _shifted(b, step, 1), -c / _shifted(b, -step, 1)
        b = b + alpha * _shifted(c, step, 0) + gamma * _shifted(a, -step, 0)
        rhs = rhs + alpha * _shifted(rhs, step, 0) + gamma * _shifted(rhs, -step, 0)
        a, c = alpha * _shifted(a, step, 0), gamma * _shifted(c, -step, 0)
        step *= 2
    return rhs / b


def solve_cyclic(lower, diagonal, upper, rhs):
    """As `solve`, where lower[0] belongs to x[-1] and upper[-1] to x[0] (Sherman and Morrison's formula)."""
    n = diagonal.shape[0]
    if n == 1:
        return rhs / (lower + diagonal + upper).reshape(1, *(1,) * (rhs.ndim - 1))
    if n == 2:
        off = lower + upper
        return solve(off, diagonal, off, rhs)
    gamma = -diagonal[0]
    ends = torch.zeros_like(diagonal)
    ends[0], ends[-1] = 1, 0
    last = 1 - torch.zeros_like(diagonal)
    last[:-1] = 0
    changed = diagonal - gamma * ends - upper[-1] * lower[0] / gamma * last
    u = gamma * ends + upper[-1] * last
    x, z = solve(lower, changed, upper, rhs), solve(lower, changed, upper, u)
    ratio = lower[0] / gamma
    factor = (x[0] + ratio * x[-1]) / (1 + z[0] + ratio * z[-1])
    return x - z.reshape(n, *(1,) * (rhs.ndim - 1)) * factor
