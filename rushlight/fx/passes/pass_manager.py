"""The earlier form of `infra.pass_manager`: passes take a module and return one."""

from functools import wraps

from .infra.pass_manager import Schedule, this_before_that_pass_constraint

__all__ = ["PassManager", "inplace_wrapper", "loop_pass", "these_before_those_pass_constraint"]
__all__ += ["this_before_that_pass_constraint"]


def inplace_wrapper(fn):
    """A function that changes its argument as a pass."""

    @wraps(fn)
    def wrapped(gm):
        fn(gm)
        return gm

    return wrapped


def loop_pass(base_pass, n_iter=None, predicate=None):
    """A pass run `n_iter` times, or while ``predicate(input)`` holds."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("exactly one of n_iter and predicate must be given")

    @wraps(base_pass)
    def repeated(source):
        count = 0
        while count < n_iter if n_iter is not None else predicate(source):
            source = base_pass(source)
            count += 1
        return source

    return repeated


def these_before_those_pass_constraint(these, those):
    """The constraint that no pass of one kind runs after one of another."""

    def depends_on(a, b):
        return unwrapped(a) != those or unwrapped(b) != these

    def unwrapped(fn):
        return getattr(fn, "__wrapped__", fn)

    return depends_on


class PassManager(Schedule):
    """Runs passes in an order that obeys the constraints."""

    @classmethod
    def build_from_passlist(cls, passes):
        return cls(passes)

    def remove_pass(self, _passes):
        self.passes = [p for p in self.passes if p.__name__ not in _passes]
        self._validated = False

    def replace_pass(self, _target, _replacement):
        name = _target.__name__
        self.passes = [_replacement if p.__name__ == name else p for p in self.passes]
        self._validated = False

    def validate(self):
        self.validate_constraints()

    def __call__(self, source):
        self.validate()
        for fn in self.passes:
            source = fn(source)
        return source
