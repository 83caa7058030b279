"""Operator signatures as objects: ``op._schema`` with its arguments and returns."""

import itertools
import re

__all__ = ["Argument", "FunctionSchema", "Type", "parse_schema"]

_NAMES = {"SymInt": "int", "ScalarType": "ScalarType", "Scalar": "number", "str": "str"}


class Type:
    """A type of the schema language: ``Tensor``, ``int[]``, ``Tensor?``."""

    def __init__(self, text):
        self._text = text

    @property
    def annotation_str(self):
        if self._text.endswith("?"):
            return f"Optional[{self.getElementType().annotation_str}]"
        if self._text.endswith("[]"):
            return f"List[{self.getElementType().annotation_str}]"
        return _NAMES.get(self._text, self._text)

    def kind(self):
        if self._text.endswith("?"):
            return "OptionalType"
        return (
            "ListType" if self._text.endswith("[]") else f"{_NAMES.get(self._text, self._text).title()}Type"
        )

    def getElementType(self):
        suffix = 1 if self._text.endswith("?") else 2 if self._text.endswith("[]") else 0
        if not suffix:
            raise RuntimeError(f"type {self._text} has no element type")
        return Type(self._text[:-suffix])

    def str(self):
        return str(self)

    def containedTypes(self):  # noqa: N802
        """The types that a list or an optional type is made of."""
        return [self.getElementType()] if self._text.endswith(("?", "[]")) else []

    def isSubtypeOf(self, other):
        own, wanted = self.annotation_str, other.annotation_str
        return wanted in (own, f"Optional[{own}]")

    def __str__(self):
        return self._text.replace("SymInt", "int") if self._text != "SymInt" else "int"

    def __repr__(self):
        return str(self)

    def __eq__(self, other):
        return isinstance(other, Type) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


class AliasInfo:
    """``(a!)``: which set of aliases an argument belongs to, and whether it is written."""

    def __init__(self, before, after, is_write):
        self.before_set, self.after_set, self.is_write = before, after, is_write


class Argument:
    def __init__(
        self, name, type, default=None, has_default=False, kwarg_only=False, alias_info=None, N=None
    ):
        self.name, self.type, self.real_type = name, type, type
        self.default_value, self._has_default = default, has_default
        self.kwarg_only, self.alias_info, self.N = kwarg_only, alias_info, N

    def has_default_value(self):
        return self._has_default

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self):
        return self.kwarg_only and self.is_write

    def __str__(self):
        alias = ""
        if self.alias_info is not None:
            names = "|".join(sorted(self.alias_info.before_set))
            after = self.alias_info.after_set
            after = "" if after == self.alias_info.before_set else f" -> {'|'.join(sorted(after))}"
            alias = f"({names}{'!' if self.is_write else ''}{after})"
        text = str(self.type)
        if self.N:
            text = text.replace("[]", f"[{self.N}]", 1)
        head = re.match(r"\w+", text).group()
        text = f"{head}{alias}{text[len(head) :]}" + (f" {self.name}" if self.name else "")
        if not self._has_default:
            return text
        value = self.default_value
        if self.N and isinstance(value, list) and len(value) == self.N and len(set(value)) == 1:
            value = value[0]  # one number for all
        return f"{text}={_shown(value)}"

    __repr__ = __str__


def _shown(value):
    return f'"{value}"' if isinstance(value, str) else str(value)


class FunctionSchema:
    """``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`` in its parts."""

    def __init__(self, name, overload_name, arguments, returns):
        self.name, self.overload_name = name, overload_name
        self.arguments, self.returns = arguments, returns
        self.is_vararg = self.is_varret = False

    @property
    def is_mutable(self):
        return any(a.is_write for a in self.arguments)

    def is_backward_compatible_with(self, old_schema):
        """Whether every call that fits an older version of this schema still fits."""
        from rushlight._operators.schema_versions import is_backward

        return is_backward(self, old_schema)

    def check_forward_compatible_with(self, old_schema):
        """(whether programs that know the older version can read this one's calls, why not)."""
        from rushlight._operators.schema_versions import check_forward

        return check_forward(self, old_schema)

    def __str__(self):
        parts, starred = [], False
        for argument in self.arguments:
            if argument.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(argument))
        returns = ", ".join(map(str, self.returns))
        returns = returns if len(self.returns) == 1 and not self.returns[0].name else f"({returns})"
        full = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        return f"{full}({', '.join(parts)}) -> {returns}"

    __repr__ = __str__

    def __eq__(self, other):
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self):
        return hash(str(self))


