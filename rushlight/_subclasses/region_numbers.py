"""Numbers of the data that a function of `cond`, `map` or `while_loop` reads: values in its own graph.

An integer there is a sample that no program writes down, by which operators' arguments show where it goes,
as for numbers with a fraction. It may be a value of tensors, but no size, which the graph around would have
to know.
"""

from rushlight._errors.capture import GuardOnDataDependentSymNode

from .data_numbers import DataNumbers
from .expressions import Expression
from .relations import implied

_FAR = 1 << 29  # integers from here on are samples


class RegionNumbers(DataNumbers):
    """The numbers of one function, whose samples change with those of the trace around it (`inner`)."""

    def __init__(self, around, tracer):
        super().__init__()
        self.tracer, self.whole = tracer, set()
        if tracer is not None:
            self.choices, self.compared = around.choices, around.compared
            self.samples, self.derived = around.samples, around.derived
            self.bounds, self.inner, self.again = around.bounds, around.inner, around.again

    def new(self, is_size, known=None):
        if is_size:
            raise _refused("a size that depends on its data")
        name, value = super().new(is_size)
        self.inner.add(name)
        return name, value

    def read(self, tensor, known=None):
        value = super().read(tensor)
        if type(value) is bool or not isinstance(value, int):
            return value
        self.whole.add(self.last[0])
        return self.samples_of(self.last[0])

    def samples_of(self, name):
        value = super().samples_of(name)
        return 2 * _FAR + 1000 * int(name[1:]) + value if name in self.whole else value

    def attach(self, proxy):
        super().attach(proxy)
        if self.last is not None and self.last[0] in self.whole:
            self.note(self.samples_of(self.last[0]), Expression(None, self.last[0]))

    def note(self, value, expression):
        if abs(value) >= _FAR:
            self.integers[int(value)] = expression

    def require(self, truth, message=None):
        """The graph checks it; nothing here depends on the sample."""
        if self.answer(truth) is None and self.tracer is not None:
            self.record(truth)
        difference = truth.difference()
        if difference is not None:
            self.facts |= implied(truth.relation, difference)

    def check_arguments(self, func, args, kwargs):
        """Raise where an operator takes such an integer as more than a value."""
        for argument, given in zip(func._schema.arguments, args):
            self._check_argument(argument, given)
        for argument in func._schema.arguments:
            self._check_argument(argument, kwargs.get(argument.name))

    def _check_argument(self, argument, given):
        if str(argument.type).rstrip("?") not in ("Scalar", "Tensor") and self._has_integer(given):
            raise _refused(f"an integer of its data as `{argument.name}` of an operator")

    def check_index(self, index):
        """Raise where an index has such an integer; slices would end where the sample does."""
        parts = index if isinstance(index, tuple) else (index,)
        ends = [(i.start, i.stop, i.step) if isinstance(i, slice) else i for i in parts]
        if any(map(self._has_integer, ends)):
            raise _refused("an integer of its data as an index")

    def _has_integer(self, value):
        if isinstance(value, (list, tuple)):
            return any(map(self._has_integer, value))
        return isinstance(value, int) and int(value) in self.integers


def _refused(what):
    from rushlight.fx.experimental.proxy_tensor import _user_line

    return GuardOnDataDependentSymNode(
        "",
        f"A function of cond, map or while_loop has {what}, in {_user_line()}: in a graph it can only "
        "compute tensors with such a number. Read the number before, and pass on what depends on it.",
    )


def refused_mixture():
    """The error of a number that another graph reads, of a function or around one."""
    from rushlight.fx.experimental.proxy_tensor import _user_line

    return GuardOnDataDependentSymNode(
        "",
        "A function of cond, map or while_loop computes with a number of its data and one of the graph "
        f"around it, in {_user_line()}: pass the other one to it as a tensor.",
    )
