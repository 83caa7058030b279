"""L-BFGS, with a line search for the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable

import rushlight
from rushlight import Tensor
from rushlight.optim._shared import ParamsT
from rushlight.optim.optimizer import Optimizer, _check_learning_rate, _number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object  # the module typing is slow to load

__all__ = ["LBFGS"]


class _Point:
    """A point on the search line: its distance, the loss, the gradient, and the slope along the line."""

    __slots__ = "grad", "loss", "slope", "t"

    def __init__(self, t, loss, grad, slope):
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


class LBFGS(Optimizer):
    """Limited-memory BFGS (Liu and Nocedal 1989): directions from the last steps and changes of the gradient.

    `step` needs a closure that evaluates the model again. All parameters form one vector and one group.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each describe a group.
        lr (float or Tensor): length of a step, in units of the direction.
        max_iter (int): iterations in a call of `step`.
        max_eval (int, optional): evaluations in a call of `step`; None: max_iter * 5 / 4.
        tolerance_grad (float): ends where no element of the gradient is larger.
        tolerance_change (float): ends where the loss or the parameters change less.
        history_size (int): how many steps are remembered.
        line_search_fn (str, optional): 'strong_wolfe', or None for steps of a set length.

    Raises: ValueError where there are several groups; RuntimeError for a line search of another name.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([4.0, -2.0]))
        >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = ((w - 1) ** 2).sum()
        ...     loss.backward()
        ...     return loss
        >>> loss = optimizer.step(closure)
        >>> w.data
        tensor([1., 1.])
    """

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        _check_learning_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # The parameters as one vector

    def _flat_grad(self):
        parts = []
        for p in self._params:
            grad = rushlight.zeros_like(p) if p.grad is None else p.grad
            grad = grad.to_dense() if grad.is_sparse else grad
            grad = rushlight.view_as_real(grad) if grad.is_complex() else grad
            parts.append(grad.reshape(-1))
        return rushlight.cat(parts, 0)

    def _move(self, t, direction):
        start = 0
        for p in self._params:
            p = rushlight.view_as_real(p) if p.is_complex() else p
            p.add_(direction[start : start + p.numel()].view_as(p), alpha=_number(t))
            start += p.numel()

    def _evaluate(self, closure):
        with rushlight.enable_grad():
            loss = float(closure())
        return loss, self._flat_grad()

    def _evaluate_at(self, closure, before, t, direction):
        """The point at distance t; the parameters come back to where the line begins."""
        self._move(t, direction)
        loss, grad = self._evaluate(closure)
        for p, value in zip(self._params, before):
            p.copy_(value)
        return _Point(t, loss, grad, grad.dot(direction))

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Run up to ``max_iter`` iterations; returns the loss at their start."""
        with rushlight.no_grad():
            return self._step(closure)

    def _step(self, closure):
        group = self.param_groups[0]
        lr, wanted = group["lr"], group["tolerance_grad"]
        if isinstance(lr, rushlight.Tensor):
            lr = lr.squeeze()
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        with rushlight.enable_grad():
            first_loss = closure()
        loss, grad = float(first_loss), self._flat_grad()
        evaluations, tiny = 1, group["tolerance_change"]
        state["func_evals"] += 1
        if grad.abs().max() <= wanted:
            return first_loss

        memory = _Memory(state, group["history_size"])
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            memory.update(grad, loss)
            direction = memory.direction
            first = state["n_iter"] == 1
            memory.t = t = min(1.0, 1.0 / grad.abs().sum()) * lr if first else lr
            previous, slope = loss, grad.dot(direction)
            if slope > -tiny:
                break

            calls = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                before = [p.clone() for p in self._params]

                def evaluate(t, before=before, direction=direction):
                    return self._evaluate_at(closure, before, t, direction)

                start = _Point(0, loss, grad.clone(), slope)
                point, calls = _search_line(evaluate, start, t, direction.abs().max())
                memory.t, loss, grad = point.t, point.loss, point.grad
                self._move(memory.t, direction)
            else:
                self._move(t, direction)
                if iterations != group["max_iter"]:
                    loss, grad = self._evaluate(closure)
                    calls = 1
            evaluations += calls
            state["func_evals"] += calls
            if (
                iterations == group["max_iter"]
                or evaluations >= group["max_eval"]
                or grad.abs().max() <= wanted
                or (direction * memory.t).abs().max() <= tiny
                or abs(loss - previous) < tiny
            ):
                break
        memory.store(state)
        return first_loss


