"""Numbers that a program reads from its data while it is traced: `item()`, sizes such as `nonzero`'s.

A trace has no data, so each such number is a sample, and the program is traced with several of them
(`rushlight.export._dynamics`). What may be asked of one is what `torch._check` said of it, as for PyTorch's
unbacked symbols: any other comparison would make the trace depend on the sample, and is an error.
"""

import math
import operator
from typing import Any

import rushlight as torch
from rushlight._errors.capture import GuardOnDataDependentSymNode

from .decisions import Asked
from .expressions import SIGNS, Expression
from .relations import MIRRORED, decided, implied, key_of
from .size_numbers import SizeInt

_FIRST = (3, 5, 7, 11, 13, 17, 19, 23)  # samples are unlike each other, and unlike sizes that take shortcuts
_OPPOSITE = {
    operator.lt: operator.ge, operator.le: operator.gt, operator.eq: operator.ne, operator.ne: operator.eq,
    operator.gt: operator.le, operator.ge: operator.lt,
}  # fmt: skip


def _fraction(sample):
    """The number that a sample stands for where it is no integer: one that no program writes down."""
    return 0.6180339887498949 + 0.3711111111171 * sample


class Infeasible(Exception):
    """A sample is not what the program demands of the number; says what would be."""

    def __init__(self, text, name=None, value=None, derived=None):
        super().__init__(text)
        self.name, self.value, self.derived = name, value, derived


def _expression(value):
    return value.expression if isinstance(value, DataInt) else Expression(None, int(value))


