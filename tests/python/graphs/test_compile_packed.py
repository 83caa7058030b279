"""Graphs of torch.compile whose products take matrices that were laid out beforehand."""

import math

import pytest
from compile_checks import compiled_of, no_measuring  # noqa: F401 - a fixture

import rushlight as torch
from rushlight import _C
from rushlight._dynamo._capture import capture
from rushlight._inductor import config
from rushlight._inductor._optimize import optimize
from rushlight._inductor._packed import pack_products
from rushlight._inductor._passes import remove_dead

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.usefixtures("no_measuring")
aten = torch.ops.aten
packs = pytest.mark.skipif(
    not _C._most_packed_rows(64, 64), reason="without vector instructions no product is packed"
)


def calls(graph, name):
    return sum(getattr(n.target, "_opname", None) == name for n in graph.nodes)


def packed(function, *args, constant=None):
    with torch.no_grad():
        graph = capture(function, args, {}).module.graph
        remove_dead(graph)
        pack_products(graph, constant)
        graph.lint()
    return graph


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "sizes",
    # The last have more rows, and more steps, than a pass over the panels takes.
    [(1, 1, 1), (5, 3, 7), (6, 64, 32), (13, 40, 33), (32, 64, 64), (70, 17, 130), (200, 2000, 50)],
)
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("with_bias", [False, True])
def test_products(dtype, sizes, turned, with_bias):
    m, k, n = sizes
    torch.manual_seed(0)
    x, b = torch.randn(m, k, dtype=dtype) / k**0.5, torch.randn(n, dtype=dtype) if with_bias else None
    w = torch.randn(n, k, dtype=dtype).t() if turned else torch.randn(k, n, dtype=dtype)
    panels = aten._pack_matrix(w)
    y = aten._packed_product(x, panels, n, b, -math.inf, math.inf)
    expected = x @ w + (b if with_bias else 0)
    torch.testing.assert_close(y, expected, rtol=1e-5, atol=1e-5)
    bounded = aten._packed_product(x, panels, n, b, -0.5, 1.0)
    torch.testing.assert_close(bounded, expected.clamp(-0.5, 1.0), rtol=1e-5, atol=1e-5)


def test_rows_that_lie_apart_and_batches():
    torch.manual_seed(0)
    w, wide = torch.randn(6, 5), torch.randn(7, 20)
    panels = aten._pack_matrix(w)
    for x in (wide[:, 3:9], wide[::2, :6], wide[:6].t()[:4, :6], torch.randn(2, 3, 6)):
        y = aten._packed_product(x, panels, 5, None, -math.inf, math.inf)
        torch.testing.assert_close(y, x @ w, rtol=1e-5, atol=1e-5)
    assert aten._packed_product(wide[:0, :6], panels, 5, None, -math.inf, math.inf).shape == (0, 5)


def test_rows_have_the_same_bits_in_any_number():
    torch.manual_seed(0)
    x, w = torch.randn(211, 1600), torch.randn(1600, 72)
    panels = aten._pack_matrix(w)
    whole = aten._packed_product(x, panels, 72, None, -math.inf, math.inf)
    for rows in (slice(0, 1), slice(3, 17), slice(100, 211)):
        part = aten._packed_product(x[rows], panels, 72, None, -math.inf, math.inf)
        assert torch.equal(part, whole[rows])


def test_no_steps_leave_the_bias():
    panels, b = aten._pack_matrix(torch.ones(0, 40)), torch.arange(40.0)
    y = aten._packed_product(torch.ones(3, 0), panels, 40, b, 1.0, 30.0)
    assert torch.equal(y, b.clamp(1.0, 30.0).expand(3, 40))


def test_nan_and_infinity_pass_the_bounds():
    panels = aten._pack_matrix(torch.eye(3))
    x = torch.tensor([[math.nan, 1.0, -1.0], [math.inf, 1.0, -1.0]])
    y = aten._packed_product(x, panels, 3, None, 0.0, math.inf)
    assert y[0].isnan().all()
    z = aten._packed_product(x[:, :1], aten._pack_matrix(torch.ones(1, 2)), 2, None, 0.0, 6.0)
    assert z[0].isnan().all()
    assert z[1].tolist() == [6.0, 6.0]