class _Memory:
    """The last changes of position and gradient, which stand for the inverse Hessian."""

    def __init__(self, state, size):
        self.size, self.state = size, state
        self.direction, self.t = state.get("d"), state.get("t")
        self.changes, self.steps = state.get("old_dirs"), state.get("old_stps")
        self.inverse_products, self.scale = state.get("ro"), state.get("H_diag")
        self.grad, self.loss = state.get("prev_flat_grad"), state.get("prev_loss")

    def store(self, state):
        state.update(
            d=self.direction,
            t=self.t,
            old_dirs=self.changes,
            old_stps=self.steps,
            ro=self.inverse_products,
            H_diag=self.scale,
            prev_flat_grad=self.grad,
            prev_loss=self.loss,
        )

    def update(self, grad, loss):
        """Take in the gradient at the new position and find the next direction."""
        if self.state["n_iter"] == 1:
            self.direction = grad.neg()
            self.changes, self.steps, self.inverse_products, self.scale = [], [], [], 1
        else:
            self._remember(grad.sub(self.grad), self.direction.mul(self.t))
            self.direction = self._two_loops(grad.neg())
        if self.grad is None:
            self.grad = grad.clone()
        else:
            self.grad.copy_(grad)
        self.loss = loss

    def _remember(self, change, step):
        product = change.dot(step)
        if product <= 1e-10:  # curvature that would make the Hessian indefinite
            return
        if len(self.changes) == self.size:
            for history in (self.changes, self.steps, self.inverse_products):
                history.pop(0)
        self.changes.append(change)
        self.steps.append(step)
        self.inverse_products.append(1.0 / product)
        self.scale = product / change.dot(change)

    def _two_loops(self, q):
        weights = self.state.setdefault("al", [None] * self.size)
        for i in reversed(range(len(self.changes))):
            weights[i] = self.steps[i].dot(q) * self.inverse_products[i]
            q.add_(self.changes[i], alpha=-weights[i].item())
        r = q.mul(self.scale)
        for i in range(len(self.changes)):
            beta = self.changes[i].dot(r) * self.inverse_products[i]
            r.add_(self.steps[i], alpha=(weights[i] - beta).item())
        return r


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """The search for programs that have an optimizer of their own.

    Args:
        obj_func: gives the loss and the flat gradient at `x` + `t` `d`.
        x, t, d: where the line begins, the first distance, the direction.
        f, g, gtd: loss and gradient at `x`, and the slope along `d`.

    Returns the loss, the gradient and the distance of a point, and the number of evaluations.
    """

    def evaluate(distance):
        loss, grad = obj_func(x, distance, d)
        return _Point(distance, loss, grad.clone(), grad.dot(d))

    start = _Point(0, f, g.clone(), gtd)
    point, calls = _search_line(evaluate, start, t, d.abs().max(), c1, c2, tolerance_change, max_ls)
    return point.loss, point.grad, point.t, calls


def _search_line(evaluate, start, t, longest, decrease=1e-4, curvature=0.9, tiny=1e-9, limit=25):
    """A point along a line that satisfies the strong Wolfe conditions, and how many evaluations it took.

    1. Walk outwards until a bracket holds such a point. 2. Shrink the bracket by cubic interpolation.
    """
    point, previous, calls, tries = evaluate(t), start, 1, 0

    def too_high(p):
        return p.loss > start.loss + decrease * p.t * start.slope

    def flat_enough(p):
        return abs(p.slope) <= -curvature * start.slope

    bracket = None
    while tries < limit:
        if too_high(point) or (tries > 1 and point.loss >= previous.loss):
            bracket = [previous, point]
            break
        if flat_enough(point):
            return point, calls
        if point.slope >= 0:
            bracket = [previous, point]
            break
        bounds = point.t + 0.01 * (point.t - previous.t), point.t * 10
        t = _between(previous, point, bounds)
        previous, point = point, evaluate(t)
        calls, tries = calls + 1, tries + 1
    bracket = bracket or [start, point]

    low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
    stuck = False
    while tries < limit:
        near, far = min(p.t for p in bracket), max(p.t for p in bracket)
        if (far - near) * longest < tiny:
            break
        t = _between(*bracket)
        # Two points in a row close to an end of the bracket mean that it hardly shrinks: step inwards.
        margin = 0.1 * (far - near)
        if min(far - t, t - near) < margin:
            if stuck or t >= far or t <= near:
                t = far - margin if abs(t - far) < abs(t - near) else near + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False

        point = evaluate(t)
        calls, tries = calls + 1, tries + 1
        if too_high(point) or point.loss >= bracket[low].loss:
            bracket[high] = point
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        done = flat_enough(point)
        if not done and point.slope * (bracket[high].t - bracket[low].t) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = point
        if done:
            break
    return bracket[low], calls


def _between(a, b, bounds=None):
    return _cubic_interpolate(a.t, a.loss, a.slope, b.t, b.loss, b.slope, bounds)


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None):
    """Where the cubic through two points with their slopes is least, within bounds; else their middle."""
    near, far = (min(x1, x2), max(x1, x2)) if bounds is None else bounds
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (near + far) / 2.0
    d2 = square.sqrt()
    if x1 <= x2:
        x = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        x = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(x, near), far)
