"""The types of a scripted function, statement by statement, as PyTorch's compiler follows them.

What is wrong in any run is refused when the script is made. The checker is sure or silent: an expression
whose type it does not know has type `UNKNOWN`, which fits everywhere."""

from __future__ import annotations

import ast
import weakref
from inspect import isfunction as is_function

from rushlight.jit import _types as t
from rushlight.jit._annotations import Annotations, value_type
from rushlight.jit._check_calls import schema_in_python
from rushlight.jit._check_expressions import METHODS_OF_OPERATORS, Expressions
from rushlight.jit._check_values import Container, NotAValue, Python, declared_type
from rushlight.jit._class_checks import no_context
from rushlight.jit._scripted_class import record_of

__all__ = ["check_function"]


def check_function(unit, outside, method=False, module=None, own=None):
    """Check a unit whose names are resolved; fills in what its schema returns. ``own`` is the record of the
    class of the program that a method belongs to."""
    unit.typed_for = None if module is None else weakref.ref(module)
    if unit.tree.returns is None:
        unit.schema.returns = t.UNKNOWN  # as long as the check goes on
    checker = _Checker(unit, outside, module, own)
    unit.under_way = True
    try:
        checker.function(unit.tree, method)
    finally:
        unit.under_way = False


class _Undefined:
    """A name that one branch alone sets, or two set to different types: an error where it is used."""

    def __init__(self, message):
        self.message = message


def _whole(target, value):
    """The place of an assignment, from its target to its value."""
    place = ast.copy_location(ast.Pass(), target)
    place.end_lineno, place.end_col_offset = value.end_lineno, value.end_col_offset
    return place


def _leaving(body):
    """What leaves or cuts short the loop that statements stand in."""
    for statement in body:
        if isinstance(statement, (ast.Break, ast.Continue)):
            yield statement
        elif not isinstance(statement, (ast.For, ast.While)):
            yield from _leaving(getattr(statement, "body", ()))
            yield from _leaving(getattr(statement, "orelse", ()))


