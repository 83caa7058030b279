"""`rushlight.debug`: the programs of docs/debugging.md, and what they must leave alone."""

import re
import sys
import types
import warnings
from pathlib import Path

import pytest
from page_programs import assert_says, said_by

import rushlight as torch
from rushlight import debug, nn

PAGE = Path(__file__).resolve().parents[3] / "docs/debugging.md"


def test_the_page(monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```)?", PAGE.read_text(), re.S)
    assert len(blocks) == 8
    program = types.ModuleType("debugging")
    monkeypatch.setitem(sys.modules, "debugging", program)
    for code, says in blocks:
        assert_says(says, said_by(code, program), code)


def make_model():
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


class Log(nn.Module):
    def forward(self, x):
        return x.log()


def test_nonfinite_names_the_module_and_the_line():
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 2), Log()))
    with torch.no_grad():
        model[0][0].weight.fill_(-1)
        model[0][0].bias.zero_()
    with pytest.raises(
        FloatingPointError, match=r"log made 2 x NaN .* in module Sequential\.0\.1, .*test_debug"
    ):
        with debug.find_nonfinite():
            model(torch.ones(1, 2))


def test_nonfinite_lets_pass_what_the_program_wrote():
    mask = torch.eye(3, dtype=torch.bool)
    with debug.find_nonfinite():
        torch.randn(3, 3).masked_fill(mask, float("-inf")).softmax(1)
        torch.full((2,), float("nan")) + 1
    with debug.find_nonfinite(inf=False):
        torch.zeros(2).log()
    with pytest.raises(FloatingPointError, match="infinity"), debug.find_nonfinite(nan=False):
        torch.zeros(2).log()


def test_strict_broadcasting_lets_numbers_and_layers_pass():
    model = make_model()
    with debug.strict_broadcasting():
        loss = ((model(torch.randn(5, 3)) * 2 + torch.tensor(1.0)) ** 2).mean()
        loss.backward()
    with pytest.raises(RuntimeError, match=r"mul would broadcast \[2, 3\] and \[3\]"):
        with debug.strict_broadcasting():
            torch.ones(2, 3) * torch.ones(3)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_a_right_training_loop_passes(set_to_none):
    model = make_model()
    optimizer = torch.optim.Adam(model.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with debug.check_training(model, optimizer):
            for _ in range(3):
                optimizer.zero_grad(set_to_none=set_to_none)
                for _ in range(2):  # gradients of two batches add up on purpose
                    nn.CrossEntropyLoss()(model(torch.randn(4, 3)), torch.tensor([0, 1, 1, 0])).backward()
                optimizer.step()
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_training_mistakes():
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.warns(UserWarning) as warned, debug.check_training(model, optimizer):
        optimizer.step()
        model.eval()
        model(torch.randn(1, 3)).sum().backward()
        optimizer.step()
        nn.BCEWithLogitsLoss()(torch.rand(3), torch.ones(3))
        nn.NLLLoss()(torch.ones(1, 3), torch.tensor([1]))
    found = " ".join(str(w.message) for w in warned)
    for words in ("without gradients", "evaluation mode", "sigmoid()", "log_softmax()"):
        assert found.count(words) == 1


def test_unused_parameters_of_a_parameter_itself():
    w = nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2), requires_grad=False)])
    assert debug.unused_parameters(w, w[0]) == []
    assert debug.unused_parameters(w, torch.ones(1)) == ["0"]


def test_who_holds_a_variable_an_attribute_and_a_graph():
    class Keeper:
        pass

    def keep():
        tensor = torch.randn(2, requires_grad=True).exp()
        keeper = Keeper()
        keeper.kept = tensor
        total = tensor.sum()
        return str(debug.who_holds(tensor)), total, keeper

    text = keep()[0]
    assert "variable tensor of keep()" in text
    assert "attribute kept of a Keeper" in text
    assert "the graph of a float32 [] made by SumBackward0" in text


def test_no_leaks():
    model = make_model()
    with debug.find_leaks() as found:
        for _ in range(3):
            model(torch.randn(2, 3)).sum().item()
    assert found.leaks == []


def test_audit_of_a_lazy_model_and_of_integers():
    model = nn.Sequential(nn.LazyLinear(3), nn.BatchNorm1d(3))
    assert debug.audit(model).odd() == []
    assert "buffer" in str(debug.audit(model))
