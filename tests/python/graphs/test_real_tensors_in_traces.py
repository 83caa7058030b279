"""Traces with real tensors beside (`fake_tensor_propagate_real_tensors`) hold no number of these."""

import pytest

import rushlight as torch
from rushlight._functorch import config
from rushlight.export import export
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

PROGRAMS = {
    "number": lambda x: x * x.sum().item(),
    "computed": lambda x: x * (x[0].item() + x[1].item() * 2),
    "with a fraction": lambda x: x * x.float().mean().item(),
    "size": lambda x: torch.zeros(x[0].item()) + 1,
    "size found": lambda x: x[: x.nonzero().shape[0]] * 2,
    "list": lambda x: x + x.tolist()[1],
}
EXAMPLES = [3, 5, 0, 2], [4, 7, 1, 0], [6, 1, 1, 1], [0, 1, 1, 0]


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@pytest.fixture(autouse=True)
def propagating():
    with config.patch(fake_tensor_propagate_real_tensors=True):
        yield


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_numbers_stay_those_of_a_run(program):
    made = export(Module(program), (torch.tensor(EXAMPLES[0]),))
    traced = make_fx(program, tracing_mode="symbolic")(torch.tensor(EXAMPLES[0]))
    for numbers in EXAMPLES:
        x = torch.tensor(numbers)
        assert torch.equal(made.module()(x), program(x))
        assert torch.equal(traced(x), program(x))


@pytest.mark.parametrize("truth", [lambda x: x.sum().item() > 3, lambda x: x.sum() > 3])
def test_a_branch_is_refused(truth):
    with pytest.raises(GuardOnDataDependentSymNode, match=r"> 3|== 1"):
        export(Module(lambda x: x * 2 if truth(x) else x + 1), (torch.tensor(EXAMPLES[0]),))
