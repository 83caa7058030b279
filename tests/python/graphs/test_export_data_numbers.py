"""Exports of programs whose sizes and numbers depend on their data."""

import pytest
from function_module import FunctionModule

import rushlight as torch
from rushlight._subclasses.fake_tensor import DynamicOutputShapeException, FakeTensorMode
from rushlight.export import Dim, export
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, guard_or_false


def _exported(function, *args, shapes=None):
    return export(FunctionModule(function), args, dynamic_shapes=None if shapes is None else (shapes,))


def _alike(function, program, *inputs):
    for args in inputs:
        expected, found = function(*args), program.module()(*args)
        torch.testing.assert_close(found, expected)


def _masks(*rows):
    return [(torch.tensor(row, dtype=torch.float32),) for row in rows]


_SHAPED = {
    "nonzero": lambda x: x.nonzero().sum(1) * 2,
    "mask": lambda x: x[x > 0] * 2 + 1,
    "masked_select": lambda x: torch.masked_select(x, x > 0).cumsum(0),
    "argwhere": lambda x: torch.argwhere(x).flatten(),
    "unique": lambda x: torch.unique(x).exp(),
    "columns": lambda x: torch.stack(torch.nonzero(x, as_tuple=True)),
    "joined": lambda x: torch.cat([x[x > 0], x]).view(-1, 1).expand(-1, 2).contiguous(),
    "zeros": lambda x: torch.zeros(x.nonzero().shape[0] + 2) + 1,
    "repeated": lambda x: torch.repeat_interleave(x, (x > 0).long() * 2),
}


@pytest.mark.parametrize("name", _SHAPED)
def test_sizes_that_depend_on_data(name):
    function = _SHAPED[name]
    program = _exported(function, torch.tensor([1.0, 0.0, 3.0, -1.0, 2.0]))
    inputs = _masks([0, 0, 0, 0, 1], [1, 2, 3, 4, 5], [0, 0, 0, 2, 7], [3, 3, -3, 3, 3])
    _alike(function, program, *inputs)
    _alike(function, program.run_decompositions(), *inputs)


def test_data_beside_dynamic_shapes():
    def function(x):
        kept = x[x[:, 0] > 0]
        return torch.cat([kept, x]).sum(1)

    program = _exported(function, torch.randn(7, 3), shapes=({0: Dim("batch")},))
    _alike(function, program, *((torch.randn(n, 3),) for n in (2, 5, 9)))


def test_numbers_that_the_program_reads():
    def function(x, n):
        size = n.item()
        torch._check_is_size(size)
        torch._check(size <= x.shape[0])
        return x[:size] * size

    x = torch.arange(6.0)
    program = _exported(function, x, torch.tensor(4))
    _alike(function, program, *((x, torch.tensor(n)) for n in (0, 1, 3, 6)))
    (ends,) = program.range_constraints.values()
    assert (ends.lower, ends.upper) == (0, 6)
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression u0 <= 6"):
        program.module()(x, torch.tensor(7))
    with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression u0 >= 0"):
        program.run_decompositions().module()(x, torch.tensor(-1))


def test_fractions_that_the_program_reads():
    def function(x, scale):
        number = scale.item()
        return x * number + (number * 2 - 1)

    x = torch.arange(4.0)
    program = _exported(function, x, torch.tensor(0.5))
    _alike(function, program, *((x, torch.tensor(s)) for s in (0.25, 3.0, -1.0)))


def test_a_number_that_is_returned():
    program = _exported(lambda x: x.sum().item() + 1, torch.tensor([1, 2]))
    assert program.module()(torch.tensor([4, 5])) == 10


def test_a_check_decides_a_branch():
    def function(x, n):
        size = n.item()
        torch._check(size >= 4)
        torch._check(size < 9)
        return x.new_ones(size) if size > 3 else x

    program = _exported(function, torch.zeros(2), torch.tensor(5))
    assert program.module()(torch.zeros(2), torch.tensor(8)).shape == (8,)
    (ends,) = program.range_constraints.values()
    assert (ends.lower, ends.upper) == (4, 8)


