"""Exports of programs that compute with quotients and roots of sizes."""

import io
import math

import pytest

import rushlight as torch
from rushlight._command.names import is_aliased

PROGRAMS = {
    "root": lambda x: x / math.sqrt(x.shape[0]),
    "power": lambda x: x * (x.shape[0] - 1) ** 0.5,
    "inverse root": lambda x: x * (2 * x.shape[0]) ** -0.5,
    "inverse": lambda x: x.sum() * (1.0 / (x.shape[0] + 1)),
    "quotient": lambda x: x * ((x.shape[0] * 3) / 4),
    "float": lambda x: x * float(x.shape[0]),
    "result": lambda x: (x, x.shape[0] / 5),
}


def export(torch, function):
    """The program over a first dimension that may change."""

    class Program(torch.nn.Module):
        def forward(self, x):
            return function(x)

    return torch.export.export(Program(), (torch.ones(6, 4),), dynamic_shapes=({0: torch.export.Dim("n")},))


def assert_alike(torch, program, function):
    for size in (2, 3, 6, 31):
        x = torch.linspace(-1, 1, 4 * size).view(size, 4)
        found, expected = (run(x) for run in (program.module(), function))
        if isinstance(found, torch.Tensor):
            found, expected = (found,), (expected,)
        for a, b in zip(found, expected):
            assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_have_the_bits_of_eager_at_all_sizes(name):
    exported = export(torch, PROGRAMS[name])
    assert_alike(torch, exported, PROGRAMS[name])
    file = io.BytesIO()
    torch.export.save(exported, file)
    file.seek(0)
    assert_alike(torch, torch.export.load(file), PROGRAMS[name])


def test_pytorch_reads_their_archives():
    oracle = pytest.importorskip("torch")
    if is_aliased():
        pytest.skip("compares with PyTorch")
    for function in PROGRAMS.values():
        file = io.BytesIO()
        torch.export.save(export(torch, function), file)
        file.seek(0)
        assert_alike(oracle, oracle.export.load(file), function)


def test_other_functions_are_refused():
    with pytest.raises(torch._dynamo.exc.UserError, match="in `mul` from n otherwise than by"):
        export(torch, lambda x: x * math.log(x.shape[0]))
