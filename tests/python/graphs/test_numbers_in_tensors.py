"""Tensors that a program makes of its sizes: graphs compute them."""

import pytest

import rushlight as torch
from rushlight.export import Dim, export, load, load_file, save
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.testing import assert_close


def element(x):
    x = x.clone()
    x[0] = x.size(0)
    return x


def masked(x):
    x = x.clone()
    x[x > 0] = x.size(0) * 2 - 1
    return x


def scalar(x):
    return x * torch.tensor(x.size(0))


def several(x):
    return x.sum() + torch.tensor([[x.size(0), 7], [x.size(0) * 3, x.size(0) // 2]])


def half(x):
    return x + torch.tensor(x.size(0) / 2)


def twice(x):
    y = x + x.size(0) * 5
    y[1] = x.size(0) * 5
    return y.reshape(1, x.size(0)) * torch.tensor(x.size(0) * 5.0)


PROGRAMS = [element, masked, scalar, several, half, twice]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_symbolic_trace_computes_them(program):
    traced = make_fx(program, tracing_mode="symbolic")(torch.randn(4))
    for length in (2, 4, 6, 9):
        x = torch.randn(length)
        assert_close(traced(x), program(x))


@pytest.mark.parametrize("decomposed", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_export_computes_them(program, decomposed, tmp_path):
    class Program(torch.nn.Module):
        def forward(self, x):
            return program(x)

    exported = export(Program(), (torch.randn(4),), dynamic_shapes=({0: Dim("n")},))
    exported = exported.run_decompositions() if decomposed else exported
    assert not exported.constants
    save(exported, tmp_path / "program.pt2")
    runs = [exported.module(), load(tmp_path / "program.pt2").module()]
    if program is not half:  # files compute whole numbers
        save(exported, tmp_path / "program.rl")
        runs.append(load_file(tmp_path / "program.rl"))
    for length in (2, 4, 7):
        x = torch.randn(length)
        for run in runs:
            assert_close(run(x), program(x))


def test_tensors_of_other_numbers_stay_constants():
    class Program(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.held = torch.tensor([1.0, 2.0])

        def forward(self, x):
            return x.sum() * self.held + torch.tensor([3, 4])

    exported = export(Program(), (torch.randn(4),), dynamic_shapes=({0: Dim("n")},))
    assert set(exported.constants) == {"held", "lifted_tensor_0"}
    assert_close(exported.module()(torch.ones(3)), torch.tensor([6.0, 10.0]))


def test_a_number_of_the_data_is_written():
    class Program(torch.nn.Module):
        def forward(self, x, n):
            x = x.clone()
            x[0] = n.item()
            return x

    exported = export(Program(), (torch.randn(3), torch.tensor(2)))
    for number in (0, 5):
        assert exported.module()(torch.zeros(3), torch.tensor(number)).tolist() == [number, 0, 0]
