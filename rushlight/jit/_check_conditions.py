"""What conditions of a script say: which are known when it is made, and what they tell of names."""

from __future__ import annotations

import ast

from rushlight.jit import _types as t
from rushlight.jit._attributes import constants_of
from rushlight.jit._check_values import Bound, Checking, Container
from rushlight.jit._scripted_class import record_of

__all__ = ["Conditions", "Refinements"]


class Refinements:
    """What a condition says of names where it holds and where not; ``static``: what it is in every run."""

    def __init__(self, static=None, when_true=None, when_false=None):
        self.static, self.when_true, self.when_false = static, when_true or {}, when_false or {}


class Conditions(Checking):
    """Conditions; the types of their parts are worked out by the class below."""

    def condition(self, node):
        """Whether a node holds, as far as types tell, and what it tells of names."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.condition(node.operand)
            static = None if inner.static is None else not inner.static
            return Refinements(static, inner.when_false, inner.when_true)
        if isinstance(node, ast.BoolOp):
            return self.boolean(node)
        if (
            isinstance(node, ast.Compare)
            and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Is, ast.IsNot))
        ):
            return self.is_none(node)
        if isinstance(node, ast.Call) and self.named(node.func) in ("isinstance", "torch.jit.isinstance"):
            return self.is_instance(node)
        if isinstance(node, ast.Call) and self.named(node.func) == "hasattr":
            return self.has_attribute(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return Refinements(node.value)
        if isinstance(node, ast.Call) and self.named(node.func) == "torch.jit.is_scripting":
            return Refinements(True)
        if isinstance(node, ast.Attribute) and (constant := self.constant(node)) is not None:
            return Refinements(constant)
        kind = self.simple(node)
        if kind.known and kind.kind in ("Optional", "Tuple", "NoneType", "Device"):
            self.refuse(f"Could not cast value of type {kind} to bool", node)
        if kind.kind == "Class" and (record := record_of(kind.python)) is not None:
            schema = record.schema("__bool__")
            if schema is not None and schema.returns.known and schema.returns != t.BOOL:
                self.refuse(f"expected a bool expression for condition but found {schema.returns}", node)
        return Refinements()

    def has_attribute(self, node):
        """What a module has is known when it is compiled; the branch that is not taken may say anything."""
        self.expression(node)
        owner, name = self.expression(node.args[0]), node.args[1]
        if isinstance(owner, Container) and owner.module is not None and isinstance(name, ast.Constant):
            return Refinements(hasattr(owner.module, str(name.value)))
        return Refinements()

    def constant(self, node):
        """Whether an attribute is true that its module says is constant; None of others."""
        owner = self.expression(node.value)
        module = owner.module if isinstance(owner, Container) else None
        cls = getattr(type(module), "_python_class", None)
        if cls is None or node.attr not in constants_of(cls):
            return None
        value = module.__dict__.get(node.attr)
        return value if isinstance(value, bool) else None

    def named(self, node):
        return node.id if isinstance(node, ast.Name) and self.lookup(node.id) is None else None

    def boolean(self, node):
        both = isinstance(node.op, ast.And)
        refined, depth = self.condition(node.values[0]), len(self.frames)
        for value in node.values[1:]:
            if refined.static is (not both):  # the rest is never looked at
                break
            self.frames.append({})
            self.refine(refined.when_true if both else refined.when_false)
            more = self.condition(value)
            static = (not both) if more.static is (not both) else None
            if refined.static is both and more.static is both:
                static = both
            if both:
                held, missed = (
                    {**refined.when_true, **more.when_true},
                    _either(refined.when_false, more.when_false),
                )
            else:
                held, missed = (
                    _either(refined.when_true, more.when_true),
                    {**refined.when_false, **more.when_false},
                )
            refined = Refinements(static, held, missed)
        del self.frames[depth:]
        return refined

    def is_none(self, node):
        left, right = node.left, node.comparators[0]
        if isinstance(left, ast.Constant) and left.value is None:
            left, right = right, left
        value = self.expression(left)
        if not (isinstance(right, ast.Constant) and right.value is None):
            self.expression(right)
            return Refinements()
        positive = isinstance(node.ops[0], ast.Is)
        if isinstance(value, (Container, Bound)):
            return Refinements(not positive if getattr(value, "module", 1) is not None else positive)
        if not isinstance(value, t.Type) or value.kind in ("Unknown", "Any"):
            name = {left.id: t.UNKNOWN} if isinstance(left, ast.Name) else {}
            return Refinements(None, name, name)
        if value == t.NONE:
            return Refinements(positive)
        others = [o for o in t.options(value) if o != t.NONE]
        if len(others) == len(t.options(value)):
            return Refinements(not positive)
        if not isinstance(left, ast.Name):
            return Refinements()
        rest = {left.id: t.union(others)}
        none = {} if value.kind == "Optional" else {left.id: t.NONE}  # which may be given another value there
        return Refinements(None, none, rest) if positive else Refinements(None, rest, none)

    def is_instance(self, node):
        if len(node.args) != 2:
            return Refinements()
        value = self.expression(node.args[0])
        asked = self.asked_types(node.args[1])
        if asked is None or not isinstance(value, t.Type):
            return Refinements()
        name = node.args[0].id if isinstance(node.args[0], ast.Name) else None
        if not value.known or value.kind in ("Any", "number", "Class", "Interface"):
            found = {name: asked[0] if len(asked) == 1 and asked[0].known else t.UNKNOWN} if name else {}
            return Refinements(None, found, {name: value} if name else {})
        fits = [o for o in t.options(value) if any(self.is_a(o, kind) for kind in asked)]
        rest = [o for o in t.options(value) if o not in fits]
        if any(not kind.known for kind in asked):
            return Refinements(None, {name: t.UNKNOWN}, {name: t.UNKNOWN}) if name else Refinements()
        if not rest or not fits:
            return Refinements(not rest)
        if name is None:
            return Refinements()
        return Refinements(None, {name: t.union(fits)}, {name: t.union(rest)})

    @staticmethod
    def is_a(kind, asked):
        if asked.kind in ("list", "tuple"):
            return kind.kind in ({"List"} if asked.kind == "list" else {"Tuple", "NamedTuple"})
        return t.is_subtype(kind, asked)

    def asked_types(self, node):
        """The types that an `isinstance` asks for; None if it is not sure what they are."""
        if isinstance(node, ast.Tuple):
            parts = [self.asked_types(e) for e in node.elts]
            return None if None in parts else [kind for part in parts for kind in part]
        value = self.unit.names.get(node.id, self) if isinstance(node, ast.Name) else self
        bare = {list: "list", tuple: "tuple"}
        if isinstance(value, type) and value in bare:
            return [t.Type(bare[value])]
        if value is dict:
            return None
        return [self.annotations.type_of(node)]


def _either(one, other):
    """What is known of names where one condition or the other holds."""
    return {name: t.union((kind, other[name])) for name, kind in one.items() if name in other}
