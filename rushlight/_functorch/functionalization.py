"""Programs without mutation: a mode that turns in-place and ``out=`` operators into pure ones.

Every tensor that the program holds has a *value*, a tensor that is never written to: modes outside, which
may record, see operators on values alone. What the program holds is kept up to date behind their backs, so
that it can be looked at, and so that views keep sharing memory. Tensors of one storage form a group, which
has one value; its members are views of that, by the chain of operators that made them. Writing to a member
puts its new value into the group's, and the others are made anew when they are next used.
"""

import contextlib
import functools
from dataclasses import dataclass, field

import rushlight as torch
from rushlight._extension.dispatch_keys import PRE_DISPATCH
from rushlight._operators.traits import argument, unmarked_writes
from rushlight.utils import _pytree as pytree
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _all_modes,
    _pop_mode,
    _push_mode,
)

aten = torch.ops.aten  # type: ignore[attr-defined]


@contextlib.contextmanager
def _modes_off(which=TorchDispatchMode):
    """Within it, modes of this kind see nothing; the others stay in order."""
    stack = _all_modes()
    kept = [mode for mode in stack if not isinstance(mode, which)]
    for mode in reversed(stack):
        _pop_mode(mode._dispatch_key)
    for mode in kept:
        _push_mode(mode)
    try:
        yield
    finally:
        for mode in reversed(kept):
            _pop_mode(mode._dispatch_key)
        for mode in stack:
            _push_mode(mode)


@contextlib.contextmanager
def _recording_off():
    """Within it, nothing is recorded; fake tensors stay fake."""
    from rushlight.fx.experimental.proxy_tensor import ProxyTorchDispatchMode

    with _modes_off(ProxyTorchDispatchMode):
        yield


def _emit(func, *args, **kwargs):
    """An operator as itself, also where it is written in others that the recorder would see instead."""
    from rushlight.fx.experimental.proxy_tensor import get_proxy_mode

    recorder = get_proxy_mode()
    if recorder is None:
        return func(*args, **kwargs)
    with _recording_off():
        return recorder.__torch_dispatch__(func, (), args, kwargs)


@dataclass(frozen=True)
class _Geometry:
    """Where a tensor's elements lie in its storage."""

    shape: tuple
    strides: tuple
    offset: int
    dtype: torch.dtype
    pending: tuple = (False, False)  # conjugation, negation

    @classmethod
    def of(cls, tensor):
        place = tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()
        return cls(*place, tensor.dtype, (tensor.is_conj(), tensor.is_neg()))

    def turns_to(self, view):
        """The operators by which numbers of a view differ from those that it shows: each undoes itself."""
        if self.dtype != view.dtype:  # real and imaginary parts
            return ()
        return tuple(turn for turn, a, b in zip(_TURNS, self.pending, view.pending) if a != b)


@dataclass
class _Step:
    """One view operator: how a view's value comes from its parent's, and goes back there."""

    func: object
    args: tuple
    kwargs: dict
    parent: _Geometry
    item: int | None = None  # of an operator with several results
    turns: tuple = ()  # what makes its numbers of those that lie there
    _index: torch.Tensor | None = None

    def call(self, tensor, func, args=None):
        made = _emit(func, tensor, *(self.args if args is None else args), **self.kwargs)
        return made if self.item is None else made[self.item]

    def may_overlap(self, value):
        """Whether elements of the view may lie below others, or elsewhere in the parent's value."""
        if self.func is not aten.as_strided.default:
            return self.func.traits.overlapping
        reach = 0
        for stride, size in sorted(zip(self.args[1], self.args[0])):
            if size > 1 and stride <= reach:
                return True
            reach += stride * (size - 1)
        return not self._lies_alike(value)

    def _lies_alike(self, value):
        """Whether a value lies in memory as what the program holds."""
        return (value.stride(), value.storage_offset()) == (self.parent.strides, self.parent.offset)

    def replay(self, value, copies):
        if self.func is aten.as_strided.default and not self._lies_alike(value):
            return _emit(aten.index.Tensor, _reshape(value, (-1,)), [self.index()])
        if self.func is aten.view.default and value.stride() != self.parent.strides:
            return _reshape(value, *self.args)
        return self.call(value, _copying(self.func) if copies else self.func)

    def scatter(self, value, part, copies):
        """The parent's value with this part of it replaced."""
        name = self.func._opname
        part = _turned(part, self.turns)
        if name in ("select", "slice", "diagonal"):
            return _emit(getattr(aten, name + "_scatter").default, value, part, *self.args, **self.kwargs)
        if name == "unbind":
            return _emit(aten.select_scatter.default, value, part, (*self.args, 0)[0], self.item)
        if name in ("conj", "_conj", "_neg_view"):  # `turns` have made of it what lies there
            return part
        if name in ("t", "transpose"):
            return self.replay(part, copies)
        if name == "permute":
            order = [d % value.dim() for d in self.args[0]]
            permute = _copying(self.func) if copies else self.func
            return _emit(permute, part, [order.index(d) for d in range(value.dim())])
        if self.func.traits.same_elements:
            return _reshape(part, value.shape)
        if name in ("view_as_real", "view_as_complex"):
            back = {"view_as_real": aten.view_as_complex, "view_as_complex": aten.view_as_real}[name]
            return _emit(back.default, part)
        if self.func is aten.view.dtype:
            return _emit(aten.view.dtype, part, value.dtype)
        if self.func is aten.as_strided.default:
            return _emit(aten.as_strided_scatter.default, value, part, *self.args)
        if name in ("real", "imag") and value.is_complex():
            return aten.complex.default(*((part, value.imag) if name == "real" else (value.real, part)))
        return _put(value, self.index(), part)

    def index(self):
        """Where the view's elements lie among those of its parent, counted row by row."""
        if self._index is None:
            self._index = _index([self])
        return self._index


