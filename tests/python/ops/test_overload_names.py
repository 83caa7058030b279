"""Names of overloads in `torch.ops`, and of what they take, compared with PyTorch's over all operators."""

import pytest

import rushlight
from rushlight import _ops
from rushlight._command.names import is_aliased
from rushlight.utils._python_dispatch import TorchDispatchMode

FUNCTIONAL, INPLACE, OUT = range(3)
# Where given results decide, or where PyTorch has an overload for each that ours is in one.
DECIDED = {"dtype", "layout", "device", "pin_memory", "generator"}


@pytest.fixture(scope="module")
def oracle():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


def overloads(oracle, *forms):
    """(ours, PyTorch's packet) of all forms of built-in operators whose names PyTorch has."""
    for space, names in _ops._built_in().items():
        for name, entries in names.items():
            packet = getattr(getattr(oracle.ops, space), name, None)
            for entry in entries.values():
                if packet is not None and entry.form in forms:
                    yield (
                        getattr(getattr(getattr(rushlight.ops, space), name), entry.overload or "default"),
                        packet,
                    )


@pytest.mark.parametrize("form", [FUNCTIONAL, INPLACE, OUT])
def test_names_are_pytorchs(oracle, form):
    found = list(overloads(oracle, form))
    assert [str(ours) for ours, packet in found if ours._overloadname not in packet.overloads()] == []
    assert len(found) > 150


def test_given_results_have_pytorchs_names(oracle):
    several = 0
    for ours, packet in overloads(oracle, OUT):
        theirs = getattr(packet, ours._overloadname)._schema
        names = [a.name for a in theirs.arguments if a.is_out]
        assert [a.name for a in ours._schema.arguments if a.is_out] == list(ours.out_names) == names, ours
        assert [a.is_out for a in ours._schema.arguments][-len(names) :] == [True] * len(names)
        several += len(names) > 1
    assert several > 30


@pytest.mark.parametrize("form", [INPLACE, OUT])
def test_overloads_take_what_pytorchs_take(oracle, form):
    """A name that is right for other operands would be worse than a wrong one."""
    for ours, packet in overloads(oracle, form):
        theirs = getattr(packet, ours._overloadname)
        a, b = ([x.name for x in o._schema.arguments if x.name not in DECIDED] for o in (ours, theirs))
        assert a == b, ours
        if ours._entry.second_name or str(ours).startswith("aten.linspace."):
            continue
        tensors, theirs = (
            [x.name for x in o._schema.arguments if "Tensor" in str(x.type)] for o in (ours, theirs)
        )
        assert tensors == theirs, ours


def given(dtype=rushlight.float32):
    return rushlight.empty(0, dtype=dtype)


def test_results_are_given_by_name():
    aten, x = rushlight.ops.aten, rushlight.tensor([[3.0, 1.0], [2.0, 5.0]])
    values, indices = given(), given(rushlight.int64)
    result = aten.sort.values(x, 1, values=values, indices=indices)
    assert (
        result[0] is values and values.tolist() == [[1, 3], [2, 5]] and indices.tolist() == [[1, 0], [0, 1]]
    )
    values, indices = given(), given(rushlight.int64)
    aten.max.dim_max(x, 0, max=values, max_values=indices)
    assert values.tolist() == [3, 5] and indices.tolist() == [0, 1]
    assert aten.max.out(x, x + 1, out=given()).tolist() == [[4, 2], [3, 6]]
    assert aten.max.unary_out(x, out=given()).item() == 5
    values = given()
    aten.sort(x, out=(values, given(rushlight.int64)))  # as torch.sort takes them
    assert values.tolist() == [[1, 3], [2, 5]]


def test_modes_see_given_results_by_name():
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    x, values, indices = rushlight.ones(2, 2), rushlight.empty(0), rushlight.empty(0, dtype=rushlight.int64)
    with Mode():
        rushlight.sort(x, 1, out=(values, indices))
        rushlight.eq(x, x, out=rushlight.empty(2, 2))
        rushlight.linalg.eigh(x)
    assert ("aten.sort.values", ["indices", "values"]) in seen
    assert ("aten.eq.Tensor_out", ["out"]) in seen
    assert values.tolist() == [[1, 1], [1, 1]]


def test_functional_forms_return_what_the_others_write():
    aten = rushlight.ops.aten
    assert aten.max.dim_max.functional is aten.max.dim
    assert aten.pow_.Tensor.functional is aten.pow.Tensor_Tensor
    assert aten.all.all_out.functional is aten.all.default
    assert aten.add.Tensor.functional is None


def test_forms_of_the_parser_are_no_operators():
    aten = rushlight.ops.aten
    assert "alpha_first" not in aten.add.overloads() and "method" not in aten.where.overloads()
    with pytest.warns(UserWarning, match="deprecated"):
        assert rushlight.ones(2).add_(2, rushlight.ones(2)).tolist() == [3, 3]
    assert rushlight.ones(2).where(rushlight.tensor([True, False]), 5).tolist() == [1, 5]