def test_equal_numbers():
    def function(x, y):
        a, b = x.item(), y.item()
        torch._check(a == b + 1)
        return x * 2 if a == b + 1 else y

    program = _exported(function, torch.tensor(4), torch.tensor(3))
    assert program.module()(torch.tensor(8), torch.tensor(7)).item() == 16
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.tensor(8), torch.tensor(8))


def test_a_branch_is_refused():
    def function(x):
        return x * 2 if x.item() > 3 else x

    with pytest.raises(GuardOnDataDependentSymNode, match=r"u0 > 3.*(.|\n)*torch\._check\(u0 > 3\)"):
        _exported(function, torch.tensor(4))
    with pytest.raises(GuardOnDataDependentSymNode):
        _exported(lambda x: x * 2 if x.item() > 0.5 else x, torch.tensor(0.7))


def test_a_friendly_question_has_an_answer():
    def function(x):
        return x * 2 if guard_or_false(x.item() > 3) else x + 1

    program = _exported(function, torch.tensor(4))
    assert program.module()(torch.tensor(9)).item() == 10


def test_a_path_that_depends_on_a_size_is_refused():
    def function(x):
        found = x.nonzero()
        return found * 2 if found.shape[0] > 6 else found

    with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent"):
        _exported(function, torch.ones(16))


def test_the_smaller_of_two():
    def function(x, n):
        size = torch.sym_min(n.item(), x.shape[0])
        torch._check(n.item() >= 0)
        return x[:size].sum()

    x = torch.arange(5.0)
    program = _exported(function, x, torch.tensor(3))
    _alike(function, program, *((x, torch.tensor(n)) for n in (0, 2, 5, 8)))


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_make_fx_follows_data(mode):
    from rushlight.fx.experimental.proxy_tensor import make_fx

    def function(x, n):
        return x[x > 0] * n.item()

    graph = make_fx(function, tracing_mode=mode)(torch.tensor([1.0, -2.0, 3.0]), torch.tensor(4))
    for row, n in (([1.0, 2.0, 3.0], 5), ([-1.0, -2.0, -3.0], 1)):
        args = torch.tensor(row), torch.tensor(n)
        torch.testing.assert_close(graph(*args), function(*args))


def test_a_size_becomes_a_tensor():
    def function(x):
        return torch.minimum(x.long().sum(), torch.tensor(x.nonzero().shape[0]))

    program = _exported(function, torch.tensor([2.0, 0.0, 1.0]))
    _alike(function, program, *_masks([1, 1, 1], [0, 0, 9], [5, 0, 1]))


def test_a_size_may_be_checked():
    def function(x):
        found = x.nonzero()
        torch._check(found.shape[0] >= 2)
        torch._check(found.size(0) < 5)
        return found[1] if found.shape[0] > 1 else found[0]

    program = _exported(function, torch.ones(4))
    (ends,) = program.range_constraints.values()
    assert (ends.lower, ends.upper) == (2, 4)
    assert program.module()(torch.tensor([0.0, 1.0, 0.0, 1.0])).tolist() == [3]
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 >= 2"):
        program.module()(torch.tensor([0.0, 1.0, 0.0, 0.0]))


def test_cond_chooses_when_the_graph_runs():
    def of_values(x):
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,))

    def of_sizes(x):
        found = x.nonzero()
        return torch.cond(found.size(0) > 3, lambda t: (t + 1).sum(), lambda t: (t + 3).sum(), (found,))

    for function in (of_values, of_sizes):
        program = _exported(function, torch.tensor([1.0, 2.0, 0.0, 4.0, 5.0]))
        _alike(function, program, *_masks([0, 0, 1, 0, 0], [1, 2, 3, 4, 5], [-3, -1, 0, 0, 0]))
    with pytest.raises(RuntimeError, match="equal shapes"):
        _exported(lambda x: torch.cond(x.sum() > 0, lambda x: x, lambda x: x[:1], (x,)), torch.ones(3))


