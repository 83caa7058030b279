"""Names of operators in lists of code: which lists there are, and that each name in them is an operator.

What is true of an operator stands on its record (Note [Traits]). A list stays where it says what another
format or PyTorch's interface has, or gives each operator a function of its own. It is of one kind: of
operators in `torch.ops.aten`, of functions and methods as programs call them, of formulas, or of operators of
PyTorch that other people's files name.
"""

import ast
import builtins
import importlib
import operator
import re
from pathlib import Path

import pytest

import rushlight
from rushlight import _C
from rushlight.nested._internal.nested_tensor import NestedTensor
from rushlight.nested._internal.strided import StridedNestedTensor

PLACES = (
    rushlight,
    rushlight.Tensor,
    rushlight.nn.functional,
    rushlight.linalg,
    rushlight.fft,
    rushlight.special,
    _C._nn,
    _C._linalg,
    _C._VariableFunctions,
    rushlight.functional,
    rushlight.nested,
    NestedTensor,
    StridedNestedTensor,
    property,  # `__get__` and `__set__`, through which attributes come
)


def is_operator(name):
    """``add``, ``add_``, ``add.Tensor``, ``add.default`` in `torch.ops.aten`; ``space::add`` in another."""
    name, _, overload = name.partition(".")
    space, colons, name = name.rpartition("::")
    packet = getattr(getattr(rushlight.ops, space if colons else "aten"), name, None)
    return packet is not None and (not overload or overload in packet.overloads())


def is_called(name):
    """What a program calls: a function, a method, an attribute of tensors or Python's operator."""
    return any(hasattr(place, name) for place in PLACES)


def is_formula(name):
    return name in _C._formula_names()


def is_pytorchs(name):
    """An operator of PyTorch: ``aten`` or one of its numbers, lists and words."""
    torch = pytest.importorskip("torch")
    name, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and (not overload or overload in packet.overloads())


# (module, list): what its names are. Of a dict the keys; see VALUES.
LISTS = {
    "_inductor._fuse": {"_PLAIN": is_operator, "_TURNED": is_operator, "_WITH_NUMBERS": is_operator},
    "_inductor._rows": {"_REDUCTIONS": is_operator, "_SOFTMAXES": is_operator},
    "_ops": {"_MORE_OVERLOADS": is_operator},
    "_subclasses._data_shapes": {"_MAKERS": is_operator},
    "autograd._profiler_flops": {"_RULES": is_operator},
    "distributed.tensor._ops": {
        "RULES": is_operator,
        "ADJUSTMENTS": is_operator,
        "HANDLERS": is_operator,
    },
    "distributed.tensor._ops._pointwise": {"_SCALED_BY_OTHER": is_operator},
    "distributed.tensor._ops._reductions": {"_TERMS": is_operator},
    "distributed.tensor.parallel.loss": {"_HANDLERS": is_operator},
    "export._pt2_operators": {
        "_FOREIGN": is_pytorchs,
        "_SAME": is_pytorchs,
        "_NAMES": is_operator,
        "_BY_NAME": is_operator,
    },
    "export._align": {"_VIEWS": is_operator},
    "fx._names": {"_NATIVE_NN": is_called, "_NATIVE_TORCH": is_called, "_OWN_FUNCTIONAL": is_called},
    "masked.maskedtensor.rules": {
        "_POSITIONS": is_called,
        "_ALONG_A_DIMENSION": is_called,
    },
    "nested._internal.ops": {
        "_VALUEWISE": is_called,
        "_REDUCTIONS": is_called,
        "_RULES": is_called,
        "_AS_THEY_ARE": is_called,
    },
    "nested._internal.same_shape": {"_OPERATORS": is_called, "_OTHERS": is_called},
    "nested._internal.strided": {
        "_COMPONENTWISE": is_called,
        "_SHIFTED": is_called,
        "_OTHERS": is_called,
    },
    "nested._internal.strided_views": {"RULES": is_called},
    "nn.parameter": {"UninitializedTensorMixin._allowed_methods": is_called},
    "export._small_weights": {"_TABLES": is_operator},
    "onnx._rules": {"RULES": is_operator},
    "overrides": {"_IGNORED": is_called, "_IGNORED_MEMBERS": is_called},
}
# Dicts whose values are names, too.
VALUES = {
    "_inductor._fuse": {"_PLAIN": is_formula, "_TURNED": is_formula, "_WITH_NUMBERS": is_formula},
    "array_api._elementwise": {"_UNARY": is_called, "_BINARY": is_called},
    "export._pt2_operators": {"_NAMES": is_pytorchs},
}


def found(module, name):
    value = importlib.import_module(f"rushlight.{module}")
    for part in name.split("."):
        value = getattr(value, part)
    return value


def text(entry):
    return entry if isinstance(entry, str) else f"{entry._opname}.{entry._overloadname}"


