"""Exported programs that use tensors which no module of theirs holds."""

import io

import pytest

import rushlight as torch
from rushlight import nn

OUTER = nn.Linear(4, 4)
SCALE = nn.Parameter(torch.arange(4.0))
X = torch.arange(12.0).view(3, 4) - 5


class Uses(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.function = function

    def forward(self, x):
        return self.function(self.inner(x))


@pytest.mark.parametrize(
    "function", [lambda x: OUTER(x), lambda x: x * SCALE, lambda x: OUTER(x) * SCALE + SCALE.detach()]
)
def test_parameters_from_outside_are_constants(function):
    """They are parameters, and belong to no module: a program keeps them as attributes."""
    model = Uses(function)
    program = torch.export.export(model, (X,))
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for read in (program, torch.export.load(file)):
        module = read.module()
        assert torch.equal(module(X), model(X))
        assert {name for name, _ in module.named_parameters()} == {"inner.weight", "inner.bias"}
