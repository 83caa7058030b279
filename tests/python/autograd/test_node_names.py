"""grad_fn.name() is PyTorch's: debuggers and graph viewers show it, and programs match on it."""

import pytest

import rushlight

torch = pytest.importorskip("torch")


def operands(m):
    x = m.arange(1.0, 5).view(2, 2).requires_grad_()
    return x, m.ones(2, 2).requires_grad_(), m.ones(2).requires_grad_()


# Forms of one operator: with a number, with a tensor.
FORMS = {
    "power": lambda m, x, y, v: [x**2, x**y, 2**x, x ** m.tensor(2.0)],
    "remainder": lambda m, x, y, v: [x % 2, x % y, m.fmod(x, 2), m.fmod(x, y)],
    "copysign": lambda m, x, y, v: [m.copysign(x, -1.0), m.copysign(x, y)],
    "lerp": lambda m, x, y, v: [m.lerp(x, y, 0.5), m.lerp(x, y, m.ones(2, 2))],
    "masked_fill": lambda m, x, y, v: [x.masked_fill(x > 2, 0), x.masked_fill(x > 2, m.tensor(0.0))],
    "index_fill": lambda m, x, y, v: [x.index_fill(0, m.tensor([0]), 1.0)],
    "fill": lambda m, x, y, v: [
        m.fill(x, 1.0),
        m.fill(x, m.tensor(1.0)),
        x.clone().fill_(1.0),
        x.clone().fill_(m.tensor(1.0)),
    ],
    "rsub": lambda m, x, y, v: [2 - x, m.rsub(x, y), m.rsub(x, y, alpha=2)],
    "clamp": lambda m, x, y, v: [m.clamp_min(x, 0), m.clamp_min(x, y), m.clamp_max(x, y)],
    "xlogy": lambda m, x, y, v: [m.xlogy(x, y), m.xlogy(x, 2.0), m.xlogy(2.0, x)],
    "scatter": lambda m, x, y, v: [x.scatter(0, m.tensor([[0, 1]]), 1.0)],
    "sort": lambda m, x, y, v: [x.sort()[0], x.sort(stable=True)[0]],
}
# What PyTorch differentiates as a whole and is composed here.
WHOLE = {
    "products": lambda m, x, y, v: [m.addmv(v, x, v), m.addr(x, v, v), x.clone().addr_(v, v), m.trace(x)],
    "layers": lambda m, x, y, v: [
        m.celu(x),
        m.nn.functional.glu(x),
        m.nn.functional.pixel_shuffle(x.view(4, 1, 1), 2),
        m.nn.functional.fractional_max_pool2d(x[None, None], 1, output_size=2),
        m.nn.functional.fractional_max_pool3d(x.view(1, 1, 1, 2, 2).expand(1, 1, 3, 2, 2), 1, output_size=1),
    ],
    "matrices": lambda m, x, y, v: [
        m.linalg.lu(x)[1],
        m.linalg.lu(x)[2],
        m.linalg.solve(x, v),
        m.renorm(x, 2, 0, 1),
    ],
    "views": lambda m, x, y, v: [
        m.view_copy(x, (4,)),
        m.t_copy(x),
        m.squeeze_copy(x, 0),
        m.slice_scatter(x, m.ones(1, 2), 0, 0, 1),
        m.select_scatter(x, v, 0, 0),
        x.rot90(),
        m.block_diag(x, y),
        x.unsafe_chunk(2)[0],
    ],
    "functions": lambda m, x, y, v: [m.ldexp(x, m.tensor([1, 2])), m.dist(x, y), m.deg2rad(x), m.cdist(x, y)],
    "conjugates": lambda m, x, y, v: [m.complex(x, y).conj(), m.complex(x, y).mH, x.mH, m.polar(x, y)],
    "writes": lambda m, x, y, v: [m.zeros(2, 2).copy_(x), written(x)],
}


def written(x):
    base = x.clone()
    base[0] = 1.0
    return base


@pytest.mark.parametrize("name", [*FORMS, *WHOLE])
def test_names(name):
    make = FORMS.get(name) or WHOLE[name]
    ours, theirs = (make(m, *operands(m)) for m in (rushlight, torch))
    assert [t.grad_fn.name() for t in ours] == [t.grad_fn.name() for t in theirs]


def test_a_composite_names_only_what_it_recorded():
    x = rushlight.ones(2, requires_grad=True)
    y = x * 2
    assert rushlight.nn.functional.rrelu(y, 1.0, 1.0).grad_fn.name() == "RreluWithNoiseBackward0"
    assert y.grad_fn.name() == "MulBackward0"
    # What hands its input back has recorded nothing.
    assert rushlight.unsafe_chunk(y, 1)[0].grad_fn.name() == "UnsafeSplitBackward0"
    assert y.conj().grad_fn.name() == "MulBackward0"


def test_what_computes_nothing_is_its_operand():
    for m in (rushlight, torch):
        x = m.ones(2, requires_grad=True)
        y = x * 2
        for t in (x, y):
            assert +t is t and m.positive(t) is t and m.conj_physical(t) is t and t.conj_physical() is t
        z = m.conj_physical(m.complex(x, y))
        assert z.grad_fn.name() == "ConjPhysicalBackward0"
        (+y).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]


def test_outputs_of_least_squares_have_each_their_history():
    for m in (rushlight, torch):
        for rows, driver in ((4, None), (2, None), (4, "gelsd"), (4, "gels")):
            a = (m.eye(rows, 2) + 1).requires_grad_()
            found = m.linalg.lstsq(a, m.ones(rows, 1), driver=driver)
            assert [t.grad_fn is not None for t in found] == [True, True, False, False]


def test_gradients_flow_through_named_steps():
    x = rushlight.arange(1.0, 5).view(2, 2).requires_grad_()
    (rushlight.addr(x, x[0], x[1]).sum() + (2 - x).sum()).backward()
    assert x.grad.tolist() == [[7.0, 7.0], [3.0, 3.0]]


def test_types_bear_the_names_of_nodes():
    """One operator ends several composites: each has a type of its own, in whichever order they are met."""

    def types(m):
        x = (m.eye(3) * 2).requires_grad_()
        nodes = [f(x).grad_fn for f in (m.cholesky, m.clone, m.t_copy, m.trace, m.sum, m.deg2rad)]
        nodes += [(x * 2).grad_fn, m.rsub(x, x).grad_fn, (x - x).grad_fn]
        assert all(type(node).__name__ == node.name() for node in nodes)
        return [type(node).__name__ for node in nodes]

    assert types(rushlight) == types(torch)
