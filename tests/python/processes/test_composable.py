"""What changes modules in place: checkpointing, and what such functions keep to."""

import copy

import pytest

import rushlight as torch
from rushlight.distributed._composable import _get_registry, checkpoint, contract


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)
        self.runs = 0

    def forward(self, x, *, scale=1.0):
        self.runs += 1
        return torch.nn.functional.dropout(self.layer(x).sin(), 0.5, self.training) * scale


def test_a_module_checkpointed_in_place():
    plain = Scaled()
    module = checkpoint(copy.deepcopy(plain))
    assert type(module) is Scaled and list(module.state_dict()) == list(plain.state_dict())
    x = torch.rand(3, 4)
    gradients = []
    for used in (plain, module, copy.deepcopy(module)):
        torch.manual_seed(1)
        used.zero_grad()
        used.runs = 0
        used(x, scale=2.0).sum().backward()
        gradients.append((used.layer.weight.grad, used.runs))
    assert [runs for _, runs in gradients] == [1, 2, 2]  # computed once more in the backward pass
    assert torch.equal(gradients[0][0], gradients[1][0]) and torch.equal(gradients[0][0], gradients[2][0])
    with pytest.raises(AssertionError, match="already been applied"):
        checkpoint(module)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: colour"):
        checkpoint(Scaled(), colour=1)
    with pytest.raises(NotImplementedError, match="use_reentrant=True"):
        checkpoint(Scaled(), use_reentrant=True)


def test_what_a_function_keeps_for_modules():
    @contract()
    def mark(modules):
        mark.state(modules[0]).marked = True
        return modules

    @contract()
    def rename(module):
        return torch.nn.Sequential(module)

    a, b, c = (torch.nn.Linear(2, 2) for _ in range(3))
    mark([a, b])
    assert mark.state(a) is mark.state(b) and mark.state(b).marked and mark.state(c) is None
    assert list(_get_registry(b)) == ["mark"] and _get_registry(c) is None
    with pytest.raises(RuntimeError, match="Checking parameters: .* cannot modify FQNs"):
        rename(c)