def test_a_size_that_is_read_late_is_known_early():
    """Operators computed with the size before the program asked for it, and the graph used it too early."""

    class Late(torch.nn.Module):
        def forward(self, x):
            found = torch.nonzero(x)
            first = found[:, 0] + 1
            return first.new_zeros(first.shape[0] + 1), found.shape[0]

    program = torch.export.export(Late(), (torch.tensor([0.0, 1, 2]),))
    program.graph.lint()
    for x in (torch.tensor([1.0, 1, 2]), torch.zeros(3)):
        torch.testing.assert_close(program.module()(x), Late()(x))


@torch.library.custom_op("data_sizes::found", mutates_args=())
def found(x: torch.Tensor, least: int) -> tuple[torch.Tensor, torch.Tensor]:
    where = torch.nonzero(x)
    return where, where[:, 0].repeat(2)


@found.register_fake
def _(x, least):
    n = torch.library.get_ctx().new_dynamic_size(min=least, max=x.numel())
    return x.new_empty([n, x.dim()], dtype=torch.long), x.new_empty([2 * n], dtype=torch.long)


def test_sizes_that_fake_functions_ask_for():
    class Finds(torch.nn.Module):
        def __init__(self, least):
            super().__init__()
            self.least = least

        def forward(self, x):
            where, first = found(x, self.least)
            return where * 2, where.new_zeros(where.shape[0] + 1), first + 1

    x = torch.tensor([[0.0, 1, 2], [0, 0, 3]])
    for least in (0, 5):
        model = Finds(least)
        program = torch.export.export(model, (x,))
        (limits,) = program.range_constraints.values()
        assert (limits.lower, limits.upper) == (least, 6)
        for other in (torch.ones(2, 3), torch.tensor([[0.0, 1, 2], [4, 1, 3]])):
            torch.testing.assert_close(program.module()(other), model(other))
    traced = make_fx(lambda x: found(x, 0)[0] + 1, tracing_mode="symbolic")(x)
    assert traced(torch.ones(2, 3)).shape == (6, 2)
    with pytest.raises(DynamicOutputShapeException), FakeTensorMode() as fakes:
        found(fakes.from_tensor(x), 0)


def _fill(x, mask):
    x[mask] = 0
    return x


def _turn(x, mask):
    x[mask] = x[mask].flip(-1)
    return x


def _add_in_columns(x, mask):
    x[:, mask] += 1
    return x


@pytest.mark.parametrize("write", [_fill, _turn, _add_in_columns])
def test_writes_under_a_mask_of_rows_export_at_all_sizes(write):
    class Program(torch.nn.Module):
        def forward(self, x, mask):
            return write(x.clone(), mask)

    rows = {write is _add_in_columns: torch.export.Dim("n")}
    example = torch.randn(4, 4), torch.tensor([True, False, True, True])
    exported = torch.export.export(Program(), example, dynamic_shapes=(rows, {0: torch.export.Dim("n")}))
    for size in (1, 4, 7):
        shape = (4, size) if write is _add_in_columns else (size, 4)
        x, mask = torch.randn(shape), torch.arange(size) % 3 != 1
        assert torch.equal(exported.module()(x, mask), Program()(x, mask))


def test_a_mask_without_data_must_fit():
    x = torch.zeros(4, 3, device="meta")
    x[torch.zeros(4, dtype=torch.bool, device="meta")] = 1
    with pytest.raises(IndexError, match=r"shape of the mask \[5\] at index 0 does not match"):
        x[torch.zeros(5, dtype=torch.bool, device="meta")] = 1
    with pytest.raises(IndexError, match=r"shape of the mask \[4\] at index 0 does not match .* at index 1"):
        x[:, torch.zeros(4, dtype=torch.bool, device="meta")] = 1


def test_numbers_that_a_check_relates_get_samples_that_suit_it():
    def best(scores, count):
        found = scores[scores > 0]
        n = torch.minimum(count, torch.tensor(found.shape[0])).item()
        torch._check_is_size(n)
        torch._check(found.shape[0] >= n)
        return found.sort(descending=True).values[:n] * 2

    scores = torch.tensor([0.5, -1.0, 2.0, 3.0])
    program = _exported(lambda x, n: best(x, n), scores, torch.tensor(2))
    _alike(best, program, (scores, torch.tensor(2)), (scores, torch.tensor(9)), (-scores, torch.tensor(1)))


