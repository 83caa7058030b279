"""Versions of an operator's schema: which calls still fit, compared with PyTorch."""

import itertools

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

VERSIONS = [
    "any(Tensor self, int a, int b=1) -> Tensor",
    "any(Tensor self, int a) -> Tensor",
    "any(Tensor self, int a, int b=2) -> Tensor",
    "any(Tensor self, int a, int c=1) -> Tensor",
    "any(Tensor self, int a, int b) -> Tensor",
    "any(Tensor self, int a, int b=1, int[2] c=1) -> Tensor",
    "any(Tensor self, int a, int b=1, float? c=None) -> Tensor",
    "any(Tensor self, int? a, int b=1) -> Tensor",
    "any(Tensor self, *, int a, int b=1) -> Tensor",
    "any(Tensor self, int a, int b=1) -> Tensor?",
    "any(Tensor self, int a, int b=1) -> (Tensor, Tensor)",
    "any(Tensor(a!) self, int a, int b=1) -> Tensor(a!)",
    "any(Tensor self, *, int a, int b=1, Tensor(a!) out) -> Tensor(a!)",
    "any(Tensor self, *, int a, int b=1, int c=1, Tensor(a!) out) -> Tensor(a!)",
    "any(Tensor self, *, int a, int b=1, Tensor(a!) out, Tensor(b!) more) -> (Tensor(a!), Tensor(b!))",
    "any.over(Tensor self, int a, int b=1) -> Tensor",
    "other(Tensor self, int a, int b=1) -> Tensor",
]


@pytest.fixture
def oracle():
    if is_aliased():
        pytest.skip("compares with PyTorch")
    return pytest.importorskip("torch")


def test_versions_fit_each_other_as_pytorchs(oracle):
    ours, theirs = ([t._C.parse_schema(text) for text in VERSIONS] for t in (torch, oracle))
    compatible = 0
    for (a, b), (c, d) in zip(itertools.product(ours, ours), itertools.product(theirs, theirs)):
        assert a.is_backward_compatible_with(b) == c.is_backward_compatible_with(d), (a, b)
        fits, why = a.check_forward_compatible_with(b)
        wanted, reason = c.check_forward_compatible_with(d)
        assert fits == wanted, (a, b)
        assert why == reason, (a, b)
        compatible += fits and a.is_backward_compatible_with(b)
    assert compatible > len(VERSIONS)


def test_decompose_gives_what_an_operator_is_made_of():
    x, weight = torch.randn(2, 3), torch.randn(5, 3)
    linear = torch.ops.aten.linear.default
    assert torch.equal(linear.decompose(x, weight), x @ weight.T)
    assert torch.ops.aten.mm.default.decompose(x, weight.T) is NotImplemented


def test_results_that_are_given_are_refused_where_the_schema_has_none():
    x, out = torch.ones(2), torch.empty(2)
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'out'"):
        torch.ops.aten.add.Tensor(x, x, out=out)
    assert torch.ops.aten.add.out(x, x, out=out) is out and out.tolist() == [2, 2]
    library = torch.library.Library("schema_versions", "DEF")
    library.define("into(Tensor x, *, Tensor(a!) out) -> ()")
    library.impl("into", lambda x, *, out: [out.copy_(x)].clear(), "CPU")
    library.define("plain(Tensor x) -> Tensor")
    torch.ops.schema_versions.into.default(x, out=out)
    assert out.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'out'"):
        torch.ops.schema_versions.plain.default(x, out=out)


def test_every_number_stands_where_the_overload_for_tensors_has_a_tensor():
    from rushlight import _C
    from rushlight._operators.schema import parse_schema

    checked = 0
    for record in _C._operator_records():
        if record["with_number"] is None:
            continue
        text, place = record["with_number"]
        mine, before = parse_schema(text).arguments, parse_schema(record["schema"]).arguments
        assert str(mine[place].type) == "number" or mine[place].type.annotation_str == "number"
        assert str(before[place].type) == "Tensor" and mine[place].name == before[place].name
        assert [str(a) for i, a in enumerate(mine) if i != place] == [
            str(a) for i, a in enumerate(before) if i != place
        ]
        checked += 1
    assert checked > 100


def test_overloads_for_numbers_have_pytorchs_names(oracle):
    from rushlight import _ops

    wrong, seen = [], 0
    for space, names in _ops._built_in().items():
        for name, overloads in names.items():
            packet = getattr(getattr(oracle.ops, space), name, None)
            for overload, entry in overloads.items():
                if entry.second_name and packet is not None:
                    seen += 1
                    if overload not in packet.overloads():
                        wrong.append(f"{name}.{overload}")
    assert not wrong and seen > 30
    assert torch.ops.aten.pow_.Tensor(torch.tensor([2.0]), torch.tensor([3.0])).item() == 8
    assert torch.ops.aten.bitwise_left_shift_.Tensor_Scalar(torch.tensor([3]), 2).item() == 12


def test_graphs_name_what_took_a_number_as_pytorchs(oracle):
    found = []
    for t in (torch, oracle):
        make_fx = __import__(f"{t.__name__}.fx.experimental.proxy_tensor", fromlist=["make_fx"]).make_fx

        def program(x, n):
            return (
                x.xlogy(2.0),
                n << 3,
                n.bitwise_right_shift(1),
                x.pow(3),
                x.clone().pow_(2),
                x.float_power(2),
            )

        graph = make_fx(program)(t.ones(2), t.tensor([1, 2])).graph
        found.append([str(node.target) for node in graph.nodes if node.op == "call_function"])
    assert {"aten.xlogy.Scalar_Other", "aten.bitwise_right_shift.Tensor_Scalar"} <= set(found[0])
    assert {"aten.pow.Tensor_Scalar", "aten.pow_.Scalar"} <= set(found[0]) & set(found[1])
