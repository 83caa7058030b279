"""Names of operators in lists of Python code: each is an operator, so that no list speaks of what is gone.

A list is of one kind: of operators in `torch.ops.aten`, of functions and methods as programs call them, of
formulas, or of operators of PyTorch that other people's files name.
"""

import importlib

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
    "_inductor._fuse": {"_PLAIN": is_operator, "_TURNED": is_operator},
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
        "_OVERLOADS": is_operator,
        "_NAMES": is_operator,
        "_ARITHMETIC_TAKES_NUMBERS": is_operator,
        "_NUMBER_OVERLOADS": is_operator,
        "_FIRST_IS_SELF": is_pytorchs,
        "_BY_NAME": is_operator,
        "_OURS_ALONE": is_operator,
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
        "_PIECES": is_called,
        "_OTHERS": is_called,
    },
    "nn.parameter": {"UninitializedTensorMixin._allowed_methods": is_called},
    "export._small_activations": {"_BOUNDS": is_operator},
    "export._small_weights": {"_TABLES": is_operator},
    "onnx._rules": {"RULES": is_operator},
    "overrides": {"_IGNORED": is_called, "_IGNORED_MEMBERS": is_called},
}
# Dicts whose values are names, too.
VALUES = {
    "_inductor._fuse": {"_PLAIN": is_formula, "_TURNED": is_formula},
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
