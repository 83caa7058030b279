"""The type stubs: what type checkers can't see in the extension module, and where lazy names live."""

import inspect
import re
from pathlib import Path

import rushlight
from rushlight import _C
from rushlight._operators import signatures

BOUND_MODULE, BOUND_TENSOR = (
    Path(__file__).with_name(name).read_text().split("\n\n", 1)[-1].split("class TensorBase:")[-1]
    for name in ("module.pyi", "tensor.pyi")
)
# The language's operators; the reflected and in-place ones come with the plain ones.
UNARY = "neg pos abs invert"
BINARY = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
COMPARISON = "lt le eq ne gt ge"
HEAD = '"""Printed from the built module by `python tools/print_operators.py`; do not edit."""\n'
CHECKS = '# mypy: disable-error-code="assignment,misc,override,overload-overlap,overload-cannot-match"\n'
IMPORTS = """
from builtins import bool as _bool, complex as _complex, float as _float
from builtins import int as _int, str as _str, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, SupportsIndex, TypeAlias, TypeVar, overload
from typing_extensions import ParamSpec, Self, TypeGuard
"""
ALIASES = """
_Number: TypeAlias = _bool | _int | _float | _complex
_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_memory_format: TypeAlias = memory_format
_Device: TypeAlias = device | _str | _int | None
_T = TypeVar("_T")
_P = ParamSpec("_P")
_R_co = TypeVar("_R_co", covariant=True)
"""
FROM_MODULE = """
from rushlight import return_types
from rushlight._C import Generator, Size, _Device, _Number, _device, _dtype, _layout, _memory_format
from rushlight._tensor import Tensor
"""
# What members of the module or of Tensor hide has another name in a stub.
HIDDEN = re.compile(r"\b(bool|int|float|str|dtype|layout|memory_format|Number|Device)\b")
NAMESPACES = ("_VariableFunctions", "_nn", "_linalg", "_special", "_fft")


def stubs():
    """The text of every stub, by its path."""
    texts = {f"rushlight/_C/{name}.pyi": namespace(name) for name in NAMESPACES}
    texts["rushlight/_C/__init__.pyi"] = module()
    texts["rushlight/array_api/_elementwise.pyi"] = array_api()
    texts["rushlight/return_types.pyi"] = named_tuples()
    texts["rushlight/__init__.pyi"] = package()
    return texts


def is_operator(value):
    return hasattr(value, "_overloads")


# --- operators ----------------------------------------------------------------------------------


def annotation(text):
    return HIDDEN.sub(r"_\1", str(text))