class _Checker(Expressions):
    def __init__(self, unit, outside, module, own=None):
        self.unit, self.module, self.own = unit, module, own
        self.annotations = Annotations(unit, outside)
        self.frames = [{}]
        self.returned = None
        self.loops = 0

    def refuse(self, message, node, kind=RuntimeError):
        self.unit.refuse(message, node, kind)

    def schema_of_method(self, method, node):
        """The schema of a method of a module, which is checked now if it is one of this module's."""
        unit = method.unit
        if unit is None:
            return schema_in_python(method.function, True)
        if unit.under_way and method.module is self.module and not unit.overloaded:
            self.refuse(
                f"method '{unit.tree.name}' is called recursively. Recursive calls are not supported", node
            )
        if method.module is self.module and not unit.overloaded and not unit.is_typed_for(self.module):
            try:
                check_function(unit, unit.outside, True, self.module)
            except RuntimeError as error:
                raise RuntimeError(
                    f"{error}'{unit.plain_name}' is being compiled since it was called from "
                    f"'{self.unit.plain_name}'\n{self.unit.source.shown(node)}"
                ) from error
        return None if unit.overloaded else unit.schema

    # --- names

    def lookup(self, name):
        for frame in reversed(self.frames):
            if name in frame:
                return frame[name]
        return None

    def assign(self, name, value, node, annotated=None):
        """A name gets a value; one that is set outside of this block keeps its type."""
        outer = next((f[name] for f in reversed(self.frames[:-1]) if name in f), None)
        if annotated is not None and isinstance(outer, t.Type):
            self.refuse(
                f"Attempting to declare and annotate the type of variable '{name}' but it is already "
                "defined in an "
                "outer block",
                node,
            )
        if isinstance(outer, t.Type) and isinstance(value, Container):
            self.refuse(f"Cannot re-assign '{name}' to a value of type module", node)
        if isinstance(outer, t.Type) and isinstance(value, t.Type):
            value = self.converted(value, outer)
            if not t.is_subtype(value, outer):
                more = (
                    "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to "
                    "create an empty list of another type (torch.jit.annotate(List[T, []]) where T "
                    "is the type "
                    "of elements in the list for Python 2)"
                    if value.kind == "List"
                    else ""
                )
                self.refuse(
                    f"Variable '{name}' previously had type {outer} but is now being assigned to a value of "
                    f"type {value}{more}",
                    node,
                )
        self.frames[-1][name] = value if annotated is None else annotated

    exact_list = None

    @staticmethod
    def converted(value, wanted):
        """The type after conversions that the compiler makes: a Tensor becomes a number where one "
        "is asked."""
        wanted = wanted.args[0] if wanted.kind == "Optional" else wanted
        if value.kind in ("Tensor", "Inferred") and wanted in (t.INT, t.FLOAT, t.COMPLEX, t.NUMBER):
            return wanted
        if value.kind in ("Tuple", "NamedTuple") and wanted.kind == "List":
            if all(t.is_subtype(part, wanted.args[0]) for part in value.args):
                return wanted
        if value == t.STR and wanted == t.DEVICE:
            return wanted
        return value

    # --- statements; each says whether control leaves the block there

    def function(self, tree, method):
        arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
        if method and arguments:
            own = Container(self.module) if self.module is not None else t.UNKNOWN
            own = own if self.own is None else self.own.type
            self.frames[0][arguments.pop(0).arg] = own
        for argument, said in zip(arguments, self.unit.schema.arguments, strict=True):
            self.frames[0][argument.arg] = said.type
        said = self.unit.schema.returns if tree.returns is not None else None
        self.declared = said
        exits = self.block(tree.body)
        if self.declared is not None and not exits and self.declared not in (t.NONE, t.UNKNOWN):
            self.refuse(
                "Function was not annotated as having type None, but does not return along all paths", tree
            )
        if self.declared is None:
            result = self.returned
            if not exits:
                result = t.NONE if result is None else t.optional(result)
            self.unit.schema.returns = result or t.UNKNOWN

    def block(self, statements):
        for statement in statements:
            if getattr(self, f"statement_{type(statement).__name__}")(statement):
                return True
        return False

    def statement_Pass(self, node):  # noqa: N802
        return False

    def statement_Delete(self, node):  # noqa: N802
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.name(target)
                self.frames[-1][target.id] = _Undefined(f"undefined value {target.id}")
            if isinstance(target, ast.Subscript):
                owner = self.expression(target.value)
                self.index_parts(target.slice)
                if isinstance(target.slice, ast.Slice) and isinstance(owner, t.Type) and owner.kind == "List":
                    self.refuse(
                        "del statements only support deletion at a single index, slicing is not supported",
                        target,
                    )
                if isinstance(owner, t.Type) and owner.kind == "Class":
                    record = record_of(owner.python)
                    if record is not None and not record.has_method("__delitem__"):
                        self.refuse("Class does not define __delitem__", target)
        return False

    def statement_Expr(self, node):  # noqa: N802
        self.expression(node.value)
        return False

    def statement_Return(self, node):  # noqa: N802
        hint = self.declared
        self.exact_list = node.value if isinstance(node.value, ast.List) else None
        value = t.NONE if node.value is None else self.simple(node.value, hint)
        if self.declared is not None:
            value = self.converted(value, self.declared)
            if not t.is_subtype(value, self.declared):
                self.refuse(
                    f"Return value was annotated as having type {self.declared} but is actually of "
                    f"type {value}",
                    node.value or node,
                )
            return True
        if self.returned is None:
            self.returned = value
        else:
            merged = t.unify(self.returned, value)
            if merged is None:
                self.refuse(
                    f"Previous return statement returned a value of type {self.returned} but this return "
                    f"statement returns a value of type {value}",
                    node.value or node,
                )
            self.returned = merged
        return True

    def statement_Raise(self, node):  # noqa: N802
        if node.exc is not None:
            self.raised(node.exc)
        return True

    def statement_Break(self, node):  # noqa: N802
        return True

    statement_Continue = statement_Break  # noqa: N815

    def statement_Assign(self, node):  # noqa: N802
        value = self.expression(node.value)
        for target in node.targets:
            self.store(target, value, node.value)
        return False

    def statement_AnnAssign(self, node):  # noqa: N802
        kind = self.annotations.type_of(node.annotation)
        self.exact_list = node.value
        value = self.expression(node.value, kind)
        if isinstance(value, t.Type):
            if value.kind not in ("Tensor", "Inferred"):  # of which nothing is made here
                value = self.converted(value, kind)
            if not t.is_subtype(value, kind):
                name = ast.unparse(node.target)
                if kind.kind == "List" and isinstance(node.value, ast.List):
                    self.refuse(
                        f"List type annotation `{kind}` did not match the types of the given list elements, "
                        f"which were unified to {value.args[0]}",
                        node,
                    )
                self.refuse(
                    f"Variable '{name}' is annotated with type {kind} but is being assigned to a "
                    "value of type "
                    f"{value}",
                    node.value,
                )
        if isinstance(node.target, ast.Name):
            self.assign(node.target.id, kind, node.value, kind)
        elif node.value is not None:
            self.store(node.target, kind, node.value)
        return False

    def statement_AugAssign(self, node):  # noqa: N802
        value = self.simple(node.value)
        if isinstance(node.target, ast.Name):
            before = self.simple(node.target)
            self.assign(node.target.id, self.augmented(node, before, value), node)
        else:
            owner = self.expression(node.target.value) if isinstance(node.target, ast.Subscript) else None
            if isinstance(owner, t.Type) and owner.kind in ("Tuple", "NamedTuple"):
                self.refuse(f"'{owner}' object does not support augmented assignment", node)
            before = self.expression(node.target)
            if isinstance(before, t.Type) and before.kind == "Class":
                self.augmented(node, before, value)
        return False

    def augmented(self, node, before, value):
        if before.kind == "List" and value.kind == "List" and not t.same(before, value):
            self.no_operator(node.op, (before, value), node)
        if before.kind in ("List", "Tensor") or not before.known:
            return before
        record = record_of(before.python) if before.kind == "Class" else None
        if record is not None and not record.read_from_file:
            plain = METHODS_OF_OPERATORS.get(type(node.op), "__add__")
            inplace = f"__i{plain[2:]}"
            if record.has_method(inplace):
                return self.call_unit(record.schema(inplace), node, [value], {}, own=1)
            if not record.has_method(plain):
                self.refuse(
                    f"Cannot emit inplace op on {before} since it does not define an {inplace} or {plain} "
                    "method",
                    node,
                )
        return self.operation(node.op, before, value, node)

    def store(self, target, value, node):
        if isinstance(target, ast.Name):
            if isinstance(self.frames[0].get(target.id), Container) and self.is_self(target.id):
                self.refuse(f"Cannot re-assign '{target.id}'", target)
            if isinstance(value, NotAValue) and not value.assignable:
                self.not_a_value(value, node)
            self.assign(target.id, value, node)
        elif isinstance(target, ast.Starred):
            self.store(target.value, t.UNKNOWN, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, value, node)
        else:
            owner = self.expression(target.value)
            if isinstance(target, ast.Subscript):
                self.store_item(owner, value, target, self.index_parts(target.slice), node)
            elif isinstance(owner, Container) and isinstance(value, t.Type):
                self.store_attribute(owner.module, value, target, _whole(target, node))
            elif isinstance(owner, t.Type) and owner.kind == "Class" and isinstance(value, t.Type):
                self.store_field(owner, value, target, node)

    def is_self(self, name):
        """Whether a name is the first argument of a module's method."""
        arguments = (*self.unit.tree.args.posonlyargs, *self.unit.tree.args.args)
        return self.module is not None and bool(arguments) and arguments[0].arg == name

    def store_attribute(self, module, value, target, node):
        """An attribute of a module is set: it must be there, and keep its type."""
        name, wanted = target.attr, declared_type(module, target.attr)
        if name in module._modules:
            return
        if wanted is None:
            held = getattr(module, name, None)
            if not hasattr(module, name) or isinstance(held, (list, dict)) and not held:
                self.refuse(
                    f"Tried to set nonexistent attribute: {name}. Did you forget to initialize it in "
                    "__init__()?",
                    node,
                )
            wanted = value_type(held)
        if not t.is_subtype(self.converted(value, wanted), wanted) and not self.list_of_common(value, wanted):
            self.refuse(f"Wrong type for attribute assignment. Expected {wanted} but got {value}", node)

    def store_field(self, owner, value, target, node):
        """An attribute of a class of the program is set; `__init__` makes attributes by that."""
        record = record_of(owner.python)
        if record is None or record.read_from_file:
            return
        name = target.attr
        known = record.attributes.get(name)
        if known is None:
            if record is self.own and self.unit.tree.name == "__init__":
                record.attributes[name] = value
            return
        if not t.is_subtype(self.converted(value, known), known) and not self.list_of_common(value, known):
            self.refuse(
                f"Wrong type for attribute assignment. Expected {known} but got {value}", _whole(target, node)
            )

    def store_item(self, owner, value, target, index, node):
        """An item of a list or a dictionary is set: it must be of the type of the others."""
        if not isinstance(owner, t.Type) or not isinstance(value, t.Type):
            return
        if owner.kind in ("Tuple", "NamedTuple"):
            self.refuse(f"'{owner}' object does not support subscripted assignment", target)
        if owner.kind not in ("List", "Dict"):
            return
        wanted = owner.args[-1]
        fits = isinstance(target.slice, ast.Slice) or t.is_subtype(self.converted(value, wanted), wanted)
        if owner.kind == "Dict" and index:
            key = self.converted(index[0][0], owner.args[0])
            fits, value = fits and t.is_subtype(key, owner.args[0]), value if fits else key
        if fits:
            return
        if not self.list_of_common(value, wanted):
            self.refuse(
                f"Arguments for call are not valid.\naten::_set_item: a value of type '{value}' does "
                "not fit into "
                f"'{owner}'.\nThe original call is",
                _whole(target, node),
            )

    def unpack(self, target, value, node):
        if all(isinstance(e, ast.Starred) for e in target.elts):
            self.refuse(
                "A Starred expression may only appear on the lhs within the presence of another non-starred "
                "expression",
                target,
            )
        parts = [t.UNKNOWN] * len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if isinstance(value, t.Type):
            if value.kind in ("Tuple", "NamedTuple"):
                found, wanted = len(value.args), len(parts)
                if found < wanted - starred:
                    least = "at least " if starred else ""
                    self.refuse(f"need {least}{wanted} values to unpack but found only {found}", target)
                if found > wanted and not starred:
                    self.refuse(f"too many values to unpack: need {wanted} but found {found}", target)
                parts = parts if starred else list(value.args)
            elif value.kind == "List":
                parts = [value.args[0]] * len(parts)
            elif value.kind == "tuple":
                self.refuse(
                    "Provided tuple is not fully defined/refined including its element types, please provide "
                    "a value of type like Tuple[int, int]",
                    node,
                )
            elif value.known and value.kind != "Any":
                self.refuse(f"{value} cannot be used as a tuple", node)
        elif isinstance(value, Python) and (is_function(value.value) or hasattr(value.value, "unit")):
            self.refuse("function cannot be used as a tuple", node)
        elif isinstance(value, Container):
            parts = value.parts(len(parts)) or parts
        for part, item in zip(target.elts, parts, strict=True):
            self.store(part, item, node)

    def statement_Assert(self, node):  # noqa: N802
        refined = self.condition(node.test)
        if refined.static is not True:
            self.refine(refined.when_true)
        return refined.static is False

    def statement_If(self, node):  # noqa: N802
        refined = self.condition(node.test)
        node.script_static = refined.static
        if refined.static is not None:
            self.refine(refined.when_true if refined.static else refined.when_false)
            return self.block(node.body if refined.static else node.orelse)
        frames, exits = [], []
        for body, refinement in ((node.body, refined.when_true), (node.orelse, refined.when_false)):
            self.frames.append({})
            self.refine(refinement)
            exits.append(self.block(body))
            frames.append(self.frames.pop())
        if all(exits):
            return True
        self.merge(node, frames, exits)
        return False

    def refine(self, refinements):
        for name, kind in refinements.items():
            self.frames[-1][name] = kind

    def merge(self, node, frames, exits):
        """What names stand for after two branches."""
        sides = ("true", "false")
        for name in dict.fromkeys((*frames[0], *frames[1])):
            outer = self.lookup(name)
            values = []
            for side, frame in enumerate(frames):
                if exits[side]:
                    continue
                value = frame.get(name, outer)
                if value is None:
                    value = _Undefined(f"{name} is not defined in the {sides[side]} branch")
                values.append(value)
            missing = next((v for v in values if isinstance(v, _Undefined)), None)
            if missing is not None:
                self.frames[-1][name] = missing
                continue
            self.frames[-1][name] = self.joined(node, name, values, outer)

    def joined(self, node, name, values, outer):
        if len(values) == 1:
            return values[0]
        if not all(isinstance(v, t.Type) for v in values):
            return values[0] if values[0] is values[1] else t.UNKNOWN
        wide = isinstance(outer, t.Type) and outer.kind in ("Union", "Any", "Unknown", "number")
        found = t.unify(values[0], values[1], to_union=wide)
        if found is None:
            message = (
                f"Type mismatch: {name} is set to type {values[0]} in the true branch and type "
                f"{values[1]} in "
                "the false branch"
            )
            if outer is not None and not isinstance(outer, _Undefined):
                self.refuse(message, node)
            return _Undefined(message)
        return found

    def statement_While(self, node):  # noqa: N802
        self.frames.append({})
        self.condition(node.test)
        self.block(node.body)
        self.frames.pop()
        return False

    def statement_For(self, node):  # noqa: N802
        if isinstance(node.iter, ast.Tuple) and isinstance(node.target, ast.Tuple):
            if all(isinstance(item, ast.List) for item in node.iter.elts):
                self.refuse("List of iterables is not supported currently", node.iter)
        value = self.expression(node.iter)
        unrolled = self.unrolled(value)
        if unrolled is not None:
            left = next(_leaving(node.body), None)
            if left is not None:
                self.refuse(
                    "Because we emit iteration over modulelists or tuples as unrolled loops, we do not "
                    "support break or continue inside the body of these loops",
                    left,
                )
            for item in unrolled:
                self.store(node.target, item, node.iter)
                self.block(node.body)
            return False
        self.frames.append({})
        self.store(node.target, self.element(value, node.iter), node.iter)
        self.block(node.body)
        inside = self.frames.pop()
        if (
            isinstance(value, t.Type) and value.kind == "Unknown"
        ):  # items of modules may be gone through one by one
            self.frames[-1].update((n, t.UNKNOWN) for n in inside if self.lookup(n) is None)
        return False

    def statement_With(self, node):  # noqa: N802
        for item in node.items:
            kind = self.expression(item.context_expr)
            if isinstance(kind, t.Type) and (reason := no_context(kind)) is not None:
                self.refuse(reason, item.context_expr)
            if item.optional_vars is not None:
                self.store(item.optional_vars, t.UNKNOWN, item.context_expr)
        return self.block(node.body)

    # --- what expressions need of names

    def name(self, node):
        found = self.lookup(node.id)
        if isinstance(found, _Undefined):
            self.refuse(found.message, node)
        return found
