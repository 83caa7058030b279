"""What a trace refuses or warns of, since the script would be right for the example alone."""

import io
import warnings

import pytest

import rushlight as torch
from rushlight import nn

ONE = torch.ones(2)


def told_of(function, *inputs):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        torch.jit.trace(function, inputs, check_trace=False)
    return [str(w.message) for w in told]


@pytest.mark.parametrize(
    ("example", "words"),
    [
        (2, r"Type 'Tuple\[Tensor, int\]' cannot be traced"),
        (True, "bool"),
        (None, "NoneType"),
        ("a", "str"),
        ((ONE, 3.5), r"Tuple\[Tensor, float\]"),
        ([ONE, None], r"List\[Optional\[Tensor\]\]"),
        ([], "List trace inputs must have elements"),
        ({}, "Dictionary inputs must have entries"),
        ([ONE, (ONE,)], r"consistent element type. Found Tensor and Tuple\[Tensor\]"),
        ({"a": ONE, 1: ONE}, "consistent type. Found str and int"),
        (slice(0, 1), "got value of type slice"),
        (nn.ReLU(), "Cannot infer concrete type of torch.nn.Module"),
    ],
)
def test_examples_that_are_no_tensors_are_refused(example, words):
    with pytest.raises(RuntimeError, match=words):
        torch.jit.trace(lambda x, y: x + 1, (ONE, example))


def test_numbers_by_name_are_refused():
    with pytest.raises(RuntimeError, match="inputs to traced functions. Got int"):
        torch.jit.trace(lambda x, y: x + y, example_kwarg_inputs={"x": ONE, "y": 2})


def test_loops_over_tensors_are_warned_of():
    def loop(x):
        total = x[0]
        for row in x:
            total = total + row
        return total

    def unpacked(x):
        first, second = x
        return first + second

    for function in (loop, unpacked, lambda x: sum(x), lambda x: torch.stack(list(x))):
        assert any("Iterating over a tensor" in words for words in told_of(function, torch.ones(2, 2)))
    assert not told_of(lambda x: torch.stack(x.unbind(0)), torch.ones(2, 2))


def test_values_that_leave_the_trace_and_come_back_are_found():
    def hidden(x):
        return x + torch.from_numpy(x.numpy() * 2)

    with pytest.raises(torch.jit.TracingCheckError, match="Tensor-valued Constant nodes differed"):
        torch.jit.trace(hidden, torch.rand(3), check_inputs=[(torch.rand(3),)])


def test_a_traced_module_checks_its_arguments_as_a_script_does():
    class Chosen(nn.Module):
        def forward(self, table):
            return table["x"]

    traced = torch.jit.trace(Chosen(), ({"x": ONE},))
    assert torch.equal(traced({"x": ONE + 1, "y": ONE}), ONE + 1)
    with pytest.raises(RuntimeError, match="The following operation failed in the TorchScript interpreter"):
        traced({"y": ONE})
    with pytest.raises(RuntimeError, match=r"Expected a value of type 'Dict\[str, Tensor\]'"):
        traced(1)


class Exporting(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset = 3

    @torch.jit.export
    def moved(self, x):
        return x + self.offset

    def forward(self, x):
        return x * 2


def test_exported_methods_are_scripted_in_a_trace():
    traced = torch.jit.trace(nn.Sequential(Exporting()), ONE)
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for made in (traced, torch.jit.load(file)):
        assert torch.equal(made(ONE), ONE * 2)
        part = made.get_submodule("0")
        assert torch.equal(part.moved(ONE), ONE + 3)
        assert "moved" in part._c._method_names()


class WithState(Exporting):
    @torch.jit.export
    def __getstate__(self):
        return (self.offset, self.training)

    @torch.jit.export
    def __setstate__(self, state):
        self.offset = state[0]
        self.training = state[1]


def test_setstate_takes_what_getstate_gives():
    for made in (torch.jit.trace(WithState(), ONE), torch.jit.script(WithState())):
        file = io.BytesIO()
        torch.jit.save(made, file)
        file.seek(0)
        for one in (made, torch.jit.load(file)):
            assert {"__getstate__", "__setstate__"} <= set(one._c._method_names())
            assert torch.equal(one(ONE), ONE * 2)
