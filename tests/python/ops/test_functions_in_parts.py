"""Functions that are computed in parts (formulas/parts.h): values on both sides of where parts meet, edges,
and that a number's value depends neither on its neighbours nor on how they lie.
"""

import numpy as np
import pytest

import rushlight as torch

# Computed with 30 digits: arguments and value.
EXACT = {
    "special.modified_bessel_k0": [
        (1e-310, 713.917310343812578),
        (1e-05, 11.6288569809443622),
        (0.999, 0.421626857308135159),
        (1.0, 0.421024438240708333),
        (1.001, 0.420423042105491626),
        (7.5, 0.000249177616356114389),
        (700.0, 4.66977643168537688e-306),
    ],
    "special.modified_bessel_k1": [
        (1e-300, 9.99999999999999975e299),
        (1e-05, 99999.9999393557069),
        (0.999, 0.602931276323012037),
        (1.0, 0.601907230197234575),
        (1.001, 0.600885410819682342),
        (7.5, 0.000265297390125289526),
        (700.0, 4.67311079670796611e-306),
    ],
    "special.scaled_modified_bessel_k0": [
        (1e-310, 713.917310343812578),
        (0.999, 1.14495509684573088),
        (1.001, 1.14397171554112747),
        (40.0, 0.197555584957298169),
        (10000000000.0, 0.0000125331413729983382),
    ],
    "special.scaled_modified_bessel_k1": [
        (1e-300, 9.99999999999999975e299),
        (0.999, 1.63729901430170275),
        (1.001, 1.63501008607075178),
        (40.0, 0.200009967254433484),
        (10000000000.0, 0.0000125331413736249953),
    ],
    "special.airy_ai": [
        (-30.25, -0.236900428491559731),
        (-4.75, 0.375932034329142133),
        (-4.5, 0.292152781055959467),
        (-4.25, 0.127782927228267284),
        (-1.0, 0.535560883292352119),
        (-1e-10, 0.35502805391369918),
        (0.0, 0.355028053887817239),
        (1.5, 0.0717494970081054097),
        (2.0, 0.0349241304232743791),
        (2.25, 0.0236546585577474462),
        (20.0, 1.69167286867054031e-27),
        (100.0, 2.63448215208818449e-291),
    ],
    "special.spherical_bessel_j0": [
        (1e-10, 1.0),
        (1.0, 0.841470984807896507),
        (20.5, 0.0486258436233560609),
        (100000.0, 3.57487979720165093e-7),
    ],
    "special.zeta": [
        (1.25, 0.5, 6.33396752920820211),
        (2.0, 1.0, 1.64493406684822644),
        (3.5, 1e-06, 1.00000000000000016e21),
        (30.0, 0.75, 5599.66567228051317),
        (12.0, 40.0, 2.48033786356248196e-19),
        (100.0, 1.5, 2.45965442657982927e-18),
        (2.5, 1000000000000.0, 6.66666666667166667e-19),
        (3.0, -1.5, 0.118102025820863702),
        (4.0, -2.25, 259.742503864785723),
    ],
    "special.gammainc": [
        (0.5, 0.25, 0.520499877813046538),
        (0.001, 2.0, 0.999951023082169019),
        (3.0, 2.5, 0.456186884116670482),
        (3.0, 11.5, 0.99920352139080766),
        (3.0, 30.0, 0.999999999954989834),
        (19.5, 5.0, 6.99838195492908318e-7),
        (19.5, 40.0, 0.999880251226450518),
        (20.0, 20.0, 0.529742733160760013),
        (50.0, 45.0, 0.246802034400170273),
        (50.0, 75.0, 0.999096067957645991),
        (1000.0, 990.0, 0.379521378537963941),
    ],
    "special.gammaincc": [
        (0.5, 0.25, 0.479500122186953462),
        (0.001, 2.0, 0.0000489769178309814798),
        (3.0, 2.5, 0.543813115883329518),
        (3.0, 11.5, 0.000796478609192339631),
        (3.0, 30.0, 4.50101664801212398e-11),
        (19.5, 5.0, 0.999999300161804507),
        (19.5, 40.0, 0.000119748773549482442),
        (20.0, 20.0, 0.470257266839239987),
        (50.0, 45.0, 0.753197965599829727),
        (50.0, 75.0, 0.000903932042354009086),
        (1000.0, 990.0, 0.620478621462036059),
    ],
}
INF, NAN = np.inf, np.nan
EDGES = {
    "special.modified_bessel_k0": [(0.0, INF), (-0.0, INF), (-1.0, NAN), (INF, 0.0), (-INF, NAN), (NAN, NAN)],
    "special.modified_bessel_k1": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "special.scaled_modified_bessel_k0": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "special.scaled_modified_bessel_k1": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "special.airy_ai": [(INF, NAN), (-INF, NAN), (NAN, NAN), (150.0, 0.0)],
    "special.spherical_bessel_j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "special.zeta": [
        (1.0, 2.0, INF),
        (0.5, 2.0, NAN),
        (2.0, 0.0, INF),
        (2.0, -3.0, INF),
        (2.5, -0.5, NAN),
        (NAN, 1.0, NAN),
        (2.0, NAN, NAN),
    ],
    "special.gammainc": [
        (0.0, 1.0, 1.0),
        (0.0, 0.0, NAN),
        (2.0, 0.0, 0.0),
        (2.0, INF, 1.0),
        (INF, 2.0, 0.0),
        (INF, INF, NAN),
        (-1.0, 2.0, NAN),
        (2.0, -1.0, NAN),
        (NAN, 1.0, NAN),
        (1.0, NAN, NAN),
        (2.0, 1e30, 1.0),
    ],
}
EDGES["special.gammaincc"] = [(a, x, 1 - value) for a, x, value in EDGES["special.gammainc"]]
# x, degree and value; degrees above the limits of the closed forms, and edges.
POLYNOMIALS = {
    "chebyshev_polynomial_t": [
        (0.5, 2, -0.5),
        (3.0, 4, 577.0),
        (0.3, 40, 0.929159188651799),
        (1.0, 99, 1.0),
        (-1.0, 99, -1.0),
    ],
    "chebyshev_polynomial_u": [(0.5, 2, 0.0), (3.0, 3, 204.0), (1.0, 50, 51.0), (-1.0, 51, -52.0)],
    "chebyshev_polynomial_v": [(0.5, 1, 0.0), (1.0, 30, 1.0), (-1.0, 30, 61.0)],
    "chebyshev_polynomial_w": [(0.5, 1, 2.0), (1.0, 30, 61.0), (-1.0, 31, -1.0)],
    "shifted_chebyshev_polynomial_t": [(0.75, 2, -0.5), (2.0, 4, 577.0), (0.0, 7, -1.0), (1.0, 9, 1.0)],
    "shifted_chebyshev_polynomial_u": [(0.75, 2, 0.0), (1.0, 50, 51.0), (0.0, 51, -52.0)],
    "hermite_polynomial_h": [(0.5, 3, -5.0), (2.0, 0, 1.0), (1.0, -1, 0.0), (1.0, 600, NAN)],
    "hermite_polynomial_he": [(0.5, 3, -1.375), (2.0, 1, 2.0), (1.0, 600, NAN)],
    "laguerre_polynomial_l": [(0.5, 2, 0.125), (0.0, 1000000, 1.0), (1.0, -2, 0.0)],
    "legendre_polynomial_p": [(0.5, 2, -0.125), (-1.0, 1000001, -1.0), (1.0, 1000000, 1.0), (NAN, 5, NAN)],
}
ROWS = {**EXACT, **{f"special.{name}": rows for name, rows in POLYNOMIALS.items()}}


