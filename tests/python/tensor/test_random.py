"""Random numbers: equal seeds give PyTorch's numbers, whatever the operator, dtype and layout."""

import math

import pytest

import rushlight

torch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]


def both(make, seed=1234):
    """make(module) with each module's default stream started from one seed."""
    results = []
    for module in (rushlight, torch):
        module.default_generator.manual_seed(seed)
        results.append(make(module))
    return results


def values(tensor):
    return tensor.reshape(-1).tolist()


def assert_same(make, seed=1234):
    ours, theirs = both(make, seed)
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert str(ours.dtype) == str(theirs.dtype)
    assert values(ours) == values(theirs)
    # Both streams have moved equally far.
    assert rushlight.get_rng_state().tolist() == torch.get_rng_state().tolist()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("size", [(), (1,), (15,), (16,), (17,), (3, 7), (1000,), (0, 3)])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_factories(name, size, dtype):
    assert_same(lambda m: getattr(m, name)(size, dtype=getattr(m, dtype)))


def test_factories_take_sizes_as_arguments():
    assert_same(lambda m: m.rand(2, 3))
    assert_same(lambda m: m.randn([2, 3]))
    assert_same(lambda m: m.rand(size=(4,)))
    assert_same(lambda m: m.normal(1.0, 2.0, (20,)))
    assert rushlight.rand(2, requires_grad=True).requires_grad


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    assert_same(lambda m: m.rand(9, dtype=getattr(m, dtype)))
    assert_same(lambda m: m.randn(9, dtype=getattr(m, dtype)))


@pytest.mark.parametrize(
    "arguments",
    [(10, (20,)), (-5, 100, (20,)), (0, 2**28 - 1, (20,)), (0, 2**28, (20,)), (-(2**40), 2**62, (20,))],
)
def test_randint(arguments):
    assert_same(lambda m: m.randint(*arguments))


@pytest.mark.parametrize("dtype", INTS + FLOATS)
def test_randint_dtypes(dtype):
    assert_same(lambda m: m.randint(0, 100, (50,), dtype=getattr(m, dtype)))
    assert_same(lambda m: m.randint_like(m.zeros(50, dtype=getattr(m, dtype)), 3, 90))


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_randperm(n):
    assert_same(lambda m: m.randperm(n))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float16"])
def test_randperm_dtypes(dtype):
    assert_same(lambda m: m.randperm(100, dtype=getattr(m, dtype)))


FILLS = {
    "uniform_": (),
    "normal_": (0.5, 2.0),
    "exponential_": (1.5,),
    "cauchy_": (0.5, 2.0),
    "log_normal_": (0.5, 0.25),
    "geometric_": (0.3,),
    "bernoulli_": (0.3,),
    "random_": (),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FILLS)
def test_fills(name, dtype):
    assert_same(lambda m: getattr(m.empty(37, dtype=getattr(m, dtype)), name)(*FILLS[name]))


LAYOUTS = {
    "transposed": lambda m: m.zeros(6, 5).t(),
    "permuted": lambda m: m.zeros(4, 3, 5).permute(2, 0, 1),
    "strided": lambda m: m.zeros(6, 10)[:, ::2],
    "strided, turned": lambda m: m.zeros(6, 10)[:, ::2].t(),
    "offset": lambda m: m.zeros(40)[3:],
    "channels last": lambda m: m.zeros(2, 3, 4, 5).contiguous(memory_format=m.channels_last),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FILLS)
