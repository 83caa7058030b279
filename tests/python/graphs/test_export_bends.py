"""Exports whose numbers depend on several sizes at once, and sizes that change by twos and threes."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.export import Dim, export

DYNAMIC = Dim.DYNAMIC


def module(function):
    return type("Program", (nn.Module,), {"forward": staticmethod(function)})()


def all_dynamic(inputs):
    return tuple({d: DYNAMIC for d in range(t.dim())} for t in inputs)


def check(function, shapes, *others):
    """Exported at `shapes`, a program computes what the function does at all of them."""
    inputs = [torch.randn(shape) for shape in shapes]
    program = export(module(function), tuple(inputs), dynamic_shapes=all_dynamic(inputs))
    for sizes in (shapes, *others):
        inputs = [torch.randn(shape) for shape in sizes]
        found, expected = program.module()(*inputs), function(*inputs)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    return program


def best(count):
    return lambda x: x.flatten().topk(min(count, x.shape[0] * x.shape[1]))[0]


def at_least(count):
    return lambda x: x.new_zeros(max(count, x.shape[0] * x.shape[1] - 3))


@pytest.mark.parametrize("example", [(6, 7), (20, 20), (2, 3)])
@pytest.mark.parametrize("function", [best(10), best(300), at_least(9), at_least(100)])
def test_the_smaller_of_a_number_and_a_product_of_sizes(function, example):
    check(function, [example], [(2, 3)], [(1, 1)], [(40, 50)], [(1, 400)], [(17, 18)])


def test_the_smallest_sizes_of_all_are_looked_at_together():
    def small_ones_differ(x):  # in a way that no graph has
        return x * 2 if x.shape[0] + x.shape[1] > 6 else x.sum(0)

    program = export(
        module(small_ones_differ), (torch.randn(6, 7),), dynamic_shapes=({0: DYNAMIC, 1: DYNAMIC},)
    )
    lows = [r.lower for r in program.range_constraints.values()]
    assert sum(lows) > 6
    x = torch.randn(*lows)
    assert torch.equal(program.module()(x), small_ones_differ(x))


def test_a_smallest_size_that_was_asked_for_is_not_given_up():
    def small_ones_differ(x):
        return x * 2 if x.shape[0] + x.shape[1] > 6 else x.sum(0)

    asked = Dim("a", min=3), Dim("b", min=3)
    with pytest.raises(torch.export.dynamic_shapes.UserError, match="sizes from 3 on were asked for"):
        export(module(small_ones_differ), (torch.randn(6, 7),), dynamic_shapes=(dict(enumerate(asked)),))


RATIOS = {
    "aspect": lambda x: x * (x.shape[0] / x.shape[1]),
    "of neighbours": lambda x: x * ((x.shape[0] - 1) / x.shape[0]),
    "of sums": lambda x: x * ((2 * x.shape[0] + 1) / (x.shape[1] + 1)),
    "of products": lambda x: x * (3 / (x.shape[0] * x.shape[1])),
    "below one": lambda x: x * (1 - 1 / x.shape[0]),
    "above minus one": lambda x: x + (1 / x.shape[1] - 1),
    "half": lambda x: x * (0.5 / x.shape[0]),
}


@pytest.mark.parametrize("name", RATIOS)
def test_quotients_of_two_sizes_have_the_bits_of_eager(name):
    check(RATIOS[name], [(4, 7)], [(3, 9)], [(1, 1)], [(17, 2)])


def test_a_quotient_that_has_no_value_for_a_size_leaves_it_out():
    program = check(lambda x: x * (x.shape[0] / (x.shape[1] - 1)), [(4, 7)], [(3, 9)], [(5, 2)])
    assert sorted(r.lower for r in program.range_constraints.values()) == [0, 2]


def test_sampling_grids_of_images_of_any_size():
    def warped(x, theta):
        grid = nn.functional.affine_grid(theta, x.size(), align_corners=False)
        return nn.functional.grid_sample(x, grid, align_corners=False)

    inputs = torch.randn(2, 3, 6, 7), torch.randn(2, 2, 3)
    shapes = {0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC}, {0: DYNAMIC}
    program = export(module(warped), inputs, dynamic_shapes=shapes)
    for n, h, w in ((2, 6, 7), (1, 4, 4), (3, 5, 9), (1, 1, 1)):
        inputs = torch.randn(n, 3, h, w), torch.randn(n, 2, 3)
        torch.testing.assert_close(program.module()(*inputs), warped(*inputs))


def test_states_of_a_recurrent_layer_change_with_its_batch():
    layer = nn.LSTM(4, 6, batch_first=True)

    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, h, c):
            return self.layer(x, (h, c))

    shapes = {0: DYNAMIC}, {1: DYNAMIC}, {1: DYNAMIC}
    inputs = torch.randn(2, 5, 4), torch.randn(1, 2, 6), torch.randn(1, 2, 6)
    program = export(Program(), inputs, dynamic_shapes=shapes)
    assert len(program.range_constraints) == 1
    for n in (1, 3):
        inputs = torch.randn(n, 5, 4), torch.randn(1, n, 6), torch.randn(1, n, 6)
        torch.testing.assert_close(program.module()(*inputs), Program()(*inputs))


def test_a_size_that_others_need_changes_with_them_though_it_can_alone():
    def chosen(rows, scores, texts):  # more texts than rows would do
        best = (scores + rows.sum(-1)).topk(scores.shape[1])[1]
        return texts.gather(1, best[..., None].expand(-1, -1, texts.shape[-1]))

    check_integers = [[(b, k, 8), (b, k), (b, k, n)] for b, k, n in ((2, 3, 4), (1, 1, 1), (3, 2, 7))]
    check(chosen, *check_integers)


@pytest.mark.parametrize("asked", [(5, 10), (3, 4), (3, 1000)])
def test_few_sizes_tell_what_a_number_is(asked):
    def half(x):
        return x[: round(x.shape[0] / 2)]

    least, most = asked
    shapes = ({0: Dim("n", min=least, max=most)},)
    program = export(module(half), (torch.randn(least + 1),), dynamic_shapes=shapes)
    (found,) = program.range_constraints.values()
    assert (found.lower, found.upper) == asked
    for size in range(least, min(most, 30) + 1):
        x = torch.randn(size)
        assert torch.equal(program.module()(x), half(x))
