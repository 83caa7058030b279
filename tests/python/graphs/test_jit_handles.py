"""What programs ask of PyTorch's C++ module behind a script, `_c`, and of scripts' methods."""

import enum
import io

import pytest

import rushlight as torch
from rushlight import nn


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.count = nn.Linear(3, 3), 3

    @torch.jit.export
    def counted(self) -> int:
        return self.count

    def forward(self, x):
        return self.linear(self.linear(x))


class Second(nn.Module):
    @torch.jit.ignore
    def same(self, x):
        return x

    def forward(self, x):
        return x * 2


def test_modules_become_other_ones():
    first, second = torch.jit.script(First()), torch.jit.script(Second())
    second._reconstruct(first._c)
    x = torch.rand(3)
    assert torch.equal(first(x), second(x)) and second.counted() == 3 and second.same(x) is x
    second._c = torch.jit.script(nn.ReLU())._c
    assert torch.equal(second(-x), torch.zeros(3))
    frozen = torch.jit.script(First().eval())
    frozen._c = torch._C._freeze_module(frozen._c)
    assert torch.equal(frozen(x), frozen(x)) and not list(frozen.parameters())


def test_handles_show_and_save_their_modules():
    module = torch.jit.script(First())
    assert str(module._c) == f"ScriptObject <{module._c.qualified_name}>"
    file = io.BytesIO()
    torch.jit.save(module._c, file)
    file.seek(0)
    loaded = torch.jit.load(file)
    assert loaded.forward.code == module.forward.code and loaded.counted.schema.arguments[0].name == "self"


def test_frozen_handles_have_what_was_kept():
    frozen = torch._C._freeze_module(torch.jit.script(nn.Linear(2, 2).eval())._c)
    assert not frozen.hasattr("weight") and not frozen.hasattr("training")
    kept = torch._C._freeze_module(torch.jit.script(First().eval())._c, preservedAttrs=["count"])
    assert kept.hasattr("count") and not kept.hasattr("linear")


def test_schemas_of_methods_have_the_object():
    module = torch.jit.script(First())
    assert str(module.counted.schema) == f"counted({module._c.qualified_name} self) -> int"
    assert [a.name for a in module.forward.schema.arguments] == ["self", "x"]
    assert str(module._c._get_method("forward").schema) == str(module.forward.schema)


def test_modules_that_share_no_type():
    from rushlight.jit import _recursive

    assert _recursive.infer_methods_to_compile(First()) == ["forward", "counted"]
    alone = [
        _recursive.create_script_module(First(), _recursive.infer_methods_to_compile, share_types=False)
        for _ in range(2)
    ]
    together = [_recursive.create_script_module(First(), None) for _ in range(2)]
    assert alone[0]._c._type() != alone[1]._c._type() and together[0]._c._type() == together[1]._c._type()
    assert alone[0].linear._c._type() != alone[1].linear._c._type() and alone[0](torch.ones(3)).shape == (3,)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def test_graphs_of_constants_and_truth_values():
    def value() -> int:
        return Colour.RED.value

    def members(x: Colour):
        found = [0]
        for e in Colour:
            if e != x:
                found.append(e.value)
        return found

    def truth(x: bool, y: bool):
        return x is True, y is not x, x is None

    assert "prim::Constant[value=1]()\n  return" in str(torch.jit.script(value).graph)
    assert "Colour.RED, __torch__" in str(torch.jit.script(members).graph)
    graph = torch.jit.script(truth).graph
    kinds = [node.kind() for node in graph.nodes() if node.kind().startswith("aten")]
    assert kinds[:2] == ["aten::eq", "aten::ne"]
    assert torch.jit.script(members)(Colour.RED) == [0, 2]


def test_texts_of_definitions_and_documents():
    class Described(torch.jit.ScriptModule):
        @torch.jit.script_method
        def forward(self, x):
            """What it does."""
            return x

    made = Described()
    made.define("def twice(self, x):\n    return self.forward(self.forward(x))\n")
    assert made.forward.__doc__ == "What it does." and "twice" in made.twice.code
    assert torch._C.TupleType([]).annotation_str == "Tuple[()]"
    with pytest.raises(RuntimeError, match="Expected to find"):
        torch.testing.FileCheck().run(checks_file="# CHECK: 22", test_file="23")