def _index(steps):
    """Where the elements of the last view lie among those of the first parent, counted row by row."""
    origin = steps[0].parent
    with _modes_off():
        where = torch.empty_strided(origin.shape, origin.strides, dtype=torch.int64)
        where.copy_(torch.arange(where.numel()).view(origin.shape))
        for step in steps:
            if step.func in _PENDING:
                continue
            args = list(step.args)
            if step.func is aten.as_strided.default and len(args) > 2:
                args[2] -= origin.offset
            where = step.call(where, step.func, args)
        return where.contiguous()


def _first_of_a_dtype(steps, end):
    """From which step on, up to this one, elements keep their dtype."""
    kinds = [step.parent.dtype for step in steps[: end + 1]]
    return max(i for i in range(end + 1) if i == 0 or kinds[i] != kinds[i - 1])


def _put(value, index, part):
    """A value with a part of it, whose elements lie at an index, replaced."""
    where, flat = [_reshape(index, (-1,))], _reshape(value, (-1,))
    return _reshape(_emit(aten.index_put.default, flat, where, _reshape(part, (-1,))), value.shape)


def _turned(value, turns):
    for turn in turns:
        value = _emit(turn, value)
    return value


# Views whose conjugation or negation is pending, and what computes it.
_PENDING = aten._conj.default, aten._neg_view.default
_TURNS = aten.conj_physical.default, aten.neg.default


def _copying(view):
    """The operator that copies what this one views, or the same."""
    return getattr(getattr(aten, view._opname + "_copy", None), view._overloadname, view)


def _reshape(tensor, shape):
    return tensor if tuple(tensor.shape) == tuple(shape) else tensor.reshape(shape)


@dataclass
class _Group:
    """The tensors that share one storage, and the value of all of it."""

    value: torch.Tensor
    geometry: _Geometry
    writes: int = 0
    steps: dict = field(default_factory=dict)  # geometry -> how a tensor that lies so is made of the value


@dataclass
class _Member:
    """A tensor that the program holds. Its value is right while no one has written to the group since."""

    outer: torch.Tensor
    group: _Group
    steps: tuple = ()
    value: torch.Tensor | None = None
    writes: int = -1


