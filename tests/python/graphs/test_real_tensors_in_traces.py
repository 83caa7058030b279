"""What real tensors beside a trace tell (`fake_tensor_propagate_real_tensors`): branches, but no numbers."""

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight._command.names import is_aliased
from rushlight._functorch import config
from rushlight.export import export
from rushlight.fx.experimental.proxy_tensor import make_fx

PROGRAMS = {
    "number": lambda x: x * x.sum().item(),
    "computed": lambda x: x * (x[0].item() + x[1].item() * 2),
    "with a fraction": lambda x: x * x.float().mean().item(),
    "size": lambda x: torch.zeros(x[0].item()) + 1,
    "size found": lambda x: x[: x.nonzero().shape[0]] * 2,
    "list": lambda x: x + x.tolist()[1],
}
EXAMPLES = [3, 5, 0, 2], [4, 7, 1, 0], [6, 1, 1, 1], [0, 1, 1, 0]


@pytest.fixture(autouse=True)
def propagating():
    with config.patch(fake_tensor_propagate_real_tensors=True):
        yield


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_numbers_stay_those_of_a_run(program):
    made = export(FunctionModule(program), (torch.tensor(EXAMPLES[0]),))
    traced = make_fx(program, tracing_mode="symbolic")(torch.tensor(EXAMPLES[0]))
    for numbers in EXAMPLES:
        x = torch.tensor(numbers)
        assert torch.equal(made.module()(x), program(x))
        assert torch.equal(traced(x), program(x))


BRANCHES = {
    "integer": lambda x: x * 2 if x.sum().item() > 3 else x + 1,
    "tensor": lambda x: x * 2 if x.sum() > 3 else x + 1,
    "truth": lambda x: x * 2 if (x > 2).all() else x + 1,
    "element": lambda x: x * 2 if x[2] else x + 1,
    "with a fraction": lambda x: x * 2 if x[2].float() / 3 else x + 1,
    "sizes": lambda x: x[x > 2] * max(x[x > 2].shape[0], x[x < 2].shape[0]),
    "plain number": lambda x: x + int(x[2]),
    "two": lambda x: (x * 2 if x[0] > x[1] else x + 1) - (1 if x[2] else 3),
}


@pytest.mark.parametrize("program", BRANCHES.values(), ids=BRANCHES)
def test_the_example_decides_branches_and_the_graph_checks_them(program):
    made = export(FunctionModule(program), (torch.tensor(EXAMPLES[0]),)).module()
    traced = make_fx(program, tracing_mode="symbolic")(torch.tensor(EXAMPLES[0]))
    refused = 0
    for numbers in [*EXAMPLES, [5, 5, 0, 5], [2, 1, 4, 4], [3, 3, 3, 3]]:
        x = torch.tensor(numbers)
        for run in (made, traced):
            try:
                assert torch.equal(run(x), program(x))
            except RuntimeError as error:
                assert "Runtime assertion failed for expression" in str(error)
                refused += 1
    assert 0 < refused < 14


def test_real_numbers_and_the_generator_stay_as_they_are():
    x = torch.tensor([1.0, 2.0])
    torch.manual_seed(0)
    export(FunctionModule(lambda x: x + 1 if x.add_(torch.rand(2)).sum() > 1 else x), (x,))
    assert x.tolist() == [1, 2]
    found = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(found, torch.rand(3))


def test_writes_that_a_schema_does_not_tell_are_refused():
    with torch.library._scoped_library("real_tensors", "FRAGMENT") as library:
        library.define("writes(Tensor x, Tensor[] rest) -> Tensor")
        library.impl("writes", lambda x, rest: rest[0].add_(1) + x, "CPU")
        library._register_fake("writes", lambda x, rest: x.clone())
        call = torch.ops.real_tensors.writes
        with pytest.raises(RuntimeError, match="for argument 'rest'"):
            export(FunctionModule(lambda x: call(x, [x.clone()])), (torch.ones(2),))


@pytest.mark.skipif(is_aliased(), reason="needs PyTorch")
@pytest.mark.parametrize("name", ["integer", "tensor", "truth", "element"])
def test_branches_are_those_of_pytorch(name):
    reference = pytest.importorskip("torch")

    class Program(reference.nn.Module):
        def forward(self, x):
            return BRANCHES[name](x)

    import torch._functorch.config as settings

    with settings.patch(fake_tensor_propagate_real_tensors=True):
        program = reference.export.export(Program(), (reference.tensor(EXAMPLES[0]),), strict=False).module()
    made = export(FunctionModule(BRANCHES[name]), (torch.tensor(EXAMPLES[0]),)).module()
    for numbers in EXAMPLES:
        found = []
        for run, tensor in ((program, reference.tensor), (made, torch.tensor)):
            try:
                found.append(run(tensor(numbers)).tolist())
            except RuntimeError as error:
                assert "Runtime assertion failed for expression" in str(error)
                found.append("refused")
        assert found[0] == found[1]