def test_a_truth_of_the_data_may_be_a_result():
    def told(flag, x):
        return flag.item(), (x > 0).sum().item() >= 2, x + 1

    x = torch.tensor([1.0, 2.0, -3.0])
    program = _exported(told, torch.tensor(True), x)
    for flag in (True, False):
        for sign in (1, -1):
            given = torch.tensor(flag), sign * x
            found, expected = program.module()(*given), told(*given)
            assert found[:2] == expected[:2] and torch.equal(found[2], expected[2])


COUNTED = {
    "one mask": lambda x, y, m: x[m] + y[m],
    "nonzero": lambda x, y, m: m.nonzero() + m.nonzero() * 2,
    "positions of a mask": lambda x, y, m: x[m] * m.nonzero(),
    "where": lambda x, y, m: x[m][:, 0] + torch.where(m)[0],
    "selected by one": lambda x, y, m: (lambda p: x.masked_select(p) - y[p])(y > 0),
    "written between": lambda x, y, m: (lambda c: (x[c], c.logical_not_(), y[c]))(m.clone()),
}


@pytest.mark.parametrize("name", COUNTED)
def test_a_mask_finds_as_many_each_time(name):
    class Program(torch.nn.Module):
        def forward(self, x, y, m):
            return COUNTED[name](x, y, m)

    rows = {0: torch.export.Dim("rows")}
    x, y, m = torch.randn(6, 2), torch.randn(6, 2), torch.tensor([True, False, True, True, False, False])
    for shapes in (None, (rows, rows, rows)):
        made = torch.export.export(Program(), (x, y, m), dynamic_shapes=shapes).module()
        for mask in (m, ~m, torch.zeros(6, dtype=torch.bool)):
            found, wanted = made(x, y, mask), Program()(x, y, mask)
            pairs = zip(found, wanted) if isinstance(wanted, tuple) else [(found, wanted)]
            assert all(torch.equal(a, b) for a, b in pairs if isinstance(a, torch.Tensor))


EQUAL = {
    "two comparisons": lambda x, y: x[y > 0] - y[y > 0],
    "three": lambda x, y: x[y > 0] - y[y > 0] * x.masked_select(y > 0),
    "two and two": lambda x, y: (x[y > 0] - y[y > 0], x[x > 0] * y[x > 0]),
    "joined": lambda x, y: torch.stack([x[y > 0], y[y > 0]]),
    "with another": lambda x, y: (x[x < 0].sum(), x[y > 0] - y[y > 0]),
}


@pytest.mark.parametrize("name", EQUAL)
def test_sizes_that_must_be_equal_are_checked(name):
    class Program(torch.nn.Module):
        def forward(self, x, y, z):
            return EQUAL[name](x, y), x[z > 0] + y[y > 0]

    def flat(values):
        return [t for v in values for t in (flat(v) if isinstance(v, tuple) else [v])]

    x, y = torch.randn(6, 2), torch.randn(6, 2)
    for shapes in (None, ({0: Dim("rows")},) * 3):
        program = export(Program(), (x, y, y), dynamic_shapes=shapes)
        for given in (y, torch.randn(6, 2), -y.abs()):
            found, wanted = program.module()(x, given, given), Program()(x, given, given)
            assert all(map(torch.equal, flat(found), flat(wanted)))
        with pytest.raises(RuntimeError, match=r"Runtime assertion failed for expression u\d == u\d"):
            program.module()(x, torch.ones(6, 2), -torch.ones(6, 2))


class Ragged(torch.nn.Module):
    def forward(self, flat, lengths):
        rows = torch.arange(lengths.shape[0])
        segments = torch.repeat_interleave(rows, lengths, output_size=flat.shape[0])
        return torch.zeros(lengths.shape[0], flat.shape[1]).index_add(0, segments, flat)


