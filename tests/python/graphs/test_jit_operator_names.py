"""`torch.jit.export_opnames`: the operators that a script uses, overloads included."""

import pytest

import rushlight
from rushlight import nn
from rushlight._command.names import is_aliased


def made(torch):
    class Part(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())

        def scaled(self, x):
            return 2 / x - x

        def forward(self, x):
            return self.scaled(self.layers(x)) + 1

    def helper(x, count: int):
        return x.view(count, -1) * 0.5

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x, count: int, numbers: list[int], table: dict[str, int]):
            y = helper(self.part(x), count)
            numbers.append(count * 2)
            if y.dim() > 2 or len(numbers) > table["a"]:
                y = torch.cat([y, y])
            y.add_(1)
            return y.mean(dim=0) + y.sum(), numbers[0] + count, y.size(0)

    return Whole()


def test_names_are_those_of_pytorch():
    if is_aliased():
        pytest.skip("PyTorch is the oracle")
    torch = pytest.importorskip("torch")
    expected = torch.jit.export_opnames(torch.jit.script(made(torch)))
    found = rushlight.jit.export_opnames(rushlight.jit.script(made(rushlight)))
    more = set(found) - set(expected)  # what PyTorch's interpreter computes itself
    assert set(expected) <= set(found) and more <= {"aten::__getitem__.Dict_str", "aten::dim"}
    assert found == sorted(found)


class WithPlainMethods(rushlight.jit.ScriptModule):
    def doubled(self, x: rushlight.Tensor) -> rushlight.Tensor:
        return self.added(x, x)

    def added(self, x: rushlight.Tensor, y: rushlight.Tensor) -> rushlight.Tensor:
        return x + y

    @rushlight.jit.script_method
    def forward(self, x):
        return self.doubled(x)


def test_methods_of_script_modules_and_functions():
    @rushlight.jit.script
    def function(x, y: float):
        return y * x

    assert rushlight.jit.export_opnames(function) == ["aten::mul.Scalar"]
    program = WithPlainMethods()
    assert rushlight.jit.export_opnames(program) == ["aten::add.Tensor"]
    assert program(rushlight.ones(1)).item() == 2 and "added" in program._method_names()
    assert rushlight.jit.export_opnames(rushlight.jit.script(nn.Conv2d(1, 1, 1))) == ["aten::conv2d"]
