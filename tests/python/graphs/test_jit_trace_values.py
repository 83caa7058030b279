"""What `torch.jit.trace` keeps of a run: sizes, which are followed, and constants, of which it warns."""

import io
import math
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils._pytree import tree_leaves


def test_arithmetic_of_sizes_is_followed_beyond_integers():
    def halves(x):
        n = x.shape[0]
        return (
            x.reshape(math.floor(n / 2), -1),
            x * (n / 2),
            x.new_zeros(math.ceil(n / 4)),
            x * n**-0.5,
            x.numel(),
        )

    traced = torch.jit.trace(halves, torch.ones(4))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for program in (traced, torch.jit.load(file)):
        for got, wanted in zip(program(torch.ones(6)), halves(torch.ones(6)), strict=True):
            torch.testing.assert_close(got, torch.as_tensor(wanted))


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (lambda x: x + 1 if x.shape[0] == 3 else x, "Converting a tensor to a Python boolean"),
        (lambda x: x + 1 if x.shape[0] else x, "Converting a tensor to a Python boolean"),
        (lambda x: torch.zeros(int(x.shape[0] * 0.5)), "Converting a tensor to a Python integer"),
        (lambda x: x * float(x.shape[0]), "Converting a tensor to a Python float"),
        (lambda x: x * math.sqrt(x.size(0)), "Converting a tensor to a Python float"),
        (lambda x: x + len(x), "Using len to get tensor shape"),
        (lambda x: [x, x + 1], "Encountering a list at the output"),
    ],
)
def test_numbers_that_a_trace_keeps_are_warned_of_where_they_are_taken(program, what):
    with pytest.warns(torch.jit.TracerWarning, match=what) as told:
        torch.jit.trace(program, torch.ones(3))
    if what.startswith("Converting"):
        assert {warning.filename for warning in told} == {__file__}


def test_layers_check_sizes_without_warnings():
    model = nn.Sequential(nn.InstanceNorm1d(3), nn.TransformerEncoderLayer(4, 2, 8, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(model, torch.ones(2, 3, 4))
    assert "instance_norm(" in traced.code


def test_one_tensor_given_twice_is_two_inputs():
    x = torch.randn(2, requires_grad=True)
    traced = torch.jit.trace(lambda a, b: a - b, (x, x))
    assert traced(torch.ones(1), torch.zeros(1)).item() == 1
    table = {"x": x}
    traced = torch.jit.trace(lambda a, b: a["x"] + b["x"] * 2, (table, table))
    assert traced({"x": torch.ones(1)}, {"x": torch.zeros(1)}).item() == 1

    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(1))

        def forward(self, x):
            return x + self.w

    model = Added()
    assert torch.jit.trace(model, model.w)(torch.zeros(1)).item() == 1


def test_gradients_are_not_lost_in_constants():
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad as a constant"):
        torch.jit.trace(lambda x: x * w, torch.ones(2))
    linear = nn.Linear(2, 2)
    traced = torch.jit.trace(linear.forward, torch.ones(1, 2))  # the method of a module is its module
    traced(torch.ones(1, 2)).sum().backward()
    assert linear.weight.grad is not None
    with pytest.raises(AttributeError, match="Please use trace_module"):
        torch.jit.trace(linear.extra_repr, torch.ones(1))


def test_functions_with_constants_are_saved_with_them():
    offset = torch.tensor([5.0])
    traced = torch.jit.trace(lambda x: x + offset, torch.ones(1))

    class Doubling(nn.Module):
        def __init__(self):
            super().__init__()
            self.add = traced

        def forward(self, x):
            return self.add(x) * 2

    for program, wanted in ((traced, 6), (torch.jit.script(Doubling()), 12)):
        file = io.BytesIO()
        torch.jit.save(program, file)
        file.seek(0)
        assert torch.jit.load(file)(torch.ones(1)).item() == wanted


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(3, 4, 2, **options)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, state = self.rnn(packed)
        return *nn.utils.rnn.pad_packed_sequence(out, batch_first=True), state


@pytest.mark.parametrize(
    "model",
    [Recurrent(nn.GRU), Recurrent(nn.RNN, bidirectional=True), Recurrent(nn.LSTM, proj_size=2)],
)
@pytest.mark.filterwarnings("ignore::rushlight.jit.TracerWarning")
def test_packed_sequences_of_other_lengths(model):
    traced = torch.jit.trace(model, (torch.randn(3, 5, 3), torch.tensor([3, 1, 2])))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    given = torch.randn(4, 7, 3), torch.tensor([4, 7, 2, 1])
    expected = tree_leaves(model(*given))
    for program in (traced, torch.jit.load(file)):
        assert all(map(torch.equal, tree_leaves(program(*given)), expected))


def test_writes_may_be_recorded_as_results_of_their_own():
    def counts(x, y):
        x.add_(y)
        x.mul_(2)
        return x + y

    plain = torch.jit.trace(counts, (torch.ones(2), torch.ones(2)))
    forced = torch.jit.trace(counts, (torch.ones(2), torch.ones(2)), _force_outplace=True)
    for traced, left in ((plain, 4), (forced, 1)):
        x = torch.ones(2)
        assert traced(x, torch.ones(2)).tolist() == [5, 5] and x.tolist() == [left, left]
    assert "x.add_(" in plain.code and "x.add_(" not in forced.code

    def through_view(x):
        x.view(-1).add_(1)
        return x

    with pytest.warns(torch.jit.TracerWarning, match="(?s)other live references .* in-place operator add_"):
        torch.jit.trace(through_view, torch.ones(2, 2), _force_outplace=True, check_trace=False)
    with pytest.warns(torch.jit.TracerWarning, match="Output nr 1. of the traced function does not match"):
        torch.jit.trace(through_view, torch.ones(2, 2), _force_outplace=True)
