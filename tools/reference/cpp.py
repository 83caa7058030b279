"""The C++ front end's declarations and bodies, printed from the operator records.

``include/rushlight/printed`` holds what programs include, ``src/frontend/printed_*.cpp`` the bodies: each one
boxes its arguments and goes through the gate.
"""

import re

NOTE = """// Printed from the operator table by `python tools/print_operators.py`; do not edit.
// clang-format off
"""

# Written by hand in class Tensor (core/tensor.h, rushlight/tensor_extra.h), with PyTorch's overloads.
HAND_METHODS = {
    "index_put_", "index", "numpy_T", "contiguous",
}  # fmt: skip
# Defined in ops/arithmetic.cpp, because derivatives and composites call them too.
IN_CORE = {"eq", "ne", "pow", "masked_fill"}  # with a number
IN_CORE_ALL = {"detach"}
# PyTorch's older forms, the factor first; and what has no name in C++.
SKIPPED_OVERLOADS = re.compile(r"_first$|_around$|_before$|_out$|^out$")
SKIPPED = {
    "where",
    "where.self",
    "where.method",
    "nll_loss",
    "nll_loss2d",
    "nll_loss_forward",
    "nll_loss2d_forward",
    "mm.dtype",
    "bmm.dtype",
    "addmm.dtype",
    "baddbmm.dtype",
    "linspace.Tensor_Tensor",
    "linspace.Tensor_Scalar",
    "linspace.Scalar_Tensor",
    "logspace.Tensor_Tensor",
    "logspace.Tensor_Scalar",
    "logspace.Scalar_Tensor",
}
# Beside pointwise operators: whose last tensor may be a number.
NUMBERS_TOO = {
    "less", "less_equal", "greater", "greater_equal", "not_equal", "divide", "multiply", "subtract",
    "true_divide", "float_power", "rsub", "index_fill", "fill", "fill_", "ldexp",
}  # fmt: skip
NUMBER_POSITIONS = re.compile(r"^(Tensor|int_Tensor)")
# Defaults that would make calls ambiguous in C++; as in PyTorch.
NO_DEFAULT = {
    name + dim: "unbiased" for name in ("std", "var", "std_mean", "var_mean") for dim in ("", ".dim")
} | {"all.dims": "dim", "any.dims": "dim"}
DROPPED = {"size_average", "reduce", "_stacklevel"}
OPTIONS = ["dtype", "layout", "device", "pin_memory"]
KEYWORDS = {"from", "end", "default", "bool", "float", "double", "int", "long", "short", "char"}
SPACES = {"": "", "nn": "nn::functional", "linalg": "linalg", "fft": "fft", "special": "special"}

TYPES = {
    "Tensor": "const Tensor&",
    "Tensor?": "const std::optional<Tensor>&",
    "Tensor[]": "TensorList",
    "Tensor?[]": "TensorList",
    "Scalar": "const Scalar&",
    "Scalar?": "const std::optional<Scalar>&",
    "int": "int64_t",
    "int?": "std::optional<int64_t>",
    "int[]": "IntArrayRef",
    "int[]?": "OptionalIntArrayRef",
    "float": "double",
    "float?": "std::optional<double>",
    "float[]": "ArrayRef<double>",
    "float[]?": "std::optional<ArrayRef<double>>",
    "Scalar[]": "ArrayRef<Scalar>",
    "bool": "bool",
    "bool?": "std::optional<bool>",
    "str": "std::string_view",
    "str?": "std::optional<std::string_view>",
    "ScalarType": "ScalarType",
    "ScalarType?": "std::optional<ScalarType>",
    "Layout": "Layout",
    "Layout?": "std::optional<Layout>",
    "Device": "Device",
    "Device?": "std::optional<Device>",
    "MemoryFormat": "MemoryFormat",
    "MemoryFormat?": "std::optional<MemoryFormat>",
    "Generator?": "Generator*",
}
RETURNS = {"Tensor": "Tensor", "Tensor[]": "std::vector<Tensor>", "bool": "bool", "int": "int64_t",
           "float": "double", "Scalar": "Scalar"}  # fmt: skip