# --- reading ------------------------------------------------------------------------------------

_ITEM = re.compile(
    r"(?P<head>\w+)(?:\((?P<alias>[^)]*)\))?(?P<written>!?)(?P<suffix>(?:\?|\[\d*\])*)(?P<all_written>!?)"
    r"\s*(?P<name>\w*)\s*(?:=\s*(?P<default>.+))?$"
)


def _split(text):
    """Split at commas outside brackets and quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def _alias(text):
    if not text:
        return None
    before, _, after = text.partition("->")
    names = frozenset(before.replace("!", "").strip().split("|"))
    return AliasInfo(set(names), set(after.strip().split("|")) if after else set(names), "!" in text)


def _literal(text, type):
    import ast

    kind = str(type).removesuffix("?")
    if kind in _READERS and text != "None":
        return _READERS[kind](text.strip("\"'"))
    if (
        text in ("contiguous_format", "preserve_format", "strided", "long", "inf", "-inf")
        or text.isidentifier()
    ):
        constants = {"True": True, "False": False, "None": None, "inf": float("inf")}
        return constants.get(text, text)
    value = ast.literal_eval(text)
    return float(value) if str(type) in ("float", "float?") and isinstance(value, int) else value


def _dtype_number(name):
    """The number that PyTorch's schemas hold in place of a dtype."""
    import rushlight
    from rushlight._serialization.dtype_numbers import number_of

    return int(name) if name.isdigit() else number_of(getattr(rushlight, name))


def _device(name):
    import rushlight

    return rushlight.device(name)


_READERS = {"ScalarType": _dtype_number, "Device": _device}


def _argument(text, kwarg_only=False, unnamed=None):
    """Read one item; `unnamed` counts the sets of aliases that have no name ("Tensor! x")."""
    found = _ITEM.match(text)
    if found is None:
        raise RuntimeError(f"cannot read {text!r} in an operator's schema")
    size = re.search(r"\[(\d+)\]", found["suffix"])
    type = Type(found["head"] + re.sub(r"\[\d+\]", "[]", found["suffix"]))
    default = found["default"]
    value = None if default is None else _literal(default, type)
    if size and isinstance(value, (int, float)):
        value = [value] * int(size[1])
    alias = _alias(found["alias"])
    if found["written"] or found["all_written"]:
        alias = AliasInfo({f"${next(unnamed)}"}, set(), True)
    return Argument(
        found["name"], type, value, default is not None, kwarg_only, alias, int(size[1]) if size else None
    )


def parse_schema(text):
    """Read a schema's text."""
    head, _, rest = text.partition("(")
    close = _closing(rest)
    name, _, overload = head.strip().partition(".")
    arguments, kwarg_only, unnamed = [], False, itertools.count()
    for part in _split(rest[:close]):
        if part == "*":
            kwarg_only = True
        else:
            arguments.append(_argument(part, kwarg_only, unnamed))
    returns = rest[close + 1 :].partition("->")[2].strip()
    if returns.startswith("("):
        returns = returns[1:-1]
    return FunctionSchema(
        name, overload, arguments, [_argument(part, unnamed=unnamed) for part in _split(returns)]
    )


def _closing(text):
    depth = 0
    for i, c in enumerate(text):
        if c == "(":
            depth += 1
        elif c == ")":
            if depth == 0:
                return i
            depth -= 1
    raise RuntimeError(f"a parenthesis is not closed in the schema ({text}")