def cases(table):
    return [
        pytest.param(module, name, kind, id=f"{module}.{name}")
        for module, lists in table.items()
        for name, kind in lists.items()
    ]


@pytest.mark.parametrize(("module", "name", "kind"), cases(LISTS))
def test_names_are_known(module, name, kind):
    entries = list(found(module, name))
    assert entries and [e for e in map(text, entries) if not kind(e)] == []


@pytest.mark.parametrize(("module", "name", "kind"), cases(VALUES))
def test_values_are_known(module, name, kind):
    entries = list(found(module, name).values())
    assert entries and [e for e in entries if not kind(e)] == []


def test_fused_formulas_are_those_of_records():
    """Where a kernel of the family computes an operator, its record says by which formula."""
    tables = importlib.import_module("rushlight._inductor._fuse")
    named = {**tables._PLAIN, **tables._WITH_NUMBERS}
    found = {}
    for record in _C._operator_records():
        full = f"{record['name']}.{record['overload']}".rstrip(".")
        if record["formula"] is not None and full in named and record["space"] in ("", "nn"):
            found[full] = record["formula"]
    assert found == {full: named[full] for full in found} and len(found) > 30


# --- which lists there are

ROOT = Path(__file__).resolve().parents[3]
# Lists in functions and loops, and those whose names are strings or functions of PyTorch's interface.
OTHER_LISTS = {
    # what quantisation supports, by functions of `torch` and `torch.nn.functional`
    "ao.ns.fx.mappings": {"_both_kinds", "get_unmatchable_types_map"},
    "ao.quantization.backend_config.executorch": {"_SHARED_SCALE"},
    "ao.quantization.backend_config.native": {"_OWN_SCALE", "_SHARED_SCALE"},
    "ao.quantization.fx._equalize": {"_FUNCTIONS"},
    "ao.quantization.fx.lower": {"_OWN_SCALE_FUNCTIONS", "_SAME_FUNCTIONS", "_SAME_METHODS"},
    "ao.quantization.fx.utils": {"_input_positions"},
    "ao.quantization.quantization_mappings": {"_quantized_operators"},
    # modules that hold functions of these names
    "_functions.helpers": {"_sym_cos"},
    "array_api._elementwise": {"_WRITTEN"},
    "array_api.fft": {"fft", "fftn"},
    "functional": {"statement"},
    # words that functions take, and methods that make masked tensors
    "_functions.segment": {"_REDUCE"},
    "masked._ops": {"_IDENTITIES"},
    "masked.maskedtensor.binary": {"BINARY_NAMES"},
    "masked.maskedtensor.reductions": {"REDUCE_NAMES"},
    "masked.maskedtensor.unary": {"UNARY_NAMES"},
    "nn.init": {"_LINEAR"},
    "nn.utils._expanded_weights.expanded_weights_impl": {"_LEAST_DIMS"},
    # a function for each
    "distributed.tensor._ops._indexing": {"RULES"},
    "distributed.tensor._ops._matrix": {"RULES"},
    "distributed.tensor._ops._neural": {"RULES"},
    "distributed.tensor._ops._special": {"HANDLERS"},
    "distributed.tensor._ops._views": {"RULES", "ADJUSTMENTS"},
    "export._layers": {"_rules"},
    "export._pt2_decompositions": {"table"},
    "onnx._rules.arithmetic": {"for"},
    "onnx._rules.indexing": {"scatter_reduce"},
    "onnx._rules.layers": {"for"},
    "onnx._rules.quantized": {"_STEPS"},
    "onnx._rules.shapes": {"for"},
    # what TorchScript has
    "jit._arithmetic": {"MATH"},
    "jit._check_expressions": {"_TENSOR_VALUES"},
    "jit._check_methods": {"MATH", "_NOT_FLOATS"},
    "jit._passes._remove_mutation": {"_ACTIVATIONS", "_COMPUTING"},
    "jit._passes._small_passes": {"_DROPOUTS"},
    "jit._torchscript_upgrades": {"_THEN"},
}
# Words of Python, which mean no operator in a list.
PYTHONS = {name.strip("_") for name in (*dir(operator), *dir(builtins))}
PYTHONS |= {"bfloat16", "byte", "cdouble", "cfloat", "chalf", "char", "double", "half", "long", "short"}
RECORDS = {record["name"] for record in _C._operator_records()} - PYTHONS
FEWEST = 4  # names that make a list


def record_of(text):
    """The record that ``aten::add_.Tensor(Tensor self, …)`` and the like name, or None."""
    name = text.partition("(")[0].rpartition("::")[2].partition(".")[0]
    return next((n for n in (name, name.rstrip("_")) if n in RECORDS), None)