class DataNumbers:
    """The numbers of one trace: their samples, and what is known of them."""

    def __init__(self, samples=None, derived=None, decisions=None, united=frozenset()):
        self.samples = dict(samples or {})
        self.derived = derived or {}  # name -> the linear expression that it equals
        self.bounds: dict = {}  # name -> (lowest, highest)
        self.is_size: set = set()
        self.united = (
            united  # those that follow from others since the program needs it, which the graph checks
        )
        self.unchecked: list = []  # of these, those whose check the next operator of the graph comes after
        self.most: dict = {}  # name of a size -> how large it can be
        self.origins: dict = {}  # name -> (tensor that it was read from or that has the size, dimension)
        self.facts: set = set()  # relations that hold: keys of key_of
        self.tracer: Any = None  # where conditions become nodes
        self.nodes: dict = {}  # name -> the proxy that reads it
        self.last: Any = None  # the number read last: its name, and the dtype
        self.fractions: set = set()  # names of numbers that are no integers
        self.floats: dict = {}  # sample of such a number, or what was computed of it -> its proxy
        self.integers: dict = {}  # the same of integers that are known by their samples -> its expression
        self.inner: set = set()  # names of numbers that functions of the graph read
        self.choices: Any = None  # of the sizes of inputs: a SizeChoices
        self.compared: list = []  # what each `cond` depends on
        self.asked = Asked(decisions)
        self.again: set = set()  # those that a trace of such a graph reads

    # --- new numbers ---

    def new(self, is_size, known=None):
        """(name, sample) of a number that is read now; beside real tensors it may be known."""
        name = f"u{len(self.bounds)}"
        if known is not None:
            self.samples[name] = int(known)
        elif not is_size:
            self.asked.unknown.add(name)
        self.bounds[name] = (0 if is_size else -math.inf, math.inf)
        if is_size:
            self.is_size.add(name)
        if name in self.united:
            self.unchecked.append(name)
        if name in self.derived:
            value = self.samples_of(name)
        else:
            value = self.samples.setdefault(name, _FIRST[(len(self.bounds) - 1) % len(_FIRST)])
        return name, value

    def take_size(self, name, size):
        """A size that was found is this one in the example."""
        if self.samples_of(name) != size:
            raise Infeasible("the example has another size", name, size)

    def read(self, tensor, known=None):
        """The sample of what a tensor of one element holds, or what a real one holds."""
        if tensor.dtype.is_complex:
            raise GuardOnDataDependentSymNode("", "a complex number of the data has no symbol")
        name, value = self.new(False, None if tensor.dtype.is_floating_point else known)
        self.last = name, tensor.dtype
        if tensor.dtype is torch.bool:
            self.bounds[name] = 0, 1
            return value % 2 == 1
        if not tensor.dtype.is_floating_point:
            return value
        self.fractions.add(name)
        return _fraction(value)

    def item(self, tensor, read):
        """What `tensor.item()` gives to the program."""
        known = tensor.item_memo
        if known is None or known[0] != tensor._version or known[3] is not self:
            self.last = None
            value = read()
            if self.last is None:  # known already
                return value
            tensor.item_memo = known = tensor._version, *self.last, self
        _, name, dtype, _ = known
        if name in self.fractions:
            return DataFloat(_fraction(self.samples_of(name)), self.nodes.get(name), self)
        number = self.number(name)
        return number == 1 if dtype is torch.bool else number

    def attach(self, proxy):
        """The node that reads the last number."""
        if self.last is not None and self.last[0] not in self.nodes:
            name = self.last[0]
            self.nodes[name] = proxy
            if name in self.fractions:
                self.floats[_fraction(self.samples_of(name))] = proxy

    def note(self, value, expression):
        """An integer was computed of those that the program read."""

    def number(self, name):
        return DataInt(self.samples_of(name), Expression(None, name), self)

    def samples_of(self, name):
        if name in self.derived:
            return sum(c * (1 if n is None else self.samples_of(n)) for n, c in self.derived[name].items())
        return self.samples[name]

    # --- what is known ---

    def answer(self, truth):
        """Whether a condition holds for all numbers that are possible; None where that is not known."""
        difference = truth.difference()
        if difference is None:
            return None
        key = key_of(truth.relation, difference)
        if key in self.facts:
            return True
        if key_of(_OPPOSITE[truth.relation], difference) in self.facts:
            return False
        low, high = self._reach(difference)
        return decided(truth.relation, low, high)

    def _reach(self, difference):
        low = high = 0
        for name, c in difference.items():
            least, most = (1, 1) if name is None else self.bounds.get(name, (-math.inf, math.inf))
            if c:
                ends = sorted((c * least, c * most))
                low, high = low + ends[0], high + ends[1]
        return low, high

    def require(self, truth, message=None):
        """From now on the condition holds; the graph checks it."""
        known = self.answer(truth)
        if known is False:
            raise RuntimeError(f"Runtime assertion failed for expression {truth}")
        difference = truth.difference()
        if difference is not None:
            self.facts |= implied(truth.relation, difference)
            self._narrow(truth.relation, difference)
        if not truth.value:
            self._refuse_sample(truth, difference)
        if known is None and self.tracer is not None:
            self.record(truth)

    def _narrow(self, relation, difference):
        names = [name for name, c in difference.items() if name is not None and c]
        if len(names) != 1 or relation is operator.ne:
            return
        (name,), c = names, difference[names[0]]
        edge = -difference.get(None, 0) / c
        low, high = self.bounds[name]
        if c < 0:
            relation = MIRRORED[relation]
        if relation in (operator.ge, operator.gt, operator.eq):
            low = max(low, math.floor(edge) + 1 if relation is operator.gt else math.ceil(edge))
        if relation in (operator.le, operator.lt, operator.eq):
            high = min(high, math.ceil(edge) - 1 if relation is operator.lt else math.floor(edge))
        self.bounds[name] = low, high

    def _refuse_sample(self, truth, difference):
        """Say which sample would do."""
        text = f"the sample does not satisfy {truth}"
        if difference is not None and truth.relation is operator.eq:
            self._refuse_constant(text, difference)
        while self.derived.keys() & (difference or {}).keys():
            difference = self._expanded(difference)
        names = free = [n for n, c in (difference or {}).items() if n is not None and c]
        if difference is None or not free:
            raise Infeasible(text)
        if len(names) == 1:
            low, high = self.bounds[free[0]]
            sample = self.samples[free[0]]
            if truth.relation is operator.ne:
                raise Infeasible(text, free[0], sample + 1)
            raise Infeasible(text, free[0], int(min(max(sample, low), high)))
        free.sort(key=lambda n: -int(n[1:]))
        unit = next((n for n in free if abs(difference[n]) == 1), None)
        if truth.relation is operator.eq and unit is not None:  # the one read last follows from the others
            c = difference[unit]
            rest = {n: -c * d for n, d in difference.items() if n != unit}
            raise Infeasible(text, unit, derived=rest)
        for least in (2, -math.inf):  # sizes of one and zero take shortcuts
            for name in free:
                value = self._sample_that_holds(truth.relation, difference, name)
                if value is not None and value >= least:
                    raise Infeasible(text, name, value)
        raise Infeasible(text, free[0])

    def _expanded(self, difference):
        """The same in numbers of which fewer follow from others."""
        found: dict = {}
        for name, c in difference.items():
            for other, factor in self.derived.get(name, {name: 1}).items():
                found[other] = found.get(other, 0) + c * factor
        return found

    def _refuse_constant(self, text, difference):
        """What a number follows from may have sizes in it, which are others in this trace."""
        for name in [n for n in self.derived if abs(difference.get(n, 0)) == 1]:
            c = difference[name]
            rest = {n: -c * d for n, d in difference.items() if n != name and d}
            known = dict(self.derived[name])
            if {**known, None: 0} == {**rest, None: 0}:
                raise Infeasible(text, name, derived=rest)

    def _sample_that_holds(self, relation, difference, name):
        """A sample of one number with which an inequality holds, by one more than it needs where possible."""
        c = difference[name]
        others = {n: d for n, d in difference.items() if n != name and d}
        edge = -sum(d * (1 if n is None else self.samples_of(n)) for n, d in others.items()) / c
        relation = MIRRORED.get(relation, relation) if c < 0 else relation
        low, high = self.bounds[name]
        if relation in (operator.ge, operator.gt):
            tried = math.floor(edge) + 1, math.ceil(edge)
        elif relation in (operator.le, operator.lt):
            tried = math.ceil(edge) - 1, math.floor(edge)
        else:
            return None
        return next((n for n in tried if low <= n <= high and relation(n, edge)), None)

    def refuse_mixture(self):
        """The program computes with a number that another graph reads, of a function or around one."""
        from .region_numbers import refused_mixture

        raise refused_mixture()

    def settle(self, number):
        """A program wants a plain number of one that depends on its data."""
        low, high = self.bounds.get(str(number), (-math.inf, math.inf))
        if low == high:
            return
        answer = self.asked.answer(int(number), str(number), number.expression.names(), str(number))
        value = int(number) if answer is None else answer
        truth = DataTruth(operator.eq, number.expression, _expression(value), int(number) == value, self)
        if answer is None:
            raise _undecided(truth)
        self.require(truth)

    def decide(self, truth):
        """The example's answer to a condition that nothing else decides; the graph checks it."""
        names = truth.first.names() | truth.second.names()
        answer = self.asked.answer(truth.value, truth.relation.__name__, names, str(truth))
        if answer is None:
            raise _undecided(truth)
        self.require(truth if answer else truth.opposite())
        return answer

    # --- nodes ---

    def proxy(self, expression):
        """The proxy or number that an expression is in the graph."""
        if expression.operation is None:
            return self._source(expression.first) if isinstance(expression.first, str) else expression.first
        operands = [self.proxy(e) for e in (expression.first, expression.second) if e is not None]
        made = self.tracer.create_proxy("call_function", expression.operation, tuple(operands), {})
        value = expression.operation(*(int(_sample(o)) for o in operands))
        made.node.meta["val"] = SizeInt(value, expression) if type(value) is int else value
        return made

    def _source(self, name):
        if name not in self.nodes:
            if name not in self.origins:
                self.refuse_mixture()
            tensor, dim = self.origins[name]
            proxy = self.tracer.proxy_of(tensor)
            with self.tracer.graph.inserting_after(proxy.node):  # operators from there on may want it
                size = torch.ops.aten.sym_size.int  # type: ignore[attr-defined]
                made = self.tracer.create_proxy("call_function", size, (proxy, dim), {}, name="sym_size_int")
            made.node.meta["val"] = self.samples_of(name)
            self.nodes[name] = made
        return self.nodes[name]

    def check_united(self):
        """Nodes that check what the program needs of the numbers that were read last."""
        while self.unchecked:
            name = self.unchecked.pop(0)
            (other,) = self.derived[name]
            truth = DataTruth(operator.eq, Expression(None, name), Expression(None, other), True, self)
            self.facts |= implied(truth.relation, truth.difference())
            self.record(truth)

    def record(self, truth):
        """A node that checks a condition when the graph runs; `describe_numbers` tells the condition."""
        condition = self.proxy(Expression(truth.relation, truth.first, truth.second))
        text = f"Runtime assertion failed on node '{condition.node.name}'"  # no sizes, which differ by trace
        check = torch.ops.aten._assert_scalar.default
        made = self.tracer.create_proxy(
            "call_function", check, (condition, text), {}, name="_assert_scalar_default"
        )
        made.node.meta["val"] = None


