"""How the arguments and the state of an exported program are named."""

import dataclasses
import io

import pytest

import rushlight as torch
from rushlight.export import Dim, export


def test_shapes_in_the_order_of_the_signature_reach_keywords_given_in_another():
    class Program(torch.nn.Module):
        def forward(self, a, b, *, first, second):
            return a.sum() + b.sum() + 2 * first.sum() - second.sum()

    args, kwargs = (torch.ones(4), torch.ones(4)), {"second": torch.ones(4), "first": torch.ones(4)}
    shapes = (None, {0: Dim("n")}, {0: Dim("m")}, None)
    exported = export(Program(), args, kwargs, dynamic_shapes=shapes)
    args, kwargs = (torch.ones(4), torch.ones(7)), {"second": torch.ones(4), "first": torch.ones(9)}
    assert exported.module()(*args, **kwargs) == Program()(*args, **kwargs)


def test_state_has_its_own_names_whatever_hooks_call_it():
    class Renamed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 3)
            self.register_buffer("scale", torch.tensor(3.0))
            self.register_buffer("hidden", torch.tensor(5.0), persistent=False)
            self._register_state_dict_hook(self._rename)

        @staticmethod
        def _rename(module, state, prefix, metadata):
            for name in list(state):
                state[f"renamed.{name}"] = state.pop(name)

        def forward(self, x):
            return self.layer(x) * self.scale + self.hidden

    module, x = Renamed(), torch.ones(1, 2)
    exported = export(module, (x,))
    assert list(exported.state_dict) == ["layer.weight", "layer.bias", "scale"]
    assert torch.equal(exported.module()(x), module(x))


def test_a_check_may_compare_data_with_a_size_that_changes():
    class Program(torch.nn.Module):
        def forward(self, count, y):
            n = count.item()
            torch._check_is_size(n)
            torch._check(n <= y.size(0))
            return y[:n]

    shapes = None, {0: Dim("t")}
    exported = export(Program(), (torch.tensor(5), torch.ones(10)), dynamic_shapes=shapes)
    for count, size in ((5, 10), (6, 13), (3, 3)):
        inputs = torch.tensor(count), torch.arange(float(size))
        assert torch.equal(exported.module()(*inputs), Program()(*inputs))
    assert "expression u0 <= t on node" in exported.graph_module.code


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: torch.Tensor


def test_a_registered_dataclass_is_an_input():
    class Program(torch.nn.Module):
        def forward(self, pair):
            return pair.first @ pair.second

    torch.export.register_dataclass(Pair, serialized_type_name="test_export_arguments.Pair")
    rows = Dim("rows")
    example = Pair(torch.randn(2, 3), torch.randn(3, 4))
    exported = export(Program(), (example,), dynamic_shapes=([{0: rows}, None],))
    given = Pair(torch.randn(5, 3), torch.randn(3, 4))
    assert torch.equal(exported.module()(given), Program()(given))


class Repeats(torch.nn.Module):
    def forward(self, x, count: int):
        return x.repeat(count, 1), count + 1


@pytest.mark.parametrize("change", ["as exported", "decomposed", "saved"])
def test_an_integer_that_may_change_is_an_input(change):
    shapes = {"x": None, "count": Dim.DYNAMIC}
    exported = export(Repeats(), (torch.randn(2, 4), 3), dynamic_shapes=shapes)
    if change == "decomposed":
        exported = exported.run_decompositions()
    elif change == "saved":
        file = io.BytesIO()
        torch.export.save(exported, file)
        file.seek(0)
        exported = torch.export.load(file)
    x = torch.randn(2, 4)
    for count in (5, 2, 1):
        result, more = exported.module()(x, count)
        assert torch.equal(result, x.repeat(count, 1)) and more == count + 1
    if change != "saved":
        with pytest.raises(AssertionError, match="Guard failed: count is an int, got 2.5"):
            exported.module()(x, 2.5)


def test_an_integer_of_which_nothing_is_said_stays_as_it_is():
    exported = export(Repeats(), (torch.randn(2, 4), 3))
    with pytest.raises(AssertionError, match="Guard failed: count == 3, got 5"):
        exported.module()(torch.randn(2, 4), 5)


def test_a_quotient_of_a_sum_of_sizes():
    class Program(torch.nn.Module):
        def forward(self, x, y):
            both = torch.cat([x, y])
            return both[: both.size(0) // 2], torch.zeros((2 * x.size(0) + y.size(0) + 1) // 3)

    shapes = {0: Dim("a", min=1)}, {0: Dim("b", min=1)}
    exported = export(Program(), (torch.randn(6, 2), torch.randn(4, 2)), dynamic_shapes=shapes)
    for sizes in ((5, 3), (5, 4), (4, 9), (1, 1), (12, 7), (11, 11)):
        given = [torch.randn(size, 2) for size in sizes]
        for result, expected in zip(exported.module()(*given), Program()(*given)):
            assert torch.equal(result, expected)


def test_state_is_parameters_and_then_buffers():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(3)
            self.register_buffer("shift", torch.ones(3))
            self.layer = torch.nn.Linear(3, 3)
            self.scale = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            return self.layer(self.norm(x)) * self.scale + self.shift

    program = torch.export.export(Model().eval(), (torch.ones(2, 3),))
    parameters = ["scale", "norm.weight", "norm.bias", "layer.weight", "layer.bias"]
    buffers = ["shift", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert list(program.state_dict) == parameters + buffers