def words(node):
    """The texts and attributes (``torch.ops.aten.add.default``) of a literal that lists things."""
    if isinstance(node, (ast.Set, ast.Tuple, ast.List)):
        entries = node.elts
    elif isinstance(node, ast.Dict):
        entries = [key for key in node.keys if key is not None]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "split":
        source = node.func.value
        return source.value.split() if isinstance(source, ast.Constant) else []
    else:
        return []
    return [word for entry in entries for word in [word_of(entry)] if word]


def word_of(node):
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Attribute):
        overload = isinstance(node.value, ast.Attribute) and node.attr in ("default", "Tensor", "Scalar")
        return node.value.attr if overload else node.attr
    return None


def owner(around):
    """What a list is called: the name that it is assigned to, its function, or the statement."""
    for node in around:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            return ast.unparse(target.elts[0] if isinstance(target, ast.Tuple) else target)
        if isinstance(node, ast.FunctionDef):
            return node.name
        if isinstance(node, ast.For):
            return "for"
    return "statement"


def lists_in(node, around=()):
    found = words(node)
    records = {record for record in map(record_of, found) if record}
    if len(records) >= FEWEST and len(records) * 2 >= len(found) and (name := owner(around)) != "__all__":
        yield name
    for child in ast.iter_child_nodes(node):
        yield from lists_in(child, (*around, node))


@pytest.mark.parametrize(
    "text",
    [
        "listed = {'relu', 'erf', 'gelu', 'silu'}",
        "listed: tuple = (aten.relu.default, aten.erf.default, aten.gelu_, torch.silu, 'else')",
        "listed = frozenset('relu erf_ gelu aten::silu'.split())",
        "def listed(): return {'relu': 1, 'erf(Tensor self) -> Tensor': 2, 'gelu.out': 3, 'silu': 4}",
    ],
)
def test_lists_are_found(text):
    assert list(lists_in(ast.parse(text))) == ["listed"]


def test_no_other_list_of_operators_in_python():
    found = {}
    for path in sorted((ROOT / "rushlight").rglob("*.py")):
        names = set(lists_in(ast.parse(path.read_text())))
        if names:
            parts = path.relative_to(ROOT / "rushlight").with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = names
    known = {module: set(lists) | OTHER_LISTS.get(module, set()) for module, lists in LISTS.items()}
    known = {**OTHER_LISTS, **known}
    for module in VALUES:
        known[module] = known.get(module, set()) | set(VALUES[module])
    more = {module: names - known.get(module, set()) for module, names in found.items()}
    assert {module: names for module, names in more.items() if names} == {}, (
        "what is true of an operator is a trait on its record, or follows from its family and schema"
    )
    gone = {module: names - found.get(module, set()) for module, names in OTHER_LISTS.items()}
    assert {module: names for module, names in gone.items() if names} == {}


def test_no_list_of_operators_in_cpp():
    """C++ names operators by their typed handles, so that a stale name does not compile."""
    found = []
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix not in (".cpp", ".h") or path.name.startswith("printed"):
            continue
        for listed in re.findall(r"\{([^{};]*)\}", path.read_text()):
            texts = re.findall(r'"([\w:.]+)"', listed)
            records = {record for record in map(record_of, texts) if record}
            if len(records) >= FEWEST and len(records) * 2 >= len(texts):
                found.append((path.relative_to(ROOT).as_posix(), sorted(records)))
    assert found == []


def is_name_of_operator(node, variables):
    if isinstance(node, ast.Name):
        return node.id in variables
    return isinstance(node, ast.Attribute) and (
        node.attr == "_opname" or ast.unparse(node) in ("call.name", "call.base")
    )


def variables_of_names(function):
    """Variables of a function that hold an operator's name: ``name, overload = func._opname, ...``."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            both = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            for t, v in zip(target.elts, value.elts) if both else [(target, value)]:
                if isinstance(t, ast.Name) and isinstance(v, ast.Attribute) and v.attr == "_opname":
                    yield t.id


def compared(tree):
    """Texts that an operator's name is compared with."""
    functions = [n for n in ast.walk(tree) if isinstance(n, (ast.FunctionDef, ast.Module))]
    for function in functions:
        variables = set(variables_of_names(function)) if isinstance(function, ast.FunctionDef) else set()
        for node in ast.walk(function):
            if isinstance(node, ast.Compare) and is_name_of_operator(node.left, variables):
                for side in node.comparators:
                    yield from (n.value for n in ast.walk(side) if isinstance(n, ast.Constant))


def test_names_that_calls_are_compared_with_are_records():
    """Of operators that DTensor shares, and of calls in texts: a record's name, or a word of texts."""
    known = {record["name"] for record in _C._operator_records()} | {"constant", "sym::size"}
    texts = set()
    for path in (ROOT / "rushlight").rglob("*.py"):
        texts |= {text for text in compared(ast.parse(path.read_text())) if isinstance(text, str)}
    unknown = {text for text in texts if text not in known and not is_operator(text)}
    assert unknown == set() and len(texts) > 30