def parameter_text(parameter):
    """`name: type = default`; defaults that are no literals stay out."""
    text = {inspect.Parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {annotation(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    literal = parameter.default is None or (
        isinstance(parameter.default, (bool, int, float, str)) and "inf" not in repr(parameter.default)
    )
    return f"{text} = {parameter.default!r}" if literal else f"{text} = ..."


def parameters_text(signature, method):
    """The parameters with the marks `/` and `*` between kinds; a method's first one is plain `self`."""
    parts, last = [], None
    for i, p in enumerate(signature.parameters.values()):
        if last is p.POSITIONAL_ONLY and p.kind is not last:
            parts.append("/")
        if p.kind is p.KEYWORD_ONLY and last not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        parts.append("self" if method and i == 0 else parameter_text(p))
        last = p.kind
    if last is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return ", ".join(parts)


def operator(name, function, indent=""):
    """The lines of one operator: a definition for each form of call."""
    method = bool(indent)
    lines = [
        f"{indent}def {name}({parameters_text(s, method)}) -> {annotation(s.return_annotation)}: ..."
        for s in signatures.overload_signatures(function)
    ]
    lines = list(dict.fromkeys(lines))
    return lines if len(lines) == 1 else [part for line in lines for part in (f"{indent}@overload", line)]


def namespace(name):
    lines = [HEAD, CHECKS, IMPORTS, FROM_MODULE]
    for key, function in vars(getattr(_C, name)).items():
        if is_operator(function):
            lines += operator(key, function)
        elif not key.startswith("__"):
            lines.append(f"def {key}(*args: Any, **kwargs: Any) -> Any: ...")
    return "\n".join(lines) + "\n"


# --- the module ---------------------------------------------------------------------------------


def known(text, indent=""):
    """The names that hand-written lines declare."""
    return set(re.findall(rf"^{indent}(?:def |class )?(\w+)", text, re.MULTILINE))


def tensor_base():
    hand = annotation_of_bound(BOUND_TENSOR)
    lines = ["class TensorBase:", *hand.strip("\n").splitlines()]
    declared = known(BOUND_TENSOR, "    ")
    members = vars(_C.TensorBase)
    for key, value in members.items():
        if is_operator(value) and key not in declared:
            lines += operator(key, value, "    ")
    lines += dunders(members)
    declared |= known("\n".join(lines), "    ")
    for key, value in members.items():
        if key in declared or key in vars(object) or is_operator(value):
            continue
        flag = key.startswith("is_") and inspect.isgetsetdescriptor(value)
        if inspect.isgetsetdescriptor(value):
            lines.append(f"    {key}: {'_bool' if flag else 'Any'}")
        elif callable(value) and not isinstance(value, staticmethod):
            returns = "_bool" if key.startswith("is_") else "Tensor" if key in vars(_C) else "Any"
            lines.append(f"    def {key}(self, *args: Any, **kwargs: Any) -> {returns}: ...")
        elif isinstance(value, staticmethod):
            lines += ["    @staticmethod", f"    def {key}(*args: Any, **kwargs: Any) -> Any: ..."]
    return lines


def dunders(members):
    """The operators of the language, as far as the type has them."""
    lines = []
    for name in UNARY.split():
        lines.append(f"    def __{name}__(self) -> Tensor: ...")
    for name in BINARY.split():
        lines += [
            f"    def __{form}{name}__(self, other: Tensor | _Number) -> Tensor: ..."
            for form in ("", "r", "i")
            if f"__{form}{name}__" in members
        ]
    for name in COMPARISON.split():
        lines.append(f"    def __{name}__(self, other: Any) -> Tensor: ...")
    return lines


def annotation_of_bound(text):
    """Hand-written lines with the types' other names where a member hides them."""
    return re.sub(r": memory_format\b", ": _memory_format", text)


def module():
    declared = known(BOUND_MODULE) | {"TensorBase", "_TensorBase"}
    text = re.sub(r"(: |-> )(dtype)\b", r"\1_dtype", BOUND_MODULE)
    lines = [HEAD, CHECKS, IMPORTS]
    lines += ["from rushlight import return_types", "from rushlight._tensor import Tensor", ""]
    lines += [f"from rushlight._C import {name} as {name}" for name in NAMESPACES]
    lines += [ALIASES, text.strip("\n"), "", *tensor_base(), "", "_TensorBase = TensorBase"]
    lines += module_rest(declared | set(NAMESPACES))
    return "\n".join(lines) + "\n"


def module_rest(declared):
    """Constants, and what programs have no business with, so that it has no types of its own."""
    for key, value in sorted(vars(_C).items()):
        if key in declared or key.startswith("__"):
            continue
        if isinstance(value, type(_C)):
            yield f"{key}: Any"
        elif isinstance(value, type):
            yield f"class {key}:\n    def __init__(self, *args: Any, **kwargs: Any) -> None: ..."
            yield "    def __getattr__(self, name: _str) -> Any: ..."
            special = ("__call__", "__enter__", "__exit__")
            yield from (
                f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ..."
                for name in special
                if name in vars(value)
            )
        elif callable(value) and not is_operator(value):
            yield f"def {key}(*args: Any, **kwargs: Any) -> Any: ..."
        else:
            yield f"{key}: {annotation(type(value).__name__)}"


def named_tuples():
    lines = [HEAD, "from typing import NamedTuple", "", "from rushlight._tensor import Tensor"]
    for record in _C._operator_records():
        fields = re.findall(r"Tensor (\w+)", record["schema"].split(" -> ")[1])
        plain = signatures.named_type_of(record)
        for name in (plain, f"{plain}_out")[: 1 + record["out"]]:
            head = f"class {name}(NamedTuple):"
            if len(fields) > 1 and head not in lines:
                lines += ["", head, *(f"    {field}: Tensor" for field in fields)]
    edges = "    bin_edges: tuple[Tensor, ...]"
    lines += ["", "class histogramdd(NamedTuple):", "    hist: Tensor", edges]
    return "\n".join(lines) + "\n"


def array_api():
    """Functions that are made in a loop, which no checker follows."""
    from rushlight.array_api import _elementwise

    lines = [HEAD, "from typing import Any", "", "from rushlight._tensor import Tensor", ""]
    for name in _elementwise.__all__:
        signature = inspect.signature(getattr(_elementwise, name))
        typed = [
            p.replace(annotation="Tensor" if p.default is p.empty else "Any")
            for p in signature.parameters.values()
        ]
        parameters = parameters_text(signature.replace(parameters=typed), False)
        lines.append(f"def {name}({parameters}) -> Tensor: ...")
    return "\n".join([*lines, "", f"__all__ = {_elementwise.__all__!r}", ""])


# --- the package --------------------------------------------------------------------------------


def package():
    """Where each public name of the package comes from, the lazily found ones included."""
    lines = [HEAD, CHECKS, *(f"from math import {name} as {name}" for name in ("e", "inf", "nan", "pi"))]
    homes = rushlight._HOME_OF
    modules = sorted(rushlight._SUBMODULES - {"ops"})  # an object, of which checkers are told below
    lines += [f"from rushlight import {name} as {name}" for name in modules]
    lines += [f"from rushlight.{home} import {name} as {name}" for name, home in homes.items()]
    for source, owner in (("_C", _C), ("_C._VariableFunctions", _C._VariableFunctions)):
        names = [n for n in vars(owner) if not n.startswith("_" if owner is _C else "__") and n not in homes]
        lines += [f"from rushlight.{source} import {n} as {n}" for n in names if hasattr(rushlight, n)]
    lines += [
        "from rushlight import _C as _C, _tensor as _tensor",
        "from rushlight._ops import ops as ops",
        "from rushlight._tensor import Tensor as Tensor",
    ]
    lines += ["from rushlight.version import __version__ as __version__", "", "newaxis: None"]
    return "\n".join([*lines, "legacy_contiguous_format: memory_format", ""])