class FunctionalizeMode(TorchDispatchMode):
    """Within it, operators reach the modes outside without mutation; ``copies`` turns views to copies too.

    With ``pre_dispatch`` it sees operators as the program calls them, as `make_fx` does."""

    def __init__(self, copies=False, pre_dispatch=False):
        super().__init__(PRE_DISPATCH if pre_dispatch else None)
        self.copies = copies
        self.members = {}  # id -> member, which holds the tensor, so that ids and storages stay unique
        self.groups = {}  # storage -> group
        self.inputs = []

    def add_inputs(self, tree):
        """The arguments of the program; `write_inputs` gives them their new values at the end."""
        self.inputs += [self._member(t) for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]

    def write_inputs(self):
        for member in self.inputs:
            value = self._value(member)
            if value is not member.outer:
                aten.copy_.default(member.outer, value)

    def values(self, tree):
        """The values of the tensors in a tree."""
        return pytree.tree_map_only(torch.Tensor, lambda t: self._value(self._member(t)), tree)

    def is_written(self, tensor):
        """Whether the program wrote to the memory of a tensor."""
        return self._member(tensor).group.writes > 0

    def is_one_of_several(self, tensor):
        """Whether an operator that gives several views made it."""
        return any(step.item is not None for step in self._member(tensor).steps)

    def steps_between(self, whole, view):
        """The view operators that make one tensor of another, or None if that is not known."""
        before, after = self._member(whole).steps, self._member(view).steps
        known = len(before) <= len(after) and all(a is b for a, b in zip(before, after))
        steps = after[len(before) :]
        return steps if known and not any(map(_takes_tensors, steps)) else None

    # --- groups

    def _member(self, tensor):
        found = self.members.get(id(tensor))
        if found is not None:
            return found
        storage, geometry = tensor.untyped_storage()._cdata, _Geometry.of(tensor)
        group = self.groups.get(storage)
        if group is None:
            group = self.groups[storage] = _Group(tensor, geometry)
            return self._add(tensor, group, (), tensor)
        # Made where this mode did not look: another object for a known tensor, or a view of one.
        steps = group.steps.get(geometry)
        if steps is None:
            if geometry.dtype != group.geometry.dtype:
                raise NotImplementedError(
                    f"functionalize: a {tensor.dtype} view of a {group.geometry.dtype} tensor, made outside"
                )
            place = geometry.shape, geometry.strides, geometry.offset
            views = [(aten.as_strided.default, place, ())]
            turns = group.geometry.turns_to(geometry)
            views += [(view, (), (turn,)) for view, turn in zip(_PENDING, _TURNS) if turn in turns]
            steps = tuple(_Step(view, args, {}, group.geometry, turns=t) for view, args, t in views)
        return self._add(tensor, group, steps)

    def _add(self, outer, group, steps, value=None):
        member = _Member(outer, group, steps, value, -1 if value is None else group.writes)
        self.members[id(outer)] = member
        group.steps.setdefault(_Geometry.of(outer), steps)
        return member

    def _value(self, member):
        if member.writes != member.group.writes:
            value = member.group.value
            for step in member.steps:
                value = step.replay(value, self.copies)
            member.value, member.writes = value, member.group.writes
        return member.value

    def _write(self, member, value):
        """A tensor has a new value."""
        with _recording_off():
            member.outer.copy_(value)
        whole = self._scatter(member.group.value, member.steps, value)
        member.group.value = whole
        member.group.writes += 1
        member.value, member.writes = value, member.group.writes

    def _resize(self, member, shape):
        """``out=`` of another shape takes that of the result; nobody else looks at it."""
        group = member.group
        if member.steps or any(m.group is group for m in self.members.values() if m is not member):
            raise NotImplementedError("functionalize: out= of another shape that is a view, or has views")
        with _recording_off():
            member.outer.resize_(shape)
            group.value = torch.empty_like(member.outer)
        group.geometry = _Geometry.of(member.outer)
        group.steps = {group.geometry: ()}

    def _scatter(self, whole, steps, value):
        parents = [whole]
        for step in steps[:-1]:
            parents.append(step.replay(parents[-1], self.copies))
        # A write to an element that lies below others shows there: no step back, but one to the beginning.
        overlaps = (i for i, (step, parent) in enumerate(zip(steps, parents)) if step.may_overlap(parent))
        if (end := next(overlaps, None)) is not None:
            first = _first_of_a_dtype(steps, end)
            rest, steps, parent = steps[first:], steps[:first], parents[first]
            value = _put(parent, _index(rest), _turned(value, [turn for s in rest for turn in s.turns]))
            parents = parents[:first]
        for step, parent in zip(reversed(steps), reversed(parents)):
            value = step.scatter(parent, value, self.copies)
        return value

    # --- operators

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        func = func.of_record
        if func is aten._unsafe_view.default:  # shares memory, though its schema does not say so
            func = aten.view.default
        if unmarked := unmarked_writes(func, args, kwargs):
            return self._statistics(func, unmarked, args, kwargs)
        if func is aten.lift_fresh.default:
            return self._constant(args[0])
        view = _view_in_place(func)
        if view is not None:
            return self._geometry(func, view, args, kwargs)
        if func.traits.reshaping == "storage":
            raise NotImplementedError(
                f"functionalize: {func} changes a tensor's storage, which has no pure form"
            )
        if func._schema.is_mutable:
            return self._mutation(func, args, kwargs)
        if func.is_view and args and isinstance(args[0], torch.Tensor):
            return self._view(func, args, kwargs)
        return self._call(func, self.values(args), self.values(kwargs))

    def _call(self, func, args, kwargs):
        """An operator on values."""
        return func(*args, **kwargs)

    def _constant(self, tensor):
        """A tensor of the program's text: the program writes to a copy, as graphs hold the tensor itself."""
        value = aten.lift_fresh.default(tensor)
        with _recording_off():
            outer = tensor.clone()
        member = self._member(outer)
        member.group.value, member.writes = value, -1
        return outer

    def _view(self, func, args, kwargs):
        parent = self._member(args[0])
        geometry, value = _Geometry.of(args[0]), self._value(parent)
        with _recording_off():
            made = func(*args, **kwargs)
        if func.traits.family == "composite" and isinstance(made, torch.Tensor):  # may do nothing, or copy
            if made is args[0]:
                return made
            if not _shares(made, args[0]):
                return self._call(func, self.values(args), self.values(kwargs))
        if isinstance(made, torch.Tensor):
            step = _Step(func, args[1:], kwargs, geometry, turns=geometry.turns_to(_Geometry.of(made)))
            self._add(made, parent.group, (*parent.steps, step), step.replay(value, self.copies))
            return made
        for i, (outer, part) in enumerate(zip(made, _emit(func, value, *args[1:], **kwargs))):
            step = _Step(func, args[1:], kwargs, geometry, i)
            self._add(outer, parent.group, (*parent.steps, step), part)
        return made

    def _geometry(self, func, view, args, kwargs):
        """`t_`, `squeeze_`, ...: from now on the tensor is a view of what it was."""
        outer = args[0]
        member = self._member(outer)
        step = _Step(view, args[1:], kwargs, _Geometry.of(outer))
        member.value = step.replay(self._value(member), self.copies)
        member.steps = (*member.steps, step)
        with _recording_off():
            func(*args, **kwargs)
        return outer

    def _statistics(self, func, unmarked, args, kwargs):
        """Running statistics are written to, though the schema does not say so."""
        parameters = func._schema.arguments
        given = {p.name: argument(func, i, args, kwargs) for i, p in enumerate(parameters)}
        values = self.values(given)
        running = [parameters[i].name for i in unmarked]
        for name in running:
            values[name] = aten.clone.default(values[name])
        result = func(*(values[p.name] for p in parameters))
        for name in running:
            outer = given[name]
            with torch.autograd._unsafe_preserve_version_counter(outer):  # as the operator's own write
                self._write(self._member(outer), values[name])
        return result

    def _mutation(self, func, args, kwargs):
        written = [a for a in func._schema.arguments if a.is_write]
        positions = {a.name: i for i, a in enumerate(func._schema.arguments)}
        given = {**{name: args[i] for name, i in positions.items() if i < len(args)}, **kwargs}
        pure = _pure_form(func)
        if pure is None or len(written) != 1 or not isinstance(given.get(written[0].name), torch.Tensor):
            return self._on_copies(func, args, kwargs, {a.name: given.get(a.name) for a in written})
        outer = given[written[0].name]
        kwargs = {name: value for name, value in kwargs.items() if name != written[0].name}
        value = pure(*self.values(args), **self.values(kwargs))
        if written[0].is_out and value.shape != outer.shape:
            self._resize(self._member(outer), value.shape)
        self._write(self._member(outer), _like(value, outer))
        return outer

    def _on_copies(self, func, args, kwargs, written):
        """No pure form is known: the operator itself, on copies."""
        outers = {id(t): t for t in pytree.tree_leaves(written) if isinstance(t, torch.Tensor)}
        copies = {key: aten.clone.default(self._value(self._member(t))) for key, t in outers.items()}

        def value(tensor):
            copy = copies.get(id(tensor))
            return self._value(self._member(tensor)) if copy is None else copy

        args, kwargs = pytree.tree_map_only(torch.Tensor, value, (args, kwargs))
        made = func(*args, **kwargs)
        for key, copy in copies.items():
            self._write(self._member(outers[key]), copy)
        back = {id(copy): outers[key] for key, copy in copies.items()}
        return pytree.tree_map_only(torch.Tensor, lambda t: back.get(id(t), t), made)


