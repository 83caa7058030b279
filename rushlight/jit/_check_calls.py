"""The types of calls in a script: functions of the program, operators, methods, and Python's built-ins."""

from __future__ import annotations

import ast
import functools
import inspect
import types

import rushlight
from rushlight.jit import _types as t
from rushlight.jit._annotations import python_type
from rushlight.jit._check_methods import BUILTINS, MATH, METHODS, NOT_METHODS, TENSOR_METHODS, TORCH_BUILTINS
from rushlight.jit._check_numbers import of_builtin
from rushlight.jit._check_values import Bound, Checking, Container, Iterated, Method, NotAValue, Python
from rushlight.jit._interfaces import misfit_of_type
from rushlight.jit._library import OPERATORS
from rushlight.jit._operator_match import operator_schemas, returned, schemas_of, unfit
from rushlight.jit._scripted_class import known_record, record_of
from rushlight.jit._syntax import FrontendError

__all__ = ["Calls", "schema_in_python"]

# Kinds of values that `range` refuses.
_NOT_WHOLE = ("str", "float", "List", "NoneType", "Optional", "Tuple", "Dict", "Tensor", "Inferred")


class Calls(Checking):
    """Types of calls; expressions are worked out by the class below."""

    METHODS = METHODS

    @staticmethod
    def has_tensor_method(name):
        return name in TENSOR_METHODS or name not in NOT_METHODS and bool(operator_schemas(name))

    def expression_Call(self, node, hint):  # noqa: N802
        name = self.named(node.func)
        special = getattr(self, f"call_{name.rpartition('.')[2]}", None) if name in _SPECIAL else None
        if special is not None:
            return special(node, hint)
        function = self.expression(node.func)
        if isinstance(function, Python) and function.value is list and len(node.args) == 1:
            return self.made_list(node.args[0])
        if isinstance(function, Python) and function.value is dict and len(node.args) < 2:
            return self.made_dict(node, hint)
        if isinstance(function, Python) and function.value is tuple:
            return self.made_tuple(node)
        if isinstance(function, Bound):
            return self.call_method(function, node, hint)
        given = [self.argument(a) for a in node.args]
        by_name = {k.arg: self.argument(k.value) for k in node.keywords}
        if isinstance(function, Container):
            return self.call_module(function, node, given, by_name)
        if isinstance(function, Method):
            return self.call_unit(self.schema_of_method(function, node), node, given, by_name, own=1)
        if isinstance(function, Python):
            return self.call_python(function, node, given, by_name)
        if isinstance(function, t.Type) and function.known and function.kind not in _CALLABLE:
            self.refuse(f"cannot call a value of type '{function}'", node)
        return t.UNKNOWN

    def argument(self, node):
        """The type of an argument: of what is no value, unknown."""
        if isinstance(node, ast.Starred):
            kind = self.expression(node.value)
            if isinstance(kind, t.Type) and kind.kind == "List":
                self.refuse("cannot statically infer the expected size of a list in this context", node.value)
            if kind in (t.TENSOR, t.INFERRED):
                self.refuse(f"{kind} cannot be used as a tuple", node.value)
            return None
        found = self.expression(node)
        if isinstance(found, NotAValue):
            self.not_a_value(found, node, argument=True)
            return t.UNKNOWN
        return t.plain(found)

    # --- functions

    def call_later(self, node, given, wrapped):
        """What runs beside the script, or when it is asked for, gives a future of what it would give."""
        if isinstance(given[0], t.Type) and given[0].known and given[0].kind not in _CALLABLE:
            self.refuse(f"cannot call a value of type '{given[0]}'", node)
        call = ast.Call(func=node.args[0], args=node.args[1:], keywords=node.keywords)
        result = self.expression(ast.copy_location(call, node))
        return wrapped(result) if isinstance(result, t.Type) and result.known else t.UNKNOWN

    def call_python(self, function, node, given, by_name):
        value, name = function.value, function.name
        if name in _LATER and given:
            return self.call_later(node, given, _LATER[name])
        if name == "torch.jit._awaitable_nowait" and given and given[0] is not None:
            return t.await_of(given[0])
        if name == "torch.jit._awaitable_wait" and given and given[0] is not None:
            return given[0].args[0] if given[0].kind == "Await" else t.UNKNOWN
        unit = getattr(value, "unit", None)
        if unit is not None:
            return self.call_unit(unit.schema, node, given, by_name)
        if isinstance(value, types.FunctionType) and hasattr(value, "_torchscript_modifier"):
            starred = inspect.unwrap(value).__code__.co_flags & inspect.CO_VARARGS
            return self.call_unit(None if starred else schema_in_python(value), node, given, by_name)
        if isinstance(value, type) and name not in ("torch.finfo", "torch.iinfo"):
            return self.call_class(value, given, node, by_name)
        if name.startswith("torch.") and name.count(".") == 1 and callable(value):
            last = name.removeprefix("torch.")
            if not operator_schemas(last) and last not in TORCH_BUILTINS and last not in _WITHOUT_SCHEMA:
                self.refuse(
                    f"Unknown builtin op: aten::{last}.\nThis op may not exist or may not be currently "
                    "supported in TorchScript.\nThe original call is",
                    node,
                )
            if last in TORCH_BUILTINS:
                return TORCH_BUILTINS[last]
            return self.call_operator(last, node, given, by_name)
        if name.startswith("torch.nn.functional."):
            return self.call_functional(value, node, given, by_name)
        if isinstance(value, OPERATORS):
            results = {returned(schema) for schema in schemas_of(value)}
            return results.pop() if len(results) == 1 else t.UNKNOWN
        if name.startswith("math.") and name.removeprefix("math.") not in MATH:
            self.refuse(f"Python builtin {value} is currently not supported in Torchscript", node)
        if name == "id" and given and given[0] is not None and given[0].known:
            if given[0].kind not in ("Class", "NoneType", "Optional", "Interface"):
                self.refuse(
                    "\nprim::id(AnyClassType? x) -> int:\nExpected a value of type 'Optional[AnyClassType]' "
                    f"for argument 'x' but instead found type '{given[0]}'.\n",
                    node,
                )
        return BUILTINS[name] if name in BUILTINS else of_builtin(name, given)

    def call_functional(self, function, node, given, by_name):
        """A function of `torch.nn.functional`: what it says of its arguments and of what it gives."""
        schema, flag = library_schema(function)
        result = self.call_unit(schema, node, given, by_name)
        if flag is not None:  # whether it gives a pair stands in the call
            position, default = flag
            said = [k.value for k in node.keywords if k.arg == "return_indices"]
            said += [node.args[position]] if len(node.args) > position else []
            both = said[0] if said else ast.Constant(default)
            if isinstance(both, ast.Constant):
                return t.tuple_of((t.TENSOR, t.TENSOR)) if both.value else t.TENSOR
        return result

    def made_list(self, node):
        value = self.expression(node)
        if isinstance(value, t.Type) and value.kind not in ("List", "str"):
            return t.UNKNOWN
        return t.UNKNOWN if self.unrolled(value) is not None else t.list_of(self.element(value, node))

    def made_tuple(self, node):
        if len(node.args) != 1 or node.keywords:
            self.refuse(f"tuple expected 1 argument but got {len(node.args)}", node)
        value = self.expression(node.args[0])
        if isinstance(value, t.Type) and value.kind in ("List", "Dict"):
            self.refuse("cannot statically infer the expected size of a list in this context", node.args[0])
        return value if isinstance(value, t.Type) and value.kind == "Tuple" else t.UNKNOWN

    def call_class(self, cls, given, node, by_name):
        if issubclass(cls, BaseException):  # `raised` sees those behind `raise`
            self.refuse("Python exception cannot be used as a value", node)
        if getattr(cls, "_torchscript_modifier", None) == "ignore":
            self.refuse(
                f"Cannot instantiate class '{cls.__name__}' in a script function", node, FrontendError
            )
        if isinstance(cls, type(rushlight.FloatTensor)) and by_name:
            self.refuse(f"Legacy tensor constructors have no argument {next(iter(by_name))}", node)
        if isinstance(cls, type(rushlight.FloatTensor)) and len(given) > 1:
            if any(kind is not None and kind.known and kind != t.INT for kind in given):
                self.refuse(
                    "Legacy tensor constructors take a list or sizes; found multiple positional arguments "
                    "that were not all integers",
                    node,
                )
        if cls in (int, float, bool, str, complex):
            return python_type(cls)
        if issubclass(cls, tuple) and hasattr(cls, "_fields"):
            made = python_type(cls)
            if made is not None:
                self.call_unit(_schema_of_tuple(cls, made), node, given, by_name)
            return made or t.UNKNOWN
        record = record_of(cls)
        if record is not None and record.kind == "class":
            self.call_unit(record.schema("__init__"), node, given, by_name)
            return record.type
        return t.DEVICE if cls is rushlight.device else t.UNKNOWN

    def call_unit(self, schema, node, given, by_name, own=0):
        """A call of a function of the program, or of a method, whose object counts as an argument."""
        if schema is None or None in given:
            return t.UNKNOWN
        arguments = schema.arguments
        plain = [a for a in arguments if not a.kwarg_only]
        bound = dict(zip((a.name for a in plain), given, strict=False))
        for name in by_name:
            if name in bound:
                self.mismatch(schema, f"Argument {name} specified twice in schema.", node)
        bound.update(by_name)
        for argument in arguments:
            kind = bound.get(argument.name)
            if kind is None:
                if argument.default is t.Argument.REQUIRED:
                    self.mismatch(schema, f"Argument {argument.name} not provided.", node)
                continue
            kind = self.converted(kind, t.plain(argument.type))
            if (
                argument.length is not None
                and self.converted(kind, argument.type.args[0]) == argument.type.args[0]
            ):
                continue
            if argument.type.kind == "Interface" and kind.kind in ("Class", "Interface"):
                if (reason := misfit_of_type(kind, argument.type.python)) is not None:
                    self.refuse(reason, node)
            if not t.is_subtype(kind, argument.type) and not self.list_of_common(kind, argument.type):
                inferred = (
                    f"\nInferred '{argument.name}' to be of type 'Tensor' because it was not "
                    "annotated with an "
                    "explicit type."
                    if argument.type.kind == "Inferred"
                    else ""
                )
                self.mismatch(
                    schema,
                    f"Expected a value of type '{argument.type}' for argument '{argument.name}' but instead "
                    f"found type '{kind}'.{inferred}",
                    node,
                )
        if len(given) > len(plain):
            self.mismatch(
                schema,
                f"Expected at most {len(plain) + own} arguments but found {len(given) + own} positional "
                "arguments.",
                node,
            )
        for name in by_name.keys() - {a.name for a in arguments}:
            self.mismatch(schema, f"Keyword argument {name} unknown.", node)
        return schema.returns

    @staticmethod
    def list_of_common(kind, wanted):
        """Whether a literal list might have been of the wanted type."""
        wanted = wanted.args[0] if wanted.kind == "Optional" else wanted
        return kind.kind in ("List", "Dict") and wanted.kind == kind.kind and kind.args[-1] == t.TENSOR

    def mismatch(self, schema, message, node):
        self.refuse(f"\n{schema}:\n{message}\n", node)

    def call_operator(self, name, node, given, by_name):
        """A call of an operator: of its overloads, one must fit."""
        if None in given or name.startswith("_"):
            return t.UNKNOWN
        schemas = operator_schemas(name)
        reasons, results = [], []
        for schema in schemas:
            reason = unfit(schema, given, by_name)
            if reason is None:
                results.append(returned(schema))
            reasons.append(f"{schema}:\n{reason}")
        if schemas and not results:
            if len(schemas) == 1:
                self.refuse(f"\n{reasons[0]}\n", node)
            listed = "\n\n".join(reasons)
            self.refuse(
                "Arguments for call are not valid.\nThe following variants are "
                f"available:\n\n{listed}\n\nThe "
                "original call is",
                node,
            )
        return results[0] if results and all(r == results[0] for r in results) else t.UNKNOWN

    # --- methods

    def call_method(self, method, node, hint):
        owner, name = method.owner, method.name
        given = [self.argument(a) for a in node.args]
        by_name = {k.arg: self.argument(k.value) for k in node.keywords}
        if owner.kind in ("Tensor", "Inferred"):
            if name == "tolist":
                if hint is None:
                    self.refuse("Expected type hint for result of tolist()", node)
                return hint
            if name in ("__getitem__", "__contains__") and len(given) + len(by_name) != 1:
                self.refuse(f"{name} expected exactly 1 arguments, got {len(given) + len(by_name)}", node)
            if name == "size":
                return t.INT if given or by_name else t.list_of(t.INT)
            if name in TENSOR_METHODS:
                return TENSOR_METHODS[name]
            return self.call_operator(name, node, [t.TENSOR, *given], by_name)
        if owner.kind == "Class":
            return self.call_unit(known_record(owner.python).schema(name), node, given, by_name, own=1)
        if owner.kind == "List" and name == "append" and len(given) == 1 and given[0] is not None:
            element = self.converted(given[0], owner.args[0])
            if not t.is_subtype(element, owner.args[0]) and not self.list_of_common(element, owner.args[0]):
                self.refuse(
                    "\naten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!):\nCould not match type "
                    f"{given[0]} to t in argument 'el': Type variable 't' previously matched to type "
                    f"{owner.args[0]} is matched to type {given[0]}.\n",
                    node,
                )
        if owner.kind == "List" and name == "sort":
            self.check_sort(owner, given, by_name, node)
        result = METHODS[owner.kind].get(name)
        return result(owner, given) if callable(result) else result or t.UNKNOWN

    def check_sort(self, owner, given, by_name, node):
        """`list.sort`: objects of the program are ordered by their ``__lt__``."""
        reverse = by_name.get("reverse", given[0] if given else None)
        if reverse is not None and not t.is_subtype(self.converted(reverse, t.BOOL), t.BOOL):
            self.refuse(
                f"Expected a value of type 'bool' for argument 'reverse' but instead found type '{reverse}'",
                node,
            )
        element = owner.args[0]
        if element.kind == "Class" and (record := record_of(element.python)) is not None:
            schema = record.schema("__lt__")
            fits = schema is not None and schema.returns == t.BOOL and len(schema.arguments) == 1
            fits = fits and t.is_subtype(element, t.plain(schema.arguments[0].type))
            if not fits and not record.read_from_file and "__lt__" not in record.under_way:
                self.refuse(
                    f"To sort a list of {element} it must define a __lt__ method with two inputs of type "
                    f"{element} that returns a bool",
                    node,
                )

    def call_module(self, container, node, given, by_name):
        module = container.module
        units = getattr(type(module), "_script_methods", {})
        unit = units.get("forward")
        own = vars(module).get("forward")
        if unit is None or own is not None or unit.schema is None:
            return t.UNKNOWN
        found = self.call_unit(unit.schema, node, given, by_name, own=1)
        return t.UNKNOWN if module._forward_hooks else found  # a hook may give something else

    # --- what the compiler knows itself

    def call_annotate(self, node, hint):
        kind = self.annotations.type_of(node.args[0])
        if isinstance(node.args[1], ast.ListComp) and kind.kind not in ("List", "Unknown", "Optional"):
            self.refuse(f"Expected an annotation of type List, but found {kind}", node.args[1])
        value = self.simple(node.args[1], kind)
        if not t.is_subtype(self.converted(value, kind), kind):
            self.refuse(f"expected an expression of type {kind} but found {value}", node.args[1])
        return kind

    def call__unwrap_optional(self, node, hint):
        value = self.simple(node.args[0])
        if value == t.NONE:
            self.refuse(
                "\naten::_unwrap_optional(t(a)? optional) -> t(a):\nCould not infer type for argument "
                "optional: Type t could not be inferred from actual type NoneType\n",
                node,
            )
        left = [o for o in t.options(value) if o != t.NONE]
        return t.union(left) if left else t.UNKNOWN

    def call_isinstance(self, node, hint):
        self.condition(node)
        return t.BOOL

    def call_hasattr(self, node, hint):
        if len(node.args) == 2 and not isinstance(getattr(node.args[1], "value", None), str):
            self.refuse("hasattr's second argument must be a string literal", node.args[1])
        value = self.expression(node.args[0])
        if isinstance(value, t.Type) and value.kind not in _WITH_ATTRIBUTES:
            self.refuse(
                f"hasattr's first argument must be an object or NamedTuple, got {value} instead", node
            )
        return t.BOOL

    def call_print(self, node, hint):
        if node.keywords:
            self.refuse("print doesn't accept any keyword arguments", node)
        for argument in node.args:
            self.argument(argument)
        return t.NONE

    def call_range(self, node, hint):
        if not node.args:
            self.refuse("range expected at least 1 arguments, got 0", node)
        for i, argument in enumerate(node.args):
            kind = self.simple(argument)
            if kind.known and kind.kind in _NOT_WHOLE:
                self.refuse(f"all inputs of range must be ints, found {kind} in argument {i}", argument)
        return Iterated("range", t.INT, counted=all(isinstance(a, ast.Constant) for a in node.args))

    def call_enumerate(self, node, hint):
        given = len(node.args) + len(node.keywords)
        if not node.args:
            self.refuse("enumerate expected at least 1 arguments, got 0", node)
        if given > 2:
            self.refuse(f"enumerate expected at most 2 arguments, got {given}", node)
        value = self.expression(node.args[0])
        items = self.unrolled(value)
        if isinstance(value, t.Type) and value.kind == "Unknown":
            return value
        if items is not None:
            return Iterated("enumerate", t.UNKNOWN, [t.tuple_of((t.INT, _type(i))) for i in items])
        return Iterated("enumerate", t.tuple_of((t.INT, _type(self.element(value, node.args[0])))))

    def call_zip(self, node, hint):
        if not node.args:
            self.refuse("zip expected at least 1 arguments, got 0", node)
        values = [self.expression(a) for a in node.args]
        rows = [self.unrolled(v) for v in values]
        if any(isinstance(v, t.Type) and v.kind == "Unknown" for v in values):
            return t.UNKNOWN
        if any(r is not None for r in rows):
            if any(r is None and not getattr(v, "counted", False) for r, v in zip(rows, values, strict=True)):
                self.refuse(
                    "Can not iterate over a module list or tuple with a value that does not have a "
                    "statically determinable length",
                    node,
                )
            lengths = {len(r) for r in rows if r is not None}
            size = lengths.pop() if len(lengths) == 1 else 0
            return Iterated("zip", t.UNKNOWN, [t.UNKNOWN] * size)
        parts = [_type(self.element(v, a)) for v, a in zip(values, node.args, strict=True)]
        return Iterated("zip", t.tuple_of(parts))

    def call_reversed(self, node, hint):
        value = self.expression(node.args[0])
        return value if isinstance(value, t.Type) and value.kind == "List" else t.UNKNOWN

    def call_type(self, node, hint):
        value = self.simple(node.args[0]) if len(node.args) == 1 else t.UNKNOWN
        if value.known and value.kind not in ("Tensor", "Inferred"):
            self.refuse(
                "\ntype(Tensor 0) -> Tensor 0:\nExpected a value of type 'Tensor (inferred)' for "
                "argument '0' "
                f"but instead found type '{value}'.\n",
                node,
            )
        return t.UNKNOWN

    def raised(self, node):
        """What stands behind ``raise``."""
        if isinstance(node, ast.Call):
            for argument in node.args:
                self.argument(argument)
        elif not isinstance(node, (ast.Name, ast.Attribute)):
            if isinstance(self.expression(node), t.Type):
                self.refuse("exceptions must derive from BaseException", node)


