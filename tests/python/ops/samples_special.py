"""Rows of the special functions that are found in `torch.special` alone, and of other names for operators."""

from rows import pointwise

UNIT = {"low": -0.9, "high": 0.9}
ALIASES = [
    *map(pointwise, ("absolute", "negative", "fix", "arctan", "arcsinh")),
    *(pointwise(name, **UNIT) for name in ("arcsin", "arccos", "arctanh", "special.erfinv")),
    pointwise("arccosh", low=1.1),
    pointwise("clip", extra=(-1, 1)),
    pointwise("clip", 3),
    *(
        pointwise(f"special.{name}")
        for name in ("exp2", "expm1", "erf", "erfc", "i0", "sinc", "round", "gammaln", "digamma", "psi")
    ),
    pointwise("special.log1p", low=-0.9),
    pointwise("special.logit", low=0.1, high=0.9),
    pointwise("special.polygamma", first=(1,), low=0.2),
    pointwise("special.multigammaln", extra=(2,), low=1.1),
    pointwise("special.xlogy", 2, low=0.2),
    pointwise("divide", 2, low=0.7, high=5, kwargs={"rounding_mode": "floor"}),
    *(pointwise(name, 2, low=0.5) for name in ("divide", "true_divide")),
    *(
        pointwise(name, 2)
        for name in ("arctan2", "subtract", "multiply", "not_equal", "less", "less_equal", "greater")
    ),
    pointwise("greater_equal", 2),
]
# PyTorch has no derivative of these either.
FUNCTIONS = [
    *(pointwise(f"special.bessel_{kind}{n}", low=0.3) for kind in "jy" for n in (0, 1)),
    *(
        pointwise(f"special.{scaled}modified_bessel_k{n}", low=0.3)
        for scaled in ("", "scaled_")
        for n in (0, 1)
    ),
    *(pointwise(f"special.modified_bessel_i{n}") for n in (0, 1)),
    pointwise("special.airy_ai", rtol=2e-5),  # PyTorch is off by so much near -2; SciPy agrees with us
    pointwise("special.spherical_bessel_j0", low=0.3),
    *(
        pointwise(f"special.{shifted}chebyshev_polynomial_{kind}", extra=(4,), low=0.1, high=0.9)
        for shifted in ("", "shifted_")
        for kind in "tuvw"
    ),
    *(
        pointwise(f"special.{name}", extra=(3,), low=-0.9, high=0.9)
        for name in (
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ),
]
ROWS = [*ALIASES, *FUNCTIONS]