def _sample(operand):
    return operand.node.meta["val"] if hasattr(operand, "node") else operand


class DataTruth(torch.SymBool):
    """A comparison of such numbers: `torch._check` takes it, a branch may not."""

    def __init__(self, relation, first, second, value, numbers):
        self.relation, self.first, self.second = relation, first, second
        self.value, self.numbers = value, numbers

    def __str__(self):
        return f"{self.first} {SIGNS[self.relation]} {self.second}"

    __repr__ = __str__

    def difference(self):
        return Expression(operator.sub, self.first, self.second).linear()

    def expect(self, message=None):
        self.numbers.require(self, message)
        return True

    def as_tensor(self):
        """The truth as a tensor that the graph computes."""
        a, b = (e.value(self.numbers.samples_of) for e in (self.first, self.second))
        return self.relation(torch.full((), a, dtype=torch.int64), torch.full((), b, dtype=torch.int64))

    def opposite(self):
        return DataTruth(_OPPOSITE[self.relation], self.first, self.second, not self.value, self.numbers)

    def __bool__(self):
        known = self.numbers.answer(self)
        return self.numbers.decide(self) if known is None else known

    def __and__(self, other):
        return other if self.numbers.answer(self) is True else bool(self) and other

    def __or__(self, other):
        return True if self.numbers.answer(self) is True else bool(self) or other

    def __hash__(self):
        return hash(str(self))


