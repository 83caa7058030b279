"""Products of matrices of doubles, at and around the sizes of panels and blocks."""

import itertools

import numpy as np
import pytest

import rushlight as torch

SIZES = [
    (16, 300, 64),
    (17, 16, 400),
    (168, 96, 192),
    (169, 97, 193),
    (336, 40, 385),
    (23, 3090, 20),
    (500, 33, 31),
]


def whole_numbers(generator, *sizes):
    """Their sums are exact in any order."""
    return torch.tensor(generator.integers(-9, 10, sizes)).double()


@pytest.mark.parametrize("m, n, k", SIZES)
@pytest.mark.parametrize("threads", [1, 2])
def test_products_are_exact(m, n, k, threads):
    generator = np.random.default_rng(m)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for a_turned, b_turned in itertools.product([False, True], repeat=2):
            a, b = whole_numbers(generator, m, k), whole_numbers(generator, k, n)
            expected = a.long().numpy() @ b.long().numpy()
            a, b = (t.t().contiguous().t() if turned else t for t, turned in ((a, a_turned), (b, b_turned)))
            assert np.array_equal((a @ b).numpy(), expected)
            c = whole_numbers(generator, m, n)
            assert np.array_equal(
                torch.addmm(c, a, b, beta=3, alpha=-2).numpy(), 3 * c.numpy() - 2 * expected
            )
            out = torch.full((m, n + 5), torch.nan, dtype=torch.double)[:, 2 : n + 2]
            assert np.array_equal(torch.mm(a, b, out=out).numpy(), expected)
    finally:
        torch.set_num_threads(before)


def test_infinity_and_nan_stay_in_their_rows():
    a, b = torch.ones(64, 200, dtype=torch.double), torch.ones(200, 70, dtype=torch.double)
    a[3, 199], a[5, 0], b[7, 11] = torch.inf, torch.nan, torch.inf
    product = a @ b
    assert product[5].isnan().all() and product[3].isinf().all()
    others = torch.ones(64, 70, dtype=torch.bool)
    others[3], others[5], others[:, 11] = False, False, False
    assert (product[others] == 200).all() and product[:5, 11].isinf().all()
    nothing = torch.addmm(torch.full((64, 70), torch.nan, dtype=torch.double), a, b, beta=0)
    assert torch.equal(nothing.nan_to_num(7), product.nan_to_num(7))


def test_rounding_is_that_of_double():
    generator = np.random.default_rng(0)
    a, b = generator.standard_normal((200, 700)), generator.standard_normal((700, 150))
    exact = (a.astype(np.longdouble) @ b.astype(np.longdouble)).astype(np.double)
    error = abs((torch.tensor(a) @ torch.tensor(b)).numpy() - exact)
    assert (error <= 700 * np.finfo(np.double).eps * (abs(a) @ abs(b))).all()
    assert error.max() < 2e-13