def function(name):
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found


def columns(rows, dtype="float64"):
    """Arguments and values, more than a block of them."""
    *arguments, values = zip(*rows)
    return [torch.from_numpy(np.array(column * 9, dtype)) for column in arguments], np.array(values * 9)


@pytest.mark.parametrize("name", list(ROWS))
def test_values(name):
    arguments, expected = columns(ROWS[name])
    tolerance = 5e-10 if "polynomial" in name else 1e-12 if "gamma" in name else 2e-14
    np.testing.assert_allclose(function(name)(*arguments).numpy(), expected, rtol=tolerance, atol=1e-300)


@pytest.mark.parametrize("name", list(EXACT))
def test_floats_are_rounded_doubles(name):
    singles, _ = columns(EXACT[name], "float32")
    doubles = function(name)(*(x.double() for x in singles)).numpy()
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(function(name)(*singles).numpy(), doubles.astype("float32"), rtol=1.2e-7)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", list(EDGES))
def test_edges(name, dtype):
    arguments, expected = columns(EDGES[name], dtype)
    np.testing.assert_array_equal(function(name)(*arguments).numpy(), expected.astype(dtype))


@pytest.mark.parametrize("name", list(ROWS))
def test_neighbours_and_layout_say_nothing(name):
    arguments, _ = columns(ROWS[name])
    whole = function(name)(*arguments).numpy()
    alone = [function(name)(*(x[i] for x in arguments)).item() for i in range(len(ROWS[name]))]
    np.testing.assert_array_equal(whole[: len(alone)], alone)
    spread = [torch.stack([x, x], -1)[:, 0] for x in arguments]
    np.testing.assert_array_equal(function(name)(*spread).numpy(), whole)
    assert function(name)(*(x[:0] for x in arguments)).shape == (0,)
    halves = function(name)(*(x.bfloat16() for x in arguments))
    wide = function(name)(*(x.bfloat16().float() for x in arguments)).bfloat16()
    np.testing.assert_array_equal(halves.float().numpy(), wide.float().numpy())
