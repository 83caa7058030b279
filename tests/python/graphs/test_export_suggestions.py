"""Sizes that must change together, and what errors of `export` suggest to ask for instead."""

import dataclasses
import re

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight.export import Dim, export
from rushlight.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes

PROGRAMS = {  # what a program computes, the sizes of its inputs, the names of the dimensions
    "shifted": (lambda x, y: x + y[4:], [(6, 4), (10, 4)], "a b, c d"),
    "three": (lambda x, y, z: x + y + z, [(4, 3), (4, 3), (4, 3)], "a b, c d, e f"),
    "three shifted": (lambda x, y, z: x + y[1:] + z[2:], [(4,), (5,), (6,)], "a, b, c"),
    "constant": (lambda x: x @ x.new_zeros(4, 4), [(3, 4)], "a b"),
    "multiple": (lambda x: x.reshape([-1, 3]), [(15,)], "a"),
    "at most": (lambda x: x.sum() if x.shape[0] <= 6 else x, [(3,)], "a"),
    "several": (
        lambda x, y, z, w: (x + y + z[2:], w @ w.new_zeros(4, 4)), [(4, 4), (4, 4), (6, 4), (8, 4)],
        "a b, c d, e f, g h",
    ),
}  # fmt: skip


def inputs_and_shapes(library, sizes, names):
    names = [one.split() for one in names.split(", ")]
    dims = [{d: library.export.Dim(name) for d, name in enumerate(some)} for some in names]
    return tuple(map(library.zeros, sizes)), tuple(dims)


def refusal(library, program, inputs, shapes):
    class Model(library.nn.Module):
        def forward(self, x, y=None, z=None, w=None):
            return program(*(t for t in (x, y, z, w) if t is not None))

    with pytest.raises(library._dynamo.exc.UserError) as raised:
        library.export.export(Model(), inputs, dynamic_shapes=shapes)
    return raised.value.msg, Model()


def fixes(text):
    return sorted(re.findall(r"^  (\w+ = .*)$", text.partition("Suggested fixes:")[2], re.MULTILINE))


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_suggested_serves(name):
    program, sizes, names = PROGRAMS[name]
    inputs, shapes = inputs_and_shapes(torch, sizes, names)
    text, model = refusal(torch, program, inputs, (*shapes, None, None, None)[: len(shapes)])
    made = export(model, inputs, dynamic_shapes=refine_dynamic_shapes_from_suggested_fixes(text, shapes))
    assert (made.range_constraints != {}) and re.match(r"Constraints violated \([abcdefgh, ]+\)!", text)


@pytest.mark.skipif(is_aliased(), reason="needs PyTorch")
@pytest.mark.parametrize("name", PROGRAMS)
def test_suggestions_are_those_of_pytorch(name):
    import torch._dynamo
    import torch.export

    program, sizes, names = PROGRAMS[name]
    found = [
        fixes(refusal(library, program, *inputs_and_shapes(library, sizes, names))[0])
        for library in (torch, pytest.importorskip("rushlight"))
    ]
    told = [re.sub(r"Dim\('_a'.*\)", "Dim('_a')", fix) for fix in found[0]]  # zero and one are ranges there
    assert told == found[1]


