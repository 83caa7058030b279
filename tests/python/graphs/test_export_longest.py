"""Exports that pad to the longest of several, and that make tensors of fractions of sizes."""

import itertools

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, export, load_file, save_file
from rushlight.nn import functional as F

DYNAMIC = Dim.DYNAMIC


def program(function):
    return type("Program", (nn.Module,), {"forward": staticmethod(function)})()


def padded(*rows):
    longest = max(row.shape[0] for row in rows)
    return torch.stack([F.pad(row, (0, longest - row.shape[0])) for row in rows])


@pytest.mark.parametrize("lengths", [(3, 5), (5, 3), (4, 4), (9, 20), (3, 5, 4), (2, 6, 3, 4)], ids=str)
def test_rows_are_padded_to_the_longest(lengths):
    rows = [torch.randn(n) for n in lengths]
    exported = export(program(padded), tuple(rows), dynamic_shapes=tuple({0: DYNAMIC} for _ in rows))
    for sizes in itertools.product((1, 4, 9), repeat=len(rows)):
        rows = [torch.randn(n) for n in sizes]
        assert torch.equal(exported.module()(*rows), padded(*rows))


FRACTIONS = {
    "of one": lambda x: x * torch.tensor([1.0 / x.shape[0], 1.0 / x.shape[1]]).sum(),
    "of products": lambda x: x * torch.tensor([x.shape[0] * 0.1, x.shape[0] * x.shape[1] / 7, 3.0]).sum(),
    "quotients and roots": lambda x: (
        x * torch.tensor(x.shape[0] / x.shape[1]) + torch.tensor([x.shape[0] ** 0.5])
    ),
    "one less": lambda x: x * torch.tensor([[2 / (x.shape[0] - 1), 0.0], [0.0, 1 - 1 / x.shape[1]]]).sum(),
}


@pytest.mark.parametrize("name", FRACTIONS)
def test_tensors_of_float32_hold_fractions_of_sizes(name, tmp_path):
    model = program(FRACTIONS[name])
    dims = {0: Dim("rows", min=2), 1: Dim("columns", min=2)}
    exported = export(model, (torch.randn(5, 7),), dynamic_shapes=(dims,))
    save_file(exported, tmp_path / "model.rl")
    file = load_file(tmp_path / "model.rl")
    for sizes in [(5, 7), (2, 2), (3, 4), (9, 2), (31, 300), (97, 101)]:
        x = torch.randn(sizes)
        for run in (exported.module(), file):
            torch.testing.assert_close(run(x), model(x), rtol=1e-6, atol=1e-6)