@functools.cache
def library_schema(function):
    """The schema of a function of `torch.nn.functional` with UNKNOWN where it says nothing, None if it says
    nothing at all; and (position, default) of ``return_indices``, if it takes that."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None, None
    found, flag = [], None
    for i, parameter in enumerate(signature.parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None, None
        if parameter.name == "return_indices":
            flag = i, parameter.default
        default = t.Argument.REQUIRED if parameter.default is parameter.empty else parameter.default
        kind = _said(parameter.annotation)
        found.append(t.Argument(parameter.name, kind, default, parameter.kind is parameter.KEYWORD_ONLY))
    return t.Schema(function.__name__, found, _said(signature.return_annotation)), flag


def _said(annotation):
    """The type that an annotation of the library's stands for, UNKNOWN where it has none."""
    if annotation is inspect.Parameter.empty:
        return t.UNKNOWN
    if not isinstance(annotation, (type, types.UnionType)):  # of an operator: words
        return t.TENSOR if str(annotation) == "Tensor" else t.UNKNOWN
    try:
        return python_type(annotation) or t.UNKNOWN
    except (RuntimeError, ValueError, AssertionError):
        return t.UNKNOWN


def schema_in_python(function, method=False):
    """The schema of a function that stays Python; None where it has none that scripts know."""
    from rushlight.jit.frontend import schema_of_function

    try:
        return schema_of_function(function, method)
    except (OSError, RuntimeError, FrontendError):
        return None