def test_a_known_number_of_repeats_is_no_number_of_the_data():
    counts = torch.empty(3, dtype=torch.int64, device="meta")
    assert torch.repeat_interleave(counts, output_size=6).shape == (6,)
    given = torch.rand(6, 2), torch.tensor([1, 2, 3])
    auto = torch.export.Dim.AUTO
    program = torch.export.export(Ragged(), given, dynamic_shapes=({0: auto}, {0: auto}))
    others = torch.rand(5, 2), torch.tensor([4, 1])
    assert torch.equal(program.module()(*others), Ragged()(*others))
    with pytest.raises(RuntimeError, match="output_size is 5, repeats sum up to 3"):
        program.module()(torch.rand(5, 2), torch.tensor([1, 2]))


def test_what_was_found_is_not_written_to_other_memory():
    class Written(torch.nn.Module):
        def forward(self, x):
            found = torch.zeros(2)
            torch.masked_select(x, x > 0, out=found)
            return found

    with pytest.raises(DynamicOutputShapeException, match="masked_select"):
        torch.export.export(Written(), (torch.ones(3),))


def test_sizes_of_what_is_written_later_are_read_where_it_was_made():
    def function(x):
        found = torch.unique(x)
        pairs = torch.ones(12).as_strided((found.numel() // 2, 2), (2, 1))
        return found.addcdiv_(found, found + 10), pairs

    x = torch.tensor([1.0, 2.0, 3.0, 3.0])
    program = _exported(function, x)
    for given in (x, torch.tensor([1.0, 2.0, 3.0, 5.0]), torch.ones(4)):
        for found, expected in zip(program.module()(given.clone()), function(given.clone())):
            assert torch.equal(found, expected)


_TRANSFORMED = {
    "grad": lambda f: lambda a, n: torch.func.grad(lambda x: f(x, n).sum())(a),
    "vjp": lambda f: lambda a, n: torch.func.vjp(lambda x: f(x, n), a)[1](torch.ones(3))[0],
    "jvp": lambda f: lambda a, n: torch.func.jvp(lambda x: f(x, n), (a,), (a,))[1],
    "twice": lambda f: lambda a, n: torch.func.hessian(lambda x: f(x, n).sum())(a),
}
_READS = {
    "item": lambda n: n[0].item() > 1,
    "bool": lambda n: n[0] > 1,
    "int": lambda n: int(n[0]) > 1,
    "tolist": lambda n: n.tolist()[0] > 1,
}


@pytest.mark.parametrize("transform", _TRANSFORMED)
@pytest.mark.parametrize("read", _READS)
def test_branches_on_numbers_within_transforms_are_refused(transform, read):
    function = _TRANSFORMED[transform](lambda x, n: x.sin() * 2 if _READS[read](n) else x.cos())
    with pytest.raises(GuardOnDataDependentSymNode, match="depends on its data"):
        _exported(function, torch.ones(3), torch.tensor([2, 1]))


@pytest.mark.parametrize("transform", _TRANSFORMED)
def test_numbers_that_transforms_read_are_those_of_the_data(transform):
    def function(x, n):
        first, second = n.tolist()
        return x.sin() * first + second * n[1].item()

    function = _TRANSFORMED[transform](function)
    x = torch.rand(3)
    program = _exported(function, x, torch.tensor([2, 1]))
    _alike(function, program, (x, torch.tensor([5, 3])), (x + 1, torch.tensor([0, -1])))


def cut_in_two(x, n):
    count = n.item()
    torch._check(count >= 0)
    torch._check(count <= x.shape[0])
    return x[:count], x[count:], torch.arange(count)


def test_sizes_are_as_small_as_numbers_of_the_data_let_them_be():
    model = type("Program", (torch.nn.Module,), {"forward": staticmethod(cut_in_two)})()
    given = torch.randn(6, 2), torch.tensor(3)
    exported = export(model, given, dynamic_shapes=({0: Dim("rows", min=0)}, None))
    for rows, count in [(6, 3), (1, 0), (1, 1), (2, 1), (0, 0), (9, 9)]:
        x, n = torch.randn(rows, 2), torch.tensor(count)
        for found, wanted in zip(exported.module()(x, n), cut_in_two(x, n), strict=True):
            assert torch.equal(found, wanted)
    with pytest.raises(RuntimeError):
        exported.module()(torch.randn(2, 2), torch.tensor(3))