class Parameter:
    def __init__(self, text):
        text = re.sub(r"\([^)]*\)", "", text)  # "(a!)"
        declared, _, self.default = text.partition("=")
        self.has_default = "=" in text
        kind, self.name = declared.split()
        length = re.search(r"\[(\d+)\]", kind)
        self.length = int(length[1]) if length else 0
        self.kind = re.sub(r"\[\d+\]", "[]", kind)

    @property
    def cpp_name(self):
        return self.name + "_" if self.name in KEYWORDS else self.name

    @property
    def cpp_default(self):
        d = self.default
        if d == "None":
            return "nullptr" if self.kind == "Generator?" else "std::nullopt"
        if d in ("True", "False"):
            return d.lower()
        if d == "contiguous_format":
            return "MemoryFormat::Contiguous"
        if d.startswith("["):
            return "{" + d[1:-1].replace(",", ", ") + "}"
        return d.replace("'", '"')

    @property
    def value(self):
        """The expression that boxes it."""
        if self.length > 1:
            return f"{self.cpp_name}_list.value()"
        if self.kind == "int[]?":
            return f"{self.cpp_name}.list()"
        if self.kind in ("float[]", "float[]?"):
            return f"floats({self.cpp_name})"
        if self.kind == "Scalar[]":
            return f"Value(ScalarList({self.cpp_name}.data(), {self.cpp_name}.size()))"
        return f"Value({self.cpp_name})"

    def declare(self, default):
        text = f"{TYPES[self.kind]} {self.cpp_name}"
        return text + (f" = {self.cpp_default}" if default and self.has_default else "")


class Overload:
    """One C++ function: its parameters in order, and how each parameter of the record gets its value."""

    def __init__(self, record, parameters, returns, options=False, omit=(), number=None, defaults=True):
        self.record, self.parameters, self.returns = record, parameters, returns
        self.options, self.omit, self.number, self.defaults = options, set(omit), number, defaults
        self.name = record["name"]

    def shown(self):
        """Pairs of C++ parameter text without and with default, `self` first among them."""
        result, grouped = [], False
        for p in self.parameters:
            if p.name in self.omit:
                continue
            if self.options and p.name in OPTIONS:
                if not grouped:
                    with_default = "TensorOptions options = {}" if self.defaults else "TensorOptions options"
                    result.append(("options", "TensorOptions options", with_default))
                grouped = True
                continue
            if p is self.number:
                plain = full = f"const Scalar& {p.cpp_name}"
            else:
                plain, full = p.declare(False), p.declare(self.defaults)
            result.append((p.name, plain, full))
        return self._trailing_defaults(result)

    @staticmethod
    def _trailing_defaults(shown):
        """C++ wants all defaults behind the first; a keyword without one ends those before it."""
        keep, result = True, []
        for name, plain, full in reversed(shown):
            keep = keep and " = " in full
            result.append((name, plain, full if keep else plain))
        return result[::-1]

    def types(self, method):
        return tuple(
            plain.rsplit(" ", 1)[0] for name, plain, _ in self.shown() if not (method and name == "self")
        )

    def values(self):
        result = []
        for p in self.parameters:
            if p.name in self.omit and not (self.options and p.name in OPTIONS):
                result.append(f"default_of(op, {len(result)})")
            elif self.options and p.name in OPTIONS:
                result.append(f"Value(options.{p.name}_opt())")
            elif p is self.number:
                result.append(f"Value({p.cpp_name}_number)")
            else:
                result.append(p.value)
        return ", ".join(result)

    def before(self):
        lines = []
        for p in self.parameters:
            if p.name in self.omit:
                continue
            if p is self.number:
                lines.append(f"const Tensor {p.cpp_name}_number = wrapped_number({p.cpp_name});")
            elif p.length > 1:
                lines.append(f"const ListOf {p.cpp_name}_list({p.cpp_name}, {p.length});")
        return lines

    @property
    def key(self):
        space, overload = self.record["space"], self.record["overload"]
        return (f"{space}::" if space else "") + self.name + (f".{overload}" if overload else "")