def _undecided(truth):
    from rushlight.fx.experimental.proxy_tensor import _user_line

    sizes = ", ".join(sorted(truth.numbers.is_size)) or "none"
    return GuardOnDataDependentSymNode(
        str(truth),
        f"Could not guard on data-dependent expression {truth} (unhinted: {truth}).  "
        f"(Size-like symbols: {sizes})\n\n"
        f"The program would take a path that depends on its data in {_user_line()}, and a graph has one "
        "path. To fix the error, insert one of the following checks before this call:\n"
        f"  1. torch._check({truth})\n  2. torch._check({truth.opposite()})\n"
        "or write the branch as torch.cond or torch.where.",
    )


class DataInt(int, torch.SymInt):
    """An integer that the program read from its data: a sample for operators, a symbol for the program."""

    expression: Expression
    numbers: DataNumbers

    def __new__(cls, value, expression, numbers):
        made = int.__new__(cls, value)
        made.expression, made.numbers = expression, numbers
        numbers.note(value, expression)
        return made

    def __reduce__(self):
        return int, (int(self),)

    def __bool__(self):
        return bool(self != 0)

    def __hash__(self):
        return int.__hash__(self)

    def __index__(self):
        return int.__int__(self)

    def __str__(self):
        return str(self.expression)

    __repr__ = __str__

    def __sym_max__(self, other):
        return _combined(torch.sym_max, max, self, other)

    def __sym_min__(self, other):
        return _combined(torch.sym_min, min, self, other)


def _combined(operation, compute, a, b):
    numbers = a.numbers if isinstance(a, DataInt) else b.numbers
    value = compute(int(a), int(b))
    return DataInt(value, Expression(operation, _expression(a), _expression(b)), numbers)


class DataFloat(float, torch.SymFloat):
    """A number with a fraction that the program read from its data. Operators take the sample, by which
    the tracer knows it again."""

    proxy: Any
    numbers: DataNumbers

    def __new__(cls, value, proxy, numbers):
        made = float.__new__(cls, value)
        made.proxy, made.numbers = proxy, numbers
        if proxy is not None:
            numbers.floats[value] = proxy
        return made

    def __reduce__(self):
        return float, (float.__add__(self, 0.0),)

    def __hash__(self):
        return float.__hash__(self)

    def _refuse(self, *_):
        from rushlight.fx.experimental.proxy_tensor import _user_line

        name = "the number" if self.proxy is None else self.proxy.node.name
        raise GuardOnDataDependentSymNode(
            name,
            f"Could not guard on data-dependent expression of {name}: the program would take a path that "
            f"depends on its data in {_user_line()}. Write the branch as torch.cond or torch.where.",
        )

    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = _refuse  # type: ignore[assignment]
    __float__ = __int__ = __trunc__ = __floor__ = __ceil__ = __round__ = _refuse  # type: ignore[assignment]


