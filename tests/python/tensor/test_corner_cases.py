"""Sizes of nothing and sizes beyond 64 bits, operands of two dtypes: what PyTorch answers."""

import itertools

import pytest

import rushlight as rl

torch = pytest.importorskip("torch")

LARGE = 2**62


def answer(package, call, operands):
    try:
        result = call(package, *operands)
    except (RuntimeError, TypeError, ValueError) as error:
        return type(error), ""
    tensors = result if isinstance(result, (tuple, list)) else [result]
    return [(str(t.dtype).rpartition(".")[2], tuple(t.shape), str(t.flatten().tolist())) for t in tensors]


def agree(call, *operands):
    """`call(package, *operands)` of both packages."""
    assert answer(rl, call, operands) == answer(torch, call, operands)


@pytest.mark.parametrize("correction", [-1, -1.5, 0, 1])
@pytest.mark.parametrize("name", ["std", "var", "std_mean", "var_mean"])
@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_spread_of_nothing(name, correction):
    for shape, dim in (((0,), None), ((0, 3), 0), ((2, 0), 1)):
        agree(lambda p, *x: getattr(p, name)(p.zeros(x[0]), x[1], correction=correction), shape, dim)
    agree(lambda p: getattr(p, name)(p.zeros(0, dtype=p.complex64), correction=correction))
    agree(lambda p: getattr(p, name)(p.ones(3), correction=correction))


@pytest.mark.parametrize("shape", [(0, 4, 4), (1, 0, 4), (2, 3, 0, 4), (0, 1, 4, 4), (1, 4, 4)])
def test_pixel_unshuffle_of_nothing(shape):
    agree(lambda p: p.nn.functional.pixel_unshuffle(p.zeros(shape), 2))


DTYPES = ["float16", "bfloat16", "float32", "float64", "int64", "bool"]


@pytest.mark.parametrize("a,b", itertools.product(["float32", "float64", "complex64"], DTYPES))
def test_solve_triangular_answers_in_the_matrix_dtype(a, b):
    def solve(p, **options):
        matrix = (p.eye(2) * 2 + 1).to(getattr(p, a))
        right = p.tensor([[1.0, 2.0], [0.0, 4.0]]).to(getattr(p, b))
        return p.linalg.solve_triangular(matrix, right, **options)

    for upper, left in itertools.product([True, False], repeat=2):
        expected = solve(torch, upper=upper, left=left)
        got = solve(rl, upper=upper, left=left)
        assert str(got.dtype).rpartition(".")[2] == a
        torch.testing.assert_close(torch.from_numpy(got.numpy()), expected)


def test_gradients_of_solve_triangular_have_the_operands_dtypes():
    def gradients(p):
        a = (p.eye(2) * 2 + 1).requires_grad_()
        b = p.ones(2, 2, dtype=p.float64).requires_grad_()
        return p.autograd.grad(p.linalg.solve_triangular(a, b, upper=True).sum(), [a, b])

    for got, expected in zip(gradients(rl), gradients(torch), strict=True):
        torch.testing.assert_close(torch.from_numpy(got.numpy()), expected)


@pytest.mark.parametrize("a,b", itertools.permutations(["float32", "float64"], 2))
def test_distances_of_nothing_have_the_first_dtype(a, b):
    for rows, columns in ((0, 3), (2, 0), (2, 3)):
        agree(
            lambda p, *shape: p.cdist(p.ones(shape, dtype=getattr(p, a)), p.ones(shape, dtype=getattr(p, b))),
            rows,
            columns,
        )


@pytest.mark.parametrize("name", ["pinv", "matrix_rank"])
def test_complex_tolerances_are_refused_without_elements_too(name):
    for n, key in itertools.product((0, 2), ("atol", "rtol")):
        agree(lambda p, n, key: getattr(p.linalg, name)(p.eye(n), **{key: p.tensor(0.1 + 0j)}), n, key)


@pytest.mark.parametrize(
    "text",
    [
        "p.zeros(0).resize_(0, LARGE, LARGE)",
        "p.zeros(0).resize_(LARGE, LARGE, 0)",
        "p.zeros(0).resize_(LARGE, 0, LARGE)",
        "p.empty(0, LARGE, LARGE)",
        "p.empty(LARGE, LARGE, 0)",
        "p.empty(LARGE, 0, 4)",
        "p.zeros(0, LARGE, 4)",
        "p.zeros(3).new_zeros(0, LARGE, 4)",
        "p.rand(0, LARGE, 4)",
        "p.zeros(0, 1, 1).expand(0, LARGE, 4) + 1",
        "p.zeros(0).view(LARGE, LARGE, 0)",
        "p.zeros(0, 3).view(0, LARGE, LARGE)",
        "p.zeros(0, 3).expand(LARGE, 0, 3)",
        "p.empty(LARGE, 4)",
    ],
)
def test_sizes_beyond_64_bits(text):
    agree(lambda p: eval(text, {"p": p, "LARGE": LARGE}))


def test_which_of_both_overflows_is_named():
    with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
        rl.empty(0, LARGE, LARGE)
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        rl.empty(LARGE, LARGE, 0)


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_truth_values_are_not_accumulated_as_such(name):
    agree(lambda p: getattr(p, name)(p.ones(2), 0, dtype=p.bool))
    agree(lambda p: getattr(p, name)(p.ones(2).bool(), 0, out=p.ones(2).bool()))
    agree(lambda p: getattr(p.ones(2).bool(), name + "_")(0))
    agree(lambda p: getattr(p, name)(p.ones(2).bool(), 0))
    agree(lambda p: getattr(p, name)(p.ones(()).bool(), 0, dtype=p.bool))
    agree(lambda p: getattr(p, name)(p.ones(0).bool(), 0, dtype=p.bool))


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums_refuse_integers(name):
    for a, b in itertools.product(["int64", "bool", "uint8"], repeat=2):
        agree(lambda p, *d: getattr(p, name)(*(p.ones(2, dtype=getattr(p, t)) for t in d)), a, b)
    assert getattr(rl, name)(rl.ones(2), rl.ones(2, dtype=rl.int64)).dtype == rl.float32


def test_nonzero_wants_a_bool():
    for value in (1, 3, None):
        agree(lambda p, value: p.nonzero(p.ones(2), as_tuple=value), value)
    agree(lambda p: p.nonzero(p.ones(2), as_tuple=True, out=p.empty(0, dtype=p.int64)))


def test_factors_whose_square_is_no_number_are_told_as_they_are():
    with pytest.raises(RuntimeError, match=r"size\(-3\)=4 is not divisible by 4294967296 \* 4294967296"):
        rl.nn.functional.pixel_shuffle(rl.ones(4, 1, 1), 2**32)
    with pytest.raises(RuntimeError, match=r"size\(-3\)=4 is not divisible by 9\b"):
        rl.nn.functional.pixel_shuffle(rl.ones(4, 1, 1), 3)
