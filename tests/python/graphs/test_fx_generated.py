"""Generated modules: what copies and files keep, where their lines come from, scripts among their parts."""

import copy
import io
import os

import pytest

import rushlight
from rushlight import fx, nn


class Sum(nn.Module):
    def forward(self, a, b):
        a = rushlight.sin(a)
        b = rushlight.cos(b)
        return a + b


class Choosing(nn.Module):
    def forward(self, x):
        if bool(x.sum() > 0):
            return x * 2
        return x

    @rushlight.jit.export
    def plus(self, x: rushlight.Tensor, offset: int = 3):
        return x + offset


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = rushlight.jit.script(Choosing())

    def forward(self, x):
        return self.part(x) + self.part.plus(x, offset=2)


def with_unused_parts():
    traced = fx.symbolic_trace(Sum())
    traced.add_submodule("unused", nn.Linear(1, 1))
    traced.register_buffer("level", rushlight.ones(1))
    traced.register_parameter("weight", nn.Parameter(rushlight.ones(2)))
    return traced


def test_files_and_copies_keep_what_no_node_uses():
    traced = with_unused_parts()
    file = io.BytesIO()
    rushlight.save(traced, file)
    file.seek(0)
    for other in (rushlight.load(file, weights_only=False), copy.deepcopy(traced)):
        assert set(other.state_dict()) == {"level", "weight", "unused.weight", "unused.bias"}
        assert isinstance(other.unused, nn.Linear) and isinstance(other.weight, nn.Parameter)


def test_a_copy_of_a_module_that_its_meta_names():
    traced = fx.symbolic_trace(Sum())
    traced.meta["self"] = traced
    made = copy.deepcopy(traced)
    assert made.meta["self"] is made and made is not traced


def test_generated_code_names_the_file_of_the_program():
    traced = fx.symbolic_trace(Sum())
    assert os.path.basename(__file__) in traced.forward.__code__.co_filename
    assert traced.forward.__qualname__ == "Sum.forward"


def test_lines_of_nodes_move_with_what_is_inserted():
    traced = fx.symbolic_trace(Sum())
    assert traced._lineno_map.items() >= {1: 2, 2: 3, 3: 4, 4: 5}.items()
    traced.graph.on_generate_code(lambda _: lambda lines: ["pass\n", *lines])
    traced.recompile()
    assert traced._lineno_map.items() >= {2: 2, 3: 3, 4: 4, 5: 5}.items()


def test_calls_of_scripts_stay_calls_with_their_choices():
    traced = fx.symbolic_trace(Holder())
    assert [n.target for n in traced.graph.nodes if n.op == "call_method"] == ["forward", "plus"]
    assert "forward" not in vars(traced.part)
    for x in (rushlight.ones(2), -rushlight.ones(2)):
        assert rushlight.equal(traced(x), Holder()(x))


def test_assertions_in_scripts_are_errors_of_scripts():
    @rushlight.jit.script
    def checked(x):
        rushlight._assert(x.shape[0] > 4, "too few")
        return x

    with pytest.raises(rushlight.jit.Error, match="too few"):
        checked(rushlight.ones(1))