# Calls that are made elsewhere, and the types of what stands for their results.
_LATER = {
    "torch.jit.fork": t.future_of,
    "torch.jit._fork": t.future_of,
    "torch.jit._awaitable": t.await_of,
}
_CALLABLE = ("Any", "Class", "Enum", "Interface")
_WITH_ATTRIBUTES = ("Unknown", "Class", "NamedTuple", "Enum", "Interface")


def _type(value):
    return value if isinstance(value, t.Type) else t.UNKNOWN


_SPECIAL = frozenset(
    """torch.jit.annotate torch.jit._unwrap_optional isinstance torch.jit.isinstance hasattr range enumerate
    zip reversed type print""".split()
)


def _schema_of_tuple(cls, kind):
    """How a named tuple is made: its fields by their types, some with defaults."""
    required, said = t.Argument.REQUIRED, getattr(cls, "__annotations__", {})
    kinds = [part if name in said else t.INFERRED for name, part in zip(cls._fields, kind.args, strict=True)]
    fields = zip(cls._fields, kinds, strict=True)
    arguments = [t.Argument(name, part, cls._field_defaults.get(name, required)) for name, part in fields]
    return t.Schema(cls.__name__, arguments, kind)


class _Lazy:
    """Functions of `torch` that are written in Python, and so compiled and not looked up."""

    def __contains__(self, name):
        value = getattr(rushlight, name, None)
        home = getattr(value, "__module__", "") or ""
        grads = isinstance(value, type) and name not in ("finfo", "iinfo")
        return home.rpartition(".")[2] == "functional" or name.startswith("_") or grads


_WITHOUT_SCHEMA = _Lazy()