class Sum(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y[: y.shape[0]] + z[2:]


def test_more_than_two_sizes_change_together():
    every = {0: Dim.AUTO, 1: Dim.AUTO}
    made = export(Sum(), (torch.ones(4, 4), torch.ones(4, 4), torch.ones(6, 4)), dynamic_shapes=(every,) * 3)
    given = torch.rand(9, 5), torch.rand(9, 5), torch.rand(11, 5)
    assert torch.equal(made.module()(*given), Sum()(*given))
    with pytest.raises(AssertionError, match="Guard failed"):
        made.module()(*given[:2], torch.rand(10, 5))
    x, y, z = (n.meta["val"].shape for n in made.graph.nodes if n.op == "placeholder")
    assert str(x) == str(y) == "torch.Size([s4, s4_1])" and str(z) == "torch.Size([s4 + 2, s4_1])"
    assert str(made.range_constraints[x[0].node.expr]).startswith("VR[")


def test_one_and_two_are_a_range():
    model = torch.nn.Sequential(torch.nn.Flatten(0, 1), torch.nn.Linear(3, 2))
    made = export(model, (torch.rand(2, 4, 3),), dynamic_shapes=({0: Dim("n", min=1, max=2)},))
    for n in (1, 2):
        x = torch.rand(n, 4, 3)
        assert torch.equal(made.module()(x), model(x))
    with pytest.raises(AssertionError, match="Guard failed"):
        made.module()(torch.rand(3, 4, 3))
    assert str(made.range_constraints) == "{'n': VR[1, 2]}"


def test_a_named_size_takes_others_with_it():
    shapes = {0: Dim("rows", max=64)}, {0: Dim.AUTO}, {0: Dim.AUTO}
    made = export(Sum(), (torch.ones(4, 4), torch.ones(4, 4), torch.ones(6, 4)), dynamic_shapes=shapes)
    assert [n.meta["val"].shape[0].__str__() for n in made.graph.nodes if n.op == "placeholder"] == [
        "rows", "rows", "rows + 2",
    ]  # fmt: skip
    assert made.range_constraints["rows"].upper == 64


def nested(library):
    return ({"k": {"k": [library.zeros(4), library.zeros(4)]}},)


STRUCTURES = {
    "keys of the input": lambda d: {"k": {"k": [d, d]}},
    "too many keys": lambda d: {"x": {"k": [(d,), (d,)]}, "k": None},
    "a dimension for a tensor": lambda d: ({"k": {"k": [d, d]}},),
    "the same by name": lambda d: {"x": {"k": {"k": [d, d]}}},
    "a tuple for a list": lambda d: ({"k": {"k": (d, d)}},),
    "a dimension for a list": lambda d: ({"k": {"k": d}},),
    "too many elements": lambda d: ({"k": {"k": [(d,), (d,), (d,)]}},),
    "another key": lambda d: ({"k": {"K": [(d,), (d,)]}},),
}


@pytest.mark.skipif(is_aliased(), reason="needs PyTorch")
@pytest.mark.parametrize("name", STRUCTURES)
def test_shapes_of_another_structure_are_refused_in_pytorchs_words(name):
    import torch._dynamo
    import torch.export

    told = []
    for library in (pytest.importorskip("rushlight"), torch):

        class Model(library.nn.Module):
            def forward(self, x):
                return x["k"]["k"][0] + x["k"]["k"][1]

        shapes = STRUCTURES[name](library.export.Dim("d"))
        with pytest.raises(library._dynamo.exc.UserError) as raised:
            library.export.export(Model(), nested(library), dynamic_shapes=shapes)
        text = raised.value.msg.partition("\n")[0].partition(" For more information")[0]
        told.append(re.sub(r"<class '[\w.]*Dim'>|Dim\('d'[^)]*\)", "d", text))
    assert told[0] == told[1]


@dataclasses.dataclass
class Inputs:
    first: torch.Tensor
    rest: list


def test_shapes_by_tensor_reach_into_dataclasses():
    torch.export.register_dataclass(Inputs, serialized_type_name="suggestions.Inputs")

    class Model(torch.nn.Module):
        def forward(self, x):
            return x.first + x.rest[0]

    given = Inputs(torch.ones(4), [torch.ones(4)])
    shapes = torch.export.ShapesCollection()
    shapes[given.first] = shapes[given.rest[0]] = (Dim("n", max=10),)
    made = export(Model(), (given,), dynamic_shapes=shapes.dynamic_shapes(Model(), (given,)))
    assert str(made.range_constraints) == "{'n': VR[0, 10]}"
    assert made.module()(Inputs(torch.ones(7), [torch.ones(7)])).shape == (7,)
