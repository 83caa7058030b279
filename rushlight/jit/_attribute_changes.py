"""Which attributes of modules the methods of a script write to: what freezing must keep.

The text of each method is followed from call to call with the attributes that each value may be a part of. A
method of the library's layers that has no text in scripts is taken to write nothing."""

from __future__ import annotations

import ast
import functools
from typing import NamedTuple

from rushlight import Tensor, ops
from rushlight.jit._decided import Decisions
from rushlight.jit._graph_inline import unit_of
from rushlight.nn import Module

__all__ = ["Changes", "changes_of", "tensors_in"]


class Attribute(NamedTuple):
    """An attribute of a module, or what is inside of its list, dictionary or tuple."""

    owner: Module
    name: str
    inside: bool = False

    def value(self):
        return getattr(self.owner, self.name, None)

    def part(self):
        """What an index gives: of a tensor, the same memory."""
        return self if isinstance(self.value(), Tensor) else self._replace(inside=True)


class Holder(NamedTuple):
    """A list, tuple or dictionary that a method made, by what it holds."""

    parts: frozenset


class Changes:
    """What the methods of a module do with attributes.

    Args:
        variable: pairs (module, name) that branches must not be decided by.
    """

    def __init__(self, variable):
        self.variable = variable
        self.written, self.written_inside, self.used = set(), set(), set()  # of pairs (module, name)
        self.returned = frozenset()  # what the methods give back
        self.held = {}  # (module, name) -> what a method stored there
        self.chosen_by_value = False  # whether a run chooses a module of a container by an index
        self.within = []  # the calls that are followed

    def write(self, values):
        for value in values:
            if isinstance(value, Attribute) and isinstance(value.value(), (Tensor, list, dict)):
                key = value.owner, value.name
                (self.written_inside if value.inside else self.written).add(key)
            elif isinstance(value, Attribute) and value.inside:
                self.written_inside.add((value.owner, value.name))

    def call(self, unit, module, arguments):
        """Follow a call; gives what it may return."""
        if unit is None or (unit, module) in self.within:
            return frozenset()
        self.within.append((unit, module))
        own = unit.tree.args
        names = [a.arg for a in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
        flow = _Flow(self, unit, dict(zip(names, arguments, strict=False)))
        flow.block(unit.tree.body)
        self.within.pop()
        return frozenset(flow.returned)


def changes_of(module, methods):
    """What these methods of a scripted module, and all that they call, do with attributes.

    Branches are left out that attributes decide which nothing writes to, as `training` does."""
    every = _followed(module, methods, None)
    return _followed(module, methods, every.written | every.written_inside)


def _followed(module, methods, variable):
    changes = Changes(variable)
    for name in methods:
        changes.returned |= changes.call(unit_of(module, name), module, [frozenset((module,))])
    return changes


def tensors_in(value):
    """The tensors of an attribute's value."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)


_WRITERS = frozenset(
    "append clear extend insert remove reverse sort pop popitem setdefault update "
    "__setitem__ __delitem__ move_to_end".split()
)
_GETTERS = frozenset("get pop values items setdefault popitem __getitem__".split())
_WALKERS = frozenset(("enumerate", "zip"))
_SAME = frozenset(("list", "tuple", "reversed", "sorted", "iter"))
_FORKS = frozenset(("torch.jit.fork", "torch.jit._fork", "torch.jit._awaitable"))


@functools.cache
def _effects(name):
    """Whether an operator writes to its first argument, and whether its result may be a view of it."""
    packet = getattr(ops.aten, name, None)
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()] if packet else []
    firsts = [s.arguments[0].alias_info for s in schemas if s.arguments]
    results = [r.alias_info for s in schemas for r in s.returns]
    return any(a is not None and a.is_write for a in firsts), any(a is not None for a in results)


class _Flow(Decisions):
    """Follows the statements of one call."""

    def __init__(self, changes, unit, scope):
        self.changes, self.unit, self.scope, self.returned = changes, unit, scope, set()

    def block(self, body):
        for statement in body:
            getattr(self, f"statement_{type(statement).__name__}", self.other_statement)(statement)

    def other_statement(self, node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)

    def statement_Return(self, node):  # noqa: N802
        self.returned |= self.value(node.value)

    def statement_Assign(self, node):  # noqa: N802
        for target in node.targets:
            self.store(target, node.value)

    def statement_AnnAssign(self, node):  # noqa: N802
        indexed = isinstance(node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Constant)
        if indexed and any(isinstance(m, Module) for m in self.value(node.value.value)):
            self.changes.chosen_by_value = True
        if node.value is not None:
            self.store(node.target, node.value)

    def statement_AugAssign(self, node):  # noqa: N802
        self.value(node.value)
        target = node.target
        if isinstance(target, ast.Attribute):
            self.put(target, self.value(target))
        self.changes.write(self.value(target.value if isinstance(target, ast.Subscript) else target))

    def statement_Delete(self, node):  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.changes.write(self.value(target.value))

    def statement_If(self, node):  # noqa: N802
        taken = self.decided(node.test)
        if taken is not None:
            self.block(node.body if taken else node.orelse)
            return
        self.value(node.test)
        self.alternatives(node.body, node.orelse)

    def statement_While(self, node):  # noqa: N802
        self.value(node.test)
        self.alternatives(node.body * 2, [])

    def statement_For(self, node):  # noqa: N802
        self.put(node.target, self.parts(self.value(node.iter)))
        self.alternatives(node.body * 2, [])

    def statement_With(self, node):  # noqa: N802
        self.other_statement(node)
        self.block(node.body)

    def known(self, node):
        """An attribute that nothing writes to is a constant."""
        if isinstance(node, ast.Attribute) and self.changes.variable is not None:
            owners = [m for m in self.value(node.value) if isinstance(m, Module)]
            if len(owners) == 1 and (owners[0], node.attr) not in self.changes.variable:
                return hasattr(owners[0], node.attr), getattr(owners[0], node.attr, None)
        return super().known(node)

    def alternatives(self, *bodies):
        """Names have what any of the branches gives them."""
        before, after = dict(self.scope), {}
        for body in bodies:
            self.scope = dict(before)
            self.block(body)
            for name, values in self.scope.items():
                after[name] = after.get(name, frozenset()) | values
        self.scope = after

    def store(self, target, value):
        same = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))
        if same and len(target.elts) == len(value.elts):
            for part, values in zip(target.elts, [self.value(e) for e in value.elts], strict=True):
                self.put(part, values)
        else:
            self.put(target, self.value(value))

    def put(self, target, values):
        if isinstance(target, ast.Name):
            self.scope[target.id] = values
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                self.put(part, self.parts(values))
        elif isinstance(target, ast.Starred):
            self.put(target.value, values)
        elif isinstance(target, ast.Subscript):
            self.changes.write(self.value(target.value))
        elif isinstance(target, ast.Attribute):
            for owner in self.value(target.value):
                if isinstance(owner, Module):
                    key = owner, target.attr
                    self.changes.written.add(key)
                    self.changes.held[key] = self.changes.held.get(key, frozenset()) | values
                else:
                    self.changes.write([owner])

    def parts(self, values):
        """What an item of these values may be."""
        found = set()
        for value in values:
            if isinstance(value, Module):
                found.update(m for m in value._modules.values() if m is not None)
            elif isinstance(value, Holder):
                found |= value.parts
            else:
                found.add(value.part())
        return frozenset(found)

    def value(self, node):
        """What the value of an expression may be, or may share memory with."""
        if node is None:
            return frozenset()
        return getattr(self, f"value_{type(node).__name__}", self.other_value)(node)

    def other_value(self, node):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
        return frozenset()

    def value_Name(self, node):  # noqa: N802
        return self.scope.get(node.id, frozenset())

    def value_Starred(self, node):  # noqa: N802
        return self.value(node.value)

    def value_IfExp(self, node):  # noqa: N802
        taken = self.decided(node.test)
        if taken is not None:
            return self.value(node.body if taken else node.orelse)
        self.value(node.test)
        return self.value(node.body) | self.value(node.orelse)

    def value_BoolOp(self, node):  # noqa: N802
        return frozenset().union(*map(self.value, node.values))

    def value_Tuple(self, node):  # noqa: N802
        held = frozenset().union(*map(self.value, node.elts))
        return frozenset((Holder(held),)) if held else held

    value_List = value_Tuple  # noqa: N815

    def value_Dict(self, node):  # noqa: N802
        held = frozenset().union(*map(self.value, node.values))
        return frozenset((Holder(held),)) if held else held

    def value_ListComp(self, node):  # noqa: N802
        before = dict(self.scope)
        for loop in node.generators:
            self.put(loop.target, self.parts(self.value(loop.iter)))
        held = self.value(node.elt)
        self.scope = before
        return frozenset((Holder(held),)) if held else held

    def value_Attribute(self, node):  # noqa: N802
        found = set()
        for owner in self.value(node.value):
            if isinstance(owner, Module) and node.attr in owner._modules:
                found.add(owner._modules[node.attr])
                self.changes.used.add((owner, node.attr))
            elif isinstance(owner, Module):
                key = owner, node.attr
                self.changes.used.add(key)
                found.add(Attribute(*key))
                found |= self.changes.held.get(key, frozenset())
            elif isinstance(owner, Attribute):
                found.add(owner.part())
        return frozenset(found) - {None}

    def value_Subscript(self, node):  # noqa: N802
        modules = {m for m in self.value(node.value) if isinstance(m, Module)}
        if modules and isinstance(node.slice, ast.Constant):
            key = str(node.slice.value)
            return frozenset(m._modules[key] for m in modules if m._modules.get(key) is not None)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "_modules":
            key = str(node.slice.value)
            owners = [m for m in self.value(node.value.value) if isinstance(m, Module)]
            return frozenset(m._modules[key] for m in owners if m._modules.get(key) is not None)
        self.value(node.slice)
        return self.parts(self.value(node.value))

    def value_Call(self, node):  # noqa: N802
        given = [self.value(a) for a in (*node.args, *(k.value for k in node.keywords))]
        if isinstance(node.func, ast.Attribute):
            return self.method(node, self.value(node.func.value), given)
        if not isinstance(node.func, ast.Name):
            return self.called(self.value(node.func), given)
        name = node.func.id
        if name in self.scope:
            return self.called(self.scope[name], given)
        if name in _FORKS:
            return self.fork(node, given)
        if name in _WALKERS:
            every = frozenset().union(*map(self.parts, given))
            return frozenset((Holder(frozenset((Holder(every),))),))
        if name in _SAME:
            return given[0] if given else frozenset()
        if name.startswith("__torch__."):
            unit = getattr(self.unit.names.get(name), "unit", None)
            return self.changes.call(unit, None, given)
        return self.operator(node, name.rpartition(".")[2], given)

    def called(self, values, given):
        """Modules are called."""
        found = frozenset()
        for module in values:
            if isinstance(module, Module):
                found |= self.changes.call(unit_of(module, "forward"), module, [frozenset((module,)), *given])
        return found

    def method(self, node, owners, given):
        name, found = node.func.attr, frozenset()
        for owner in owners:
            if not isinstance(owner, Module):
                continue
            if owner._modules.get(name) is not None:
                found |= self.called((owner._modules[name],), given)
            else:
                unit = unit_of(owner, name)
                found |= self.changes.call(unit, owner, [frozenset((owner,)), *given])
        values = frozenset(o for o in owners if not isinstance(o, Module))
        if not values:
            return found
        if name in _WRITERS:
            self.changes.write(values)
        if name in _GETTERS:
            return found | self.parts(values)
        return found | self.operator(node, name, [values, *given])

    def operator(self, node, name, given):
        """An operator of the library is called; it may write to what it is given."""
        writes, views = _effects(name)
        words = {k.arg: k.value for k in node.keywords}
        in_place = words.get("inplace")
        if given and (writes or not (in_place is None or getattr(in_place, "value", True) is False)):
            self.changes.write(given[0])
        if "out" in words:
            self.changes.write(self.value(words["out"]))
        return given[0] if given and (writes or views) else frozenset()

    def fork(self, node, given):
        """What runs beside the method may do anything with what it is given."""
        for values in given[1:]:
            self.changes.write(values)
        call = ast.Call(func=node.args[0], args=node.args[1:], keywords=node.keywords)
        return self.value_Call(ast.copy_location(call, node))