def _float_arithmetic(name, operation):
    plain, reflected = (getattr(float, f"__{prefix}{name}__") for prefix in ("", "r"))

    def made(numbers, value, *operands):
        if numbers.tracer is None:
            return DataFloat(value, None, numbers)
        if any(getattr(operand, "numbers", numbers) is not numbers for operand in operands):
            numbers.refuse_mixture()
        proxies = [_proxy_of(operand) for operand in operands]
        proxy = numbers.tracer.create_proxy("call_function", operation, tuple(proxies), {})
        proxy.node.meta["val"] = value
        return DataFloat(value, proxy, numbers)

    def run(self, other):
        value = plain(self, other)
        return value if value is NotImplemented else made(self.numbers, value, self, other)

    def run_reflected(self, other):
        value = reflected(self, other)
        return value if value is NotImplemented else made(self.numbers, value, other, self)

    def of_integers(self, other):
        value = getattr(float, f"__{name}__")(float(int(self)), float(other))
        return made(self.numbers, value, self, other)

    def of_integers_reflected(self, other):
        value = getattr(float, f"__{name}__")(float(other), float(int(self)))
        return made(self.numbers, value, other, self)

    setattr(DataFloat, f"__{name}__", run)
    setattr(DataFloat, f"__r{name}__", run_reflected)
    if name == "truediv":
        setattr(DataInt, "__truediv__", of_integers)  # noqa: B010
        setattr(DataInt, "__rtruediv__", of_integers_reflected)  # noqa: B010
    return of_integers, of_integers_reflected


def _proxy_of(operand):
    if isinstance(operand, DataInt):
        return operand.numbers.proxy(operand.expression)
    if isinstance(operand, DataTruth):
        return operand.numbers.proxy(Expression(operand.relation, operand.first, operand.second))
    return operand.proxy if isinstance(operand, DataFloat) else operand


def _arithmetic(name, operation):
    plain, reflected = getattr(int, f"__{name}__"), getattr(int, f"__r{name}__")
    with_float = _FLOAT.get(name)

    def run(self, other):
        if type(other) in (float, DataFloat) and with_float:
            return with_float[0](self, other)
        value = plain(self, other)
        if value is NotImplemented or isinstance(other, bool) or type(value) is not int:
            return value
        return DataInt(value, Expression(operation, self.expression, _expression(other)), self.numbers)

    def run_reflected(self, other):
        if type(other) in (float, DataFloat) and with_float:
            return with_float[1](self, other)
        value = reflected(self, other)
        if value is NotImplemented or isinstance(other, bool) or type(value) is not int:
            return value
        return DataInt(value, Expression(operation, _expression(other), self.expression), self.numbers)

    setattr(DataInt, f"__{name}__", run)
    setattr(DataInt, f"__r{name}__", run_reflected)


def _comparison(name, relation):
    plain = getattr(int, f"__{name}__")

    def compare(self, other):
        value = plain(self, other)
        if value is NotImplemented or isinstance(other, bool) or not isinstance(other, int):
            return value
        truth = DataTruth(relation, self.expression, _expression(other), value, self.numbers)
        known = self.numbers.answer(truth)
        return truth if known is None else known

    setattr(DataInt, f"__{name}__", compare)


_FLOAT = {
    name: _float_arithmetic(name, getattr(operator, name)) for name in ("add", "sub", "mul", "truediv", "pow")
}
for _name in ("add", "sub", "mul", "floordiv", "mod"):
    _arithmetic(_name, getattr(operator, _name))
for _name in ("lt", "le", "eq", "ne", "gt", "ge"):
    _comparison(_name, getattr(operator, _name))
DataInt.__neg__ = lambda self: 0 - self  # type: ignore[method-assign]
DataInt.__pos__ = lambda self: self  # type: ignore[method-assign]
