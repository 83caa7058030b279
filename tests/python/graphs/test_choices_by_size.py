"""`cond` by what a program compares sizes with: a node where the sizes may change."""

import warnings

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight._higher_order_ops import cond
from rushlight.export import Dim, export, load, load_file, save
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.testing import assert_close

SIZES = 2, 3, 4, 5, 8, 57


def chosen(pred, one=torch.sin, other=torch.cos):
    return lambda x: cond(pred(x), one, other, (x,))


PROGRAMS = {
    "larger": chosen(lambda x: x.shape[0] > 3),
    "equal to one that no trace has": chosen(lambda x: x.size(0) == 57),
    "even": chosen(lambda x: x.size(0) % 2 == 0),
    "number of elements": chosen(lambda x: x.numel() > 14),
    "both": chosen(lambda x: (x.shape[0] > 2) & (x.shape[0] < 5)),
    "of a result": chosen(lambda x: torch.cat([x, x]).shape[0] > 7),
    "checked": lambda x: (torch._check(x.shape[0] > 1), chosen(lambda x: x.shape[0] > 3)(x))[1],
    "by data as well": chosen(lambda x: x.shape[0] > x[0, 0].long().item()),
    "sizes in the branches": chosen(
        lambda x: x.shape[0] > 3, lambda x: x * x.shape[0], lambda x: x + x.shape[0] * 2
    ),
    "nested": chosen(
        lambda x: x.shape[0] > 3, chosen(lambda x: x.shape[0] > 5), lambda x: chosen(lambda x: x.sum() > 9)(x)
    ),
}
programs = pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)


def choices(graph):
    return [n for n in graph.nodes if n.target is torch.ops.higher_order.cond]


def alike(run, program):
    for size in SIZES:
        x = torch.rand(size, 4) * 9
        assert_close(run(x), program(x))


@programs
def test_a_symbolic_trace_chooses_when_it_runs(program):
    traced = make_fx(program, tracing_mode="symbolic")(torch.rand(4, 4) + 2)
    assert len(choices(traced.graph)) == 1
    alike(traced, program)


@programs
def test_an_export_chooses_when_it_runs(program):
    made = export(FunctionModule(program), (torch.rand(4, 4) + 2,), dynamic_shapes=(({0: Dim("n")},),))
    assert len(choices(made.graph)) == 1
    alike(made.module(), program)
    alike(made.run_decompositions().module(), program)


def test_files_choose_when_they_run(tmp_path):
    program = PROGRAMS["larger"]
    made = export(FunctionModule(program), (torch.rand(4, 4),), dynamic_shapes=(({0: Dim("n")},),))
    save(made, tmp_path / "program.pt2")
    save(made, tmp_path / "program.rl")
    alike(load(tmp_path / "program.pt2").module(), program)
    alike(load_file(tmp_path / "program.rl"), program)


def test_what_does_not_change_is_no_choice():
    """The branch that is not taken need not run."""
    flag = [True]
    fixed = chosen(lambda x: x.shape[1] == 4, torch.sin, lambda x: x.reshape(-1, 7))
    for program in (fixed, chosen(lambda x: flag[0])):
        made = export(FunctionModule(program), (torch.rand(4, 4),), dynamic_shapes=(({0: Dim("n")},),))
        assert not choices(made.graph)
        alike(made.module(), program)


def test_sizes_that_are_compared_are_numbers():
    """They compute as plain sizes do."""
    seen = {}

    def program(x):
        n = x.shape[0]
        seen[int(n)] = n, -n + 9, 2 * n // 3 - n % 2, 7 - n, n / 2, hash(n), {n: 1}[int(n)], [n] == [int(n)]
        y = x.reshape(x.shape[0] * 4).view(n, 4)[: n - 1]
        return cond(n > 3, torch.sin, torch.cos, (y,)), n + 1

    traced = make_fx(program, tracing_mode="symbolic")(torch.rand(7, 4))
    for n, found in seen.items():
        assert found == (n, 9 - n, 2 * n // 3 - n % 2, 7 - n, n / 2, hash(n), 1, True)
    for size in (2, 3, 4, 8):
        x = torch.rand(size, 4)
        result, more = traced(x)
        assert_close(result, program(x)[0])
        assert more == size + 1


def test_a_constant_condition_is_told():
    class Chosen(torch.nn.Module):
        def forward(self, x, flag):
            return cond(x.shape[0] > 3 if flag is None else flag, torch.sin, torch.cos, (x,))

    with pytest.warns(UserWarning, match="Pred is a Python constant"):
        torch.export.export(Chosen(), (torch.ones(4), True))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shapes = {0: torch.export.Dim("n")}, None
        torch.export.export(Chosen(), (torch.ones(4), None), dynamic_shapes=shapes)
        Chosen()(torch.ones(4), True)