def split_top(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def parse(record):
    head, _, result = record["schema"].rpartition(" -> ")
    inside = head[head.index("(") + 1 : -1]
    parameters = [Parameter(p) for p in split_top(inside) if p != "*"]
    result = re.sub(r"\(a[^)]*\)", "", result)
    if result.startswith("("):
        returns = [p.split()[0] for p in split_top(result[1:-1])]
    else:
        returns = [result]
    return parameters, returns


def return_type(returns):
    if not returns:
        return "void"
    if len(returns) == 1:
        return RETURNS[returns[0]]
    return "std::tuple<" + ", ".join(RETURNS[r] for r in returns) + ">"


def overloads(record):
    parameters, returns = parse(record)
    key = record["name"] + (f".{record['overload']}" if record["overload"] else "")
    names = [p.name for p in parameters]
    for p in parameters:
        if p.name == NO_DEFAULT.get(key) or (record["overload"] == "padding" and p.name == "padding"):
            p.has_default = False
    omit = {n for n in names if n in DROPPED}
    options = all(n in names for n in OPTIONS)
    first = []
    if options and "generator" in names:
        first.append(Overload(record, parameters, returns, True, omit | {"generator"}))
        generator = parameters[names.index("generator")]
        generator.has_default = False
        first.append(Overload(record, parameters, returns, True, omit))
        return first
    first.append(Overload(record, parameters, returns, options, omit))
    if options:
        before = parameters[names.index("dtype") - 1]
        if before.has_default:
            first.append(Overload(record, parameters, returns, True, omit | {before.name}, defaults=False))
    takes_number = record["family"] == "pointwise" or record["name"] in NUMBERS_TOO
    tensors = [p for p in parameters if p.kind == "Tensor"]
    if (
        takes_number
        and not record["space"]
        and len(tensors) > 1
        and NUMBER_POSITIONS.match(record["overload"])
    ):
        first.append(Overload(record, parameters, returns, False, omit, number=tensors[-1]))
    return first


def skip(record):
    key = record["name"] + (f".{record['overload']}" if record["overload"] else "")
    if (
        record["name"].startswith("_")
        or record["name"] in KEYWORDS
        or (not record["space"] and key in SKIPPED)
    ):
        return True
    if SKIPPED_OVERLOADS.search(record["overload"]):
        return True
    hidden = not record["function"] and not record["method"] and not record["inplace"] and not record["out"]
    return hidden and record["name"].endswith("_backward")


class Function:
    """One printed function or method."""

    def __init__(self, overload, form, method):
        self.o, self.form, self.method = overload, form, method  # form: "", "_", "out"

    @property
    def name(self):
        return self.o.name + ("_" if self.form == "_" else "_out" if self.form == "out" else "")

    @property
    def writes(self):
        return self.form == "_" or (self.o.name.endswith("_") and self.o.returns == ["Tensor"])

    @property
    def result(self):
        if self.form == "out":
            n = len(self.o.returns)
            return "Tensor&" if n == 1 else "std::tuple<" + ", ".join(["Tensor&"] * n) + ">"
        return "Tensor&" if self.writes else return_type(self.o.returns)

    def parameters(self, index):
        shown = [(name, pair) for name, *pair in self.o.shown() if not (self.method and name == "self")]
        first = self.o.parameters[0].name if self.o.parameters else ""
        texts = []
        for name, pair in shown:
            text = pair[index]
            if self.writes and name == first and not self.method:
                text = text.replace("const Tensor&", "Tensor&")
            texts.append(text)
        if self.form == "out":
            n = len(self.o.returns)
            texts = [f"Tensor& out{i if n > 1 else ''}" for i in range(n)] + [
                t.split(" = ")[0] for t in texts
            ]
        return texts

    @property
    def signature(self):
        return (self.name, tuple(p.rsplit(" ", 1)[0] for p in self.parameters(0)))

    def declaration(self):
        tail = " const" if self.method else ""
        return f"{self.result} {self.name}({', '.join(self.parameters(1))}){tail};"

    def definition(self, functions=frozenset()):
        owner = "Tensor::" if self.method else ""
        tail = " const" if self.method else ""
        head = f"{self.result} {owner}{self.name}({', '.join(self.parameters(0))}){tail} {{ "
        free = Function(self.o, self.form, False)
        if self.method and free.signature in functions:
            given = ", ".join("*this" if n == "self" else n for n in self._names())
            me = "Tensor& self = const_cast<Tensor&>(*this); " if self.writes else ""
            given = given.replace("*this", "self") if me else given
            return f"{head}{me}return rushlight::{self.name}({given}); }}"
        lines = [f'static const Op& op = find_operator("{self.o.key}");']
        if self.method:
            lines += ["const Tensor& self = *this;"]
        lines += self.o.before()
        values = self.o.values()
        lines += [f"const Value boxed[] = {{{values}}};" if values else "const Value* boxed = nullptr;"]
        return f"{head}{' '.join([*lines, self.call()])} }}"

    def _names(self):
        return ["self" if n == "self" else text.rsplit(" ", 1)[1] for n, text, _ in self.o.shown()]

    def call(self):
        first = self.o.parameters[0].cpp_name if self.o.parameters else ""
        if self.form == "out":
            n = len(self.o.returns)
            if n == 1:
                return "return call_out(op, boxed, out);"
            outs = ", ".join(f"out{i}" for i in range(n))
            return f"const Tensor outs[] = {{{outs}}}; call_outs(op, boxed, outs); return {{{outs}}};"
        if self.form == "_":
            return f"return call_inplace(op, boxed, {first});"
        if self.writes:
            return f"return call_writing(op, boxed, {first});"
        if self.o.options:
            return "return made(call<Tensor>(op, boxed), options);"
        result = return_type(self.o.returns)
        return f"return call<{result}>(op, boxed);" if result != "void" else "call<void>(op, boxed);"


def functions(records):
    """Free functions by name space, and the methods; each C++ signature once."""
    spaces, methods = {space: [] for space in SPACES}, []
    seen = set()

    def add(where, function):
        key = (id(where), function.signature)
        if key not in seen:
            seen.add(key)
            where.append(function)

    for record in records:
        if record["space"] not in SPACES or skip(record):
            continue
        for o in overloads(record):
            space = spaces[record["space"]]
            as_method = record["method"] and record["name"] not in HAND_METHODS
            internal = not record["function"] and not record["method"]
            if record["function"] or internal or record["name"].endswith("_"):
                add(space, Function(o, "", False))
            if as_method and o.parameters[0].name == "self":
                add(methods, Function(o, "", True))
            starts = bool(o.parameters) and o.parameters[0].kind == "Tensor"
            if record["inplace"] and starts and o.returns == ["Tensor"]:
                add(space, Function(o, "_", False))
                if not record["space"] and o.parameters[0].name == "self":
                    add(methods, Function(o, "_", True))
            if record["out"] and all(r == "Tensor" for r in o.returns) and not o.number:
                add(space, Function(o, "out", False))
    return spaces, methods


def forwards(space, listed):
    """torch::linalg_inv for torch::linalg::inv."""
    lines = []
    for f in listed:
        inner, f_name = f.parameters(0), f"{space}_{f.name}"
        given = ", ".join(text.rsplit(" ", 1)[1] for text in inner)
        head = f"inline {f.result} {f_name}({', '.join(f.parameters(1))})"
        lines.append(f"{head} {{ return {space}::{f.name}({given}); }}")
    return lines


def header(spaces):
    lines = [NOTE, "#pragma once", '#include "rushlight/types.h"', "", "namespace rushlight {", ""]
    for space in ("", "linalg", "fft", "special"):
        if space:
            lines += ["", f"namespace {SPACES[space]} {{"]
        lines += [f.declaration() for f in spaces[space]]
        if space:
            lines += [f"}}  // namespace {SPACES[space]}"]
    for space in ("linalg", "fft", "special"):
        lines += ["", *forwards(space, spaces[space])]
    return "\n".join([*lines, "", "}  // namespace rushlight", ""])


def functional_header(spaces):
    lines = [
        NOTE,
        "#pragma once",
        '#include "rushlight/types.h"',
        "",
        "namespace rushlight::nn::functional {",
        "",
    ]
    lines += [f.declaration() for f in spaces["nn"]]
    return "\n".join([*lines, "", "}  // namespace rushlight::nn::functional", ""])


def methods_header(methods):
    return "\n".join(
        [
            NOTE + "// Inside class Tensor. Note [Methods] in core/tensor.h",
            *[m.declaration() for m in methods],
            "",
        ]
    )


def source(includes, namespace, listed, functions=frozenset()):
    lines = [NOTE, *[f'#include "{name}"' for name in includes], "", f"namespace {namespace} {{", ""]
    lines += ["using namespace frontend;", ""]
    lines += [f.definition(functions) for f in listed]
    return "\n".join([*lines, "", f"}}  // namespace {namespace}", ""])


def files(records):
    spaces, methods = functions(records)
    include, base = "include/rushlight/printed", "src/frontend/printed"
    call, functional = "frontend/call.h", "rushlight/printed/nn_functional.h"
    result = {
        f"{include}/functions.h": header(spaces),
        f"{include}/nn_functional.h": functional_header(spaces),
        f"{include}/tensor_methods.h": methods_header(methods),
        f"{base}_nn.cpp": source([call, functional], "rushlight::nn::functional", spaces["nn"]),
    }
    own = [
        f
        for f in spaces[""]
        if not (f.form == "" and (f.name in IN_CORE_ALL or f.name in IN_CORE and f.o.number))
    ]
    includes = [call, "rushlight/printed/functions.h"]
    for first, last in ("aj", "kz"):
        part = [f for f in own if first <= f.name[0] <= last]
        result[f"{base}_functions_{first}_{last}.cpp"] = source(includes, "rushlight", part)
    result[f"{base}_methods.cpp"] = source(includes, "rushlight", methods, {f.signature for f in spaces[""]})
    for space in ("linalg", "fft", "special"):
        result[f"{base}_{space}.cpp"] = source(includes, f"rushlight::{space}", spaces[space])
    return result