def test_refuses_panels_of_another_matrix():
    panels = aten._pack_matrix(torch.ones(3, 40))
    with pytest.raises(RuntimeError, match="not of a matrix of 4 by 40"):
        aten._packed_product(torch.ones(2, 4), panels, 40, None, 0.0, 1.0)
    with pytest.raises(RuntimeError, match="expected 40 terms"):
        aten._packed_product(torch.ones(2, 3), panels, 40, torch.ones(3), 0.0, 1.0)
    with pytest.raises(RuntimeError, match="float32 or float64"):
        aten._pack_matrix(torch.ones(3, 3, dtype=torch.int64))


@packs
def test_a_network_takes_bounds_in():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU6(), nn.Linear(16, 4)).eval()
    x = torch.randn(5, 8)
    graph = packed(model, x, constant=1)
    assert calls(graph, "_packed_product") == 3
    assert not calls(graph, "relu") and not calls(graph, "hardtanh")
    fast = torch.compile(model)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-6)
        model[0].weight.mul_(2)  # what was laid out is of no use any more
        torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-6)
        model[2].weight.data.fill_(0.5)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-6)


@packs
def test_a_bound_that_others_see_past_stays():
    w = torch.randn(6, 6)

    def both(x):
        y = F.linear(x, w)
        return y, y.relu()

    graph = packed(both, torch.randn(3, 6), constant=1)
    assert calls(graph, "_packed_product") == 1
    assert calls(graph, "relu") == 1


@packs
def test_a_matrix_that_is_written_to_stays():
    w = torch.randn(6, 6)

    def grow(x):
        for _ in range(4):
            x = x @ w
            w.add_(1)
        return x

    assert not calls(packed(grow, torch.randn(3, 6)), "_packed_product")


@packs
def test_a_loop_of_cells_shares_its_matrix():
    cell = nn.RNNCell(8, 16)

    def run(xs):
        h, outs = torch.zeros(4, 16), []
        for x in xs.unbind(0):
            h = cell(x, h)
            outs.append(h)
        return torch.stack(outs)

    xs = torch.randn(6, 4, 8)
    graph = packed(run, xs)
    assert calls(graph, "_pack_matrix") == 2
    assert calls(graph, "_packed_product") == 12
    expected = run(xs)
    expected.square().sum().backward()
    wanted = [p.grad for p in cell.parameters()]
    cell.zero_grad()
    found = torch.compile(run)(xs)
    found.square().sum().backward()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close([p.grad for p in cell.parameters()], wanted, rtol=1e-4, atol=1e-5)


@packs
def test_the_setting_keeps_operators():
    layer = nn.Linear(6, 6)

    def chain(x):
        for _ in range(6):
            x = layer(x)
        return x

    for wanted, name in ((True, "_packed_product"), (False, "linear")):
        with torch.no_grad(), config.patch(pack_products=wanted):
            graph = capture(chain, (torch.randn(3, 6),), {}).module.graph
            optimize(graph)
        assert calls(graph, name) == 6


@packs
def test_any_number_of_rows():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    fast = torch.compile(model, dynamic=True)
    with torch.no_grad():
        for rows in (5, 2, 1, 40, 700, 0):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-6)
    assert len(compiled_of(fast).entries) <= 3  # sizes 0 and 1 are apart


@packs
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_share_products(threads):
    torch.manual_seed(0)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for m, k, n in ((3, 512, 1024), (300, 128, 96), (64, 300, 600)):
            x, w, b = torch.randn(m, k), torch.randn(n, k), torch.randn(n)
            y = aten._packed_product(x, aten._pack_matrix(w.t()), n, b, -math.inf, math.inf)
            torch.testing.assert_close(y, x @ w.t() + b, rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)


@packs
def test_constant_matrices_of_eager_layers():
    torch.manual_seed(0)
    layer = nn.Linear(96, 80).eval()
    with torch.no_grad():
        for rows in (2, 9, 64):
            x = torch.randn(rows, 96)
            expected = torch.addmm(layer.bias.double(), x.double(), layer.weight.double().t()).float()
            for _ in range(6):  # from the fourth on by panels
                torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-5)
        layer.weight.mul_(-1)
        torch.testing.assert_close(layer(x), 2 * layer.bias - expected, rtol=1e-4, atol=1e-5)