def test_fills_of_strided_tensors(name, layout):
    assert_same(lambda m: getattr(LAYOUTS[layout](m), name)(*FILLS[name]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["rand_like", "randn_like"])
def test_like(name, layout):
    assert_same(lambda m: getattr(m, name)(LAYOUTS[layout](m)))


@pytest.mark.parametrize("arguments", [(), (7,), (3, 9), (-(2**63), None)])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_random_(dtype, arguments):
    assert_same(lambda m: m.empty(20, dtype=getattr(m, dtype)).random_(*arguments))


def test_bernoulli():
    assert_same(lambda m: m.bernoulli(m.linspace(0, 1, 50)))
    assert_same(lambda m: m.bernoulli(m.linspace(0, 1, 50).double()))
    assert_same(lambda m: m.bernoulli(m.zeros(50), 0.25))
    assert_same(lambda m: m.zeros(50, dtype=m.int64).bernoulli_(m.full((50,), 0.5)))
    assert_same(lambda m: m.zeros(5, 6).t().bernoulli_(m.linspace(0, 1, 5)))
    for dtype in ("float16", "bfloat16", "float32", "float64"):  # more than one piece of the stream
        p = torch.linspace(0, 1, 3000).numpy()
        assert_same(lambda m, p=p, d=dtype: m.empty(3000).bernoulli_(m.from_numpy(p).to(getattr(m, d))))


def test_normal_with_tensors():
    assert_same(lambda m: m.normal(m.arange(20.0), 2.0))
    assert_same(lambda m: m.normal(1.0, m.arange(1.0, 21.0)))
    assert_same(lambda m: m.normal(m.zeros(4, 1), m.ones(5)))


@pytest.mark.parametrize("replacement", [False, True])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("shape", [(6,), (4, 6)])
def test_multinomial(shape, samples, replacement):
    weights = [float(i + 1) for i in range(math.prod(shape))]
    assert_same(lambda m: m.multinomial(m.tensor(weights).reshape(shape), samples, replacement))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("categories", [65, 128, 5000])
def test_few_samples_of_many_categories(dtype, categories):
    """A few look at running sums in steps, many at all of them."""

    def weights(m):
        w = m.arange(categories) % 7
        w[-3:] = 0
        return w.to(getattr(m, dtype))

    assert_same(lambda m: m.multinomial(weights(m), 3, True))
    w = weights(rushlight)
    rushlight.manual_seed(1)
    few = rushlight.multinomial(w, 4, True)
    rushlight.manual_seed(1)
    assert rushlight.equal(few, rushlight.multinomial(w, categories, True)[:4])
    w[categories // 2] = -1
    with pytest.raises(RuntimeError, match="entry < 0"):
        rushlight.multinomial(w, 4, True)
    for value in (math.inf, math.nan):
        w[categories // 2] = value
        with pytest.raises(RuntimeError, match="infinity or NaN"):
            rushlight.multinomial(w, 4, True)


def test_slopes_of_samples_do_not_depend_on_their_neighbours():
    a = rushlight.tensor([0.3, 2.0, 1500.0, -1.0, 40.0, 0.01, 7.0, 900.0, 3.0], dtype=rushlight.float64)
    x = rushlight.tensor([0.2, 5.0, 1480.0, 1.0, 39.0, 1e-30, 0.0, 950.0, math.nan], dtype=rushlight.float64)
    slopes = rushlight.ops.aten._standard_gamma_grad(a, x)
    alone = rushlight.stack([rushlight.ops.aten._standard_gamma_grad(*pair) for pair in zip(a, x)])
    assert rushlight.equal(slopes.nan_to_num(-9), alone.nan_to_num(-9))
    assert slopes.isnan().tolist() == [False] * 3 + [True] + [False] * 4 + [True] and slopes[6] == 0
    share = rushlight.tensor([0.2, 0.9, 0.5, 1.0, 0.3, 0.01, 0.6], dtype=rushlight.float64)
    alpha = rushlight.tensor([0.5, 3.0, 60.0, 2.0, -1.0, 0.1, 2000.0], dtype=rushlight.float64)
    total = alpha.abs() + rushlight.tensor([1.0, 0.5, 70.0, 1.0, 2.0, 5.0, 1500.0], dtype=rushlight.float64)
    slopes = rushlight.ops.aten._dirichlet_grad(share, alpha, total)
    alone = rushlight.stack([rushlight.ops.aten._dirichlet_grad(*row) for row in zip(share, alpha, total)])
    assert rushlight.equal(slopes.nan_to_num(-9), alone.nan_to_num(-9))
    assert slopes[3] == 0 and slopes.isnan().tolist() == [False] * 4 + [True] + [False] * 2


def test_poisson_and_binomial():
    assert_same(lambda m: m.poisson(m.arange(0.0, 50.0)))
    assert_same(lambda m: m.binomial(m.arange(0.0, 50.0), m.linspace(0, 1, 50)))


def test_rrelu():
    assert_same(lambda m: m.rrelu(m.arange(-20.0, 21.0) / 8, 0.1, 0.3, True))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"])
def test_dropout(name, dtype):
    assert_same(lambda m: getattr(m, name)(m.ones(5, 4, 3, dtype=getattr(m, dtype)), 0.3, True))
    assert_same(lambda m: getattr(m, name + "_")(m.ones(5, 4, 3, dtype=getattr(m, dtype)), 0.3, True))
    x = rushlight.ones(3, 2)
    assert getattr(rushlight, name)(x, 0.5, False) is x
    assert values(getattr(rushlight, name)(x, 1.0, True)) == values(
        getattr(torch, name)(torch.ones(3, 2), 1.0, True)
    )


def test_dropout_gradient_is_its_mask():
    x = rushlight.ones(100, requires_grad=True)
    y = rushlight.dropout(x, 0.5, True)
    y.sum().backward()
    assert values(x.grad) == values(y)


def test_states_are_interchangeable():
    torch.default_generator.manual_seed(5)
    torch.randn(7)
    rushlight.set_rng_state(rushlight.tensor(torch.get_rng_state().tolist(), dtype=rushlight.uint8))
    assert values(rushlight.randn(20)) == values(torch.randn(20))


def test_generators():
    ours, theirs = rushlight.Generator().manual_seed(3), torch.Generator().manual_seed(3)
    assert ours.initial_seed() == 3
    assert values(rushlight.rand(5, generator=ours)) == values(torch.rand(5, generator=theirs))
    saved = ours.get_state()
    first = values(rushlight.rand(5, generator=ours))
    ours.set_state(saved)
    assert values(rushlight.rand(5, generator=ours)) == first


ERRORS = {
    "uniform order": lambda m: m.empty(3).uniform_(3, 2),
    "uniform range": lambda m: m.empty(3).uniform_(-3e38, 3e38),
    "uniform bounds": lambda m: m.empty(3, dtype=m.half).uniform_(-7e4, 2),
    "uniform int": lambda m: m.empty(3, dtype=m.int).uniform_(),
    "normal std": lambda m: m.empty(3).normal_(0, -1),
    "normal int": lambda m: m.empty(3, dtype=m.int).normal_(),
    "exponential": lambda m: m.empty(3).exponential_(-1),
    "exponential int": lambda m: m.empty(3, dtype=m.int).exponential_(1),
    "cauchy": lambda m: m.empty(3).cauchy_(0, -1),
    "log_normal": lambda m: m.empty(3).log_normal_(0, 0),
    "geometric": lambda m: m.empty(3).geometric_(0),
    "bernoulli": lambda m: m.empty(3).bernoulli_(1.5),
    "bernoulli int p": lambda m: m.bernoulli(m.tensor([1, 0, 1])),
    "randperm negative": lambda m: m.randperm(-1),
    "randperm uint8": lambda m: m.randperm(300, dtype=m.uint8),
    "randperm half": lambda m: m.randperm(3000, dtype=m.half),
    "randperm bool": lambda m: m.randperm(3, dtype=m.bool),
    "randint empty": lambda m: m.randint(5, 5, (2,)),
    "randint bounds": lambda m: m.randint(300, (2,), dtype=m.uint8),
    "random_ bool": lambda m: m.empty(3, dtype=m.bool).random_(5, 100),
    "overlap": lambda m: m.zeros(1, 3).expand(2, 3).uniform_(),
    "normal tensor std": lambda m: m.normal(m.zeros(3), m.tensor([1.0, -1, 1])),
    "multinomial negative": lambda m: m.multinomial(m.tensor([1.0, -1]), 1),
    "multinomial zero": lambda m: m.multinomial(m.tensor([0.0, 0]), 1),
    "multinomial too many": lambda m: m.multinomial(m.tensor([1.0, 1]), 3),
    "multinomial none": lambda m: m.multinomial(m.tensor([1.0, 1]), 0),
    "multinomial inf": lambda m: m.multinomial(m.tensor([1.0, float("inf")]), 3, True),
    "multinomial int": lambda m: m.multinomial(m.tensor([1, 2]), 1),
    "multinomial dims": lambda m: m.multinomial(m.ones(1, 2, 3), 1),
    "poisson": lambda m: m.poisson(m.tensor([-1.0])),
    "binomial int": lambda m: m.binomial(m.tensor([3]), m.tensor([0.2])),
    "dropout": lambda m: m.dropout(m.ones(3), 1.5, True),
    "dropout int": lambda m: m.dropout(m.ones(3, dtype=m.int), 0.5, True),
    "feature_dropout dims": lambda m: m.feature_dropout(m.ones(3), 0.5, True),
    "leaf": lambda m: m.zeros(3, requires_grad=True).uniform_(),
    "state size": lambda m: m.Generator().set_state(m.zeros(10, dtype=m.uint8)),
    "state content": lambda m: m.Generator().set_state(m.zeros(5056, dtype=m.uint8)),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    with pytest.raises(Exception) as theirs:
        ERRORS[case](torch)
    with pytest.raises(type(theirs.value)) as ours:
        ERRORS[case](rushlight)
    assert str(theirs.value).split("\n")[0].split(".")[0] in str(ours.value)


def test_gradients_stop_at_random_numbers():
    x = rushlight.ones(3, requires_grad=True)
    y = (x * 2).normal_()
    y.sum().backward()
    assert values(x.grad) == [0, 0, 0]
    mean = rushlight.zeros(3, requires_grad=True)
    rushlight.normal(mean, 1.0).sum().backward()
    assert values(mean.grad) == [0, 0, 0]


@pytest.mark.parametrize("bounds", [(2**63 - 1, None), (2**63 - 1000, None)])
def test_float_bounds_at_the_end_of_integers(bounds):
    with pytest.raises(RuntimeError, match="random_ expects 'from'"):
        rushlight.ones(3).random_(*bounds)


def test_coins_for_operands_in_another_order_are_pytorchs():
    """The result is contiguous, and drawn in that order."""

    def program(m):
        m.manual_seed(0)
        tossed = m.bernoulli(m.zeros(4, 3).t(), 0.4)
        return tossed.stride(), tossed.tolist()

    assert program(rushlight) == program(torch)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("categories", [7, 100, 1000])
def test_multinomial_takes_equal_keys_in_pytorchs_order(dtype, categories):
    """Halves have many equal keys, and categories of no weight all have the same."""
    for samples in {1, categories // 2, categories}:
        drawn = []
        for library in (torch, rushlight):
            library.manual_seed(categories)
            weights = library.rand(3, categories)
            weights[1, ::2] = 0
            drawn.append(library.multinomial(weights.to(getattr(library, dtype)), samples).tolist())
        assert drawn[0] == drawn[1]


@pytest.mark.parametrize("layout", ["plain", "transposed", "strided"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda m, x: m.nn.init.trunc_normal_(x),
        lambda m, x: m.nn.init.trunc_normal_(x, 1.0, 0.5, -0.3, 0.2),
        lambda m, x: m.nn.functional.dropout1d(x.fill_(1).unsqueeze(-1), 0.4),
        lambda m, x: m.nn.functional.feature_alpha_dropout(x.fill_(1).unsqueeze(-1), 0.4, True),
    ],
)
def test_order_in_which_memory_of_any_layout_is_drawn(draw, dtype, layout):
    def run(library):
        library.manual_seed(7)
        x = library.zeros(18, 26, dtype=getattr(library, dtype))
        x = {"plain": x, "transposed": x.t(), "strided": x[:, ::2]}[layout]
        return draw(library, x).double(), library.rand(1).item()

    (expected, after), (found, ours_after) = run(torch), run(rushlight)
    assert after == ours_after
    bound = 1e-6 if dtype == "float32" else 1e-2
    assert (torch.tensor(found.tolist()) - expected).abs().max() <= bound


def test_dropout_of_integers_is_refused():
    for dtype in (rushlight.int64, rushlight.bool):
        with pytest.raises(RuntimeError, match="result type Float can't be cast"):
            rushlight.native_dropout(rushlight.ones(3, dtype=dtype), 0.5, True)


@pytest.mark.parametrize("n", [257, 258, 1000])
def test_permutations_of_numbers_that_bfloat16_rounds(n):
    assert_same(lambda m: m.randperm(n, dtype=m.bfloat16).float())
