"""`PassManager`: runs passes in an order that obeys constraints, until nothing changes."""

import inspect
from functools import wraps

from rushlight import nn
from rushlight.fx.graph_module import GraphModule

from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn):
    """A function on modules as a pass: a result that is no PassResult counts as a change."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapped(gm):
        result = fn(gm)
        if result is None:
            return PassResult(gm, True)
        return PassResult(result, True) if isinstance(result, nn.Module) else result

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def _name_of(fn):
    return fn.__name__ if inspect.isfunction(fn) else type(fn).__name__


def _validate_pass_schedule_constraint(constraint, passes):
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :], i + 1):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at index {i} "
                    f"and {b} at index{j} in pass list."
                )


def _topological_sort_passes(passes, constraints):
    """An order that obeys all constraints."""
    if not constraints:
        return passes
    following, waiting = {p: [] for p in passes}, dict.fromkeys(passes, 0)
    for constraint in constraints:
        for a in passes:
            for b in passes:
                if a != b and not constraint(a, b):
                    following[b].append(a)
                    waiting[a] += 1
    order = [p for p in passes if waiting[p] == 0]
    for done in order:  # grows while it is walked
        for p in following[done]:
            waiting[p] -= 1
            if waiting[p] == 0:
                order.append(p)
    stuck = [p for p in passes if waiting[p] > 0]
    if stuck:
        raise RuntimeError(f"Circular dependency detected within the following passes: {stuck}")
    return order


def this_before_that_pass_constraint(this, that):
    """The constraint that one pass does not run after another."""

    def depends_on(a, b):
        return a != that or b != this

    return depends_on


class Schedule:
    """Passes, and constraints on their order."""

    def __init__(self, passes=None, constraints=None):
        self.passes, self.constraints = list(passes or []), list(constraints or [])
        self._validated = False

    def add_pass(self, _pass):
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self):
        """Raise if the passes' order does not obey the constraints."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self):
        """Bring the passes into an order that obeys the constraints."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True


class PassManager(Schedule):
    """Runs passes on a module, at most ``steps`` times, as long as they change it."""

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps=None,
        run_checks_after_each_pass=False,
        suppress_check_failures=False,
    ):
        super().__init__(passes, constraints)
        self.steps = 1 if steps is None else steps
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures

    def add_checks(self, check):
        """A function on modules that raises if something is wrong."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        """Nothing is checked unless `add_checks` says what."""

    def __call__(self, module):
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed_ever = False
        for _ in range(self.steps):
            changed = False
            for i, fn in enumerate(self.passes):
                module, did = self._run(fn, i, module)
                changed |= did
            changed_ever |= changed
            if not changed:
                break
        return PassResult(module, changed_ever)

    def _run(self, fn, i, module):
        name = _name_of(fn)
        try:
            result = fn(module)
            if not hasattr(result, "graph_module"):
                raise TypeError(
                    f"The result of the pass {name} should be type PassResult. Please wrap it with "
                    "pass_result_wrapper()"
                )
        except Exception as error:
            before = [_name_of(p) for p in self.passes[:i]]
            text = f"An error occurred when running the '{name}' pass after the following passes: {before}"
            raise Exception(text) from error  # noqa: TRY002
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result.graph_module, result.modified