def _takes_tensors(step):
    leaves = pytree.tree_leaves((step.args, step.kwargs))
    return any(isinstance(leaf, (torch.Tensor, torch.SymInt)) for leaf in leaves)


def _shares(a, b):
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


@functools.cache
def _view_in_place(func):
    """The view that `t_`, `squeeze_`, ... make of a tensor in place, or None."""
    if func.traits.reshaping != "geometry":
        return None
    packet = getattr(aten, func._opname.removesuffix("_"), None)
    return None if packet is None else _same_arguments(packet, func)


def _same_arguments(packet, func):
    """The overload of another operator that takes what this one takes."""
    names = [a.name for a in func._schema.arguments]
    overloads = [getattr(packet, name) for name in packet.overloads()]
    return next(o for o in overloads if [a.name for a in o._schema.arguments] == names)


def _pure_form(func):
    """A function of the same arguments that returns what this operator writes, or None."""
    if func is aten.copy_.default:
        return _copied
    if func is aten.zero_.default:
        return functools.partial(_emit, aten.zeros_like.default)
    return None if func.functional is None else functools.partial(_emit, func.functional)


def _copied(target, source, non_blocking=False):
    return aten.clone.default(_like(source, target))


def _like(value, outer):
    """A result in the dtype and shape of the tensor it is written to."""
    value = value if value.dtype == outer.dtype else value.to(outer.dtype)
    return value if value.shape == outer.shape else value.expand(outer.shape)
