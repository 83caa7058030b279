"""Rows of the pointwise operators: the name, the interval that inputs come from, the other arguments."""

from rows import INTS, pointwise

UNARY = [
    pointwise("abs"),
    pointwise("neg"),
    pointwise("exp"),
    pointwise("exp2"),
    pointwise("expm1"),
    pointwise("log", low=0.1),
    pointwise("log2", low=0.1),
    pointwise("log10", low=0.1),
    pointwise("log1p", low=-0.9),
    pointwise("sin"),
    pointwise("cos"),
    pointwise("tan"),
    pointwise("asin", low=-0.9, high=0.9),
    pointwise("acos", low=-0.9, high=0.9),
    pointwise("atan"),
    pointwise("sinh"),
    pointwise("cosh"),
    pointwise("tanh"),
    pointwise("asinh"),
    pointwise("acosh", low=1.1),
    pointwise("atanh", low=-0.9, high=0.9),
    pointwise("sqrt", low=0.1),
    pointwise("rsqrt", low=0.1),
    pointwise("square"),
    pointwise("reciprocal", low=0.2),
    pointwise("floor"),
    pointwise("ceil"),
    pointwise("trunc"),
    pointwise("frac"),
    pointwise("round"),
    pointwise("round", kwargs={"decimals": 2}),
    pointwise("round", kwargs={"decimals": -1}, low=-50, high=50),
    pointwise("sign"),
    pointwise("sgn"),
    pointwise("sigmoid"),
    pointwise("erf"),
    pointwise("erfc"),
    pointwise("erfinv", low=-0.9, high=0.9),
    pointwise("lgamma", low=0.2),
    pointwise("digamma", low=0.2),
    pointwise("digamma"),
    pointwise("sinc"),
    pointwise("deg2rad"),
    pointwise("rad2deg"),
    pointwise("i0"),
    pointwise("logit", low=0.1, high=0.9),
    pointwise("logit", extra=(0.2,), low=0.1, high=0.9),
    pointwise("nan_to_num"),
    pointwise("mvlgamma", extra=(2,), low=1.1),
    pointwise("positive"),
    pointwise("polygamma", first=(1,), low=0.2),
    pointwise("polygamma", first=(3,), low=0.2),
    pointwise("clamp", extra=(-1, 1)),
    pointwise("clamp", kwargs={"min": 0.5}),
    pointwise("clamp_min", extra=(0.5,)),
    pointwise("clamp_max", extra=(0.5,)),
    pointwise("pow", extra=(2,)),
    pointwise("pow", extra=(3,)),
    pointwise("pow", extra=(0.5,), low=0.1),
    pointwise("pow", extra=(-1.5,), low=0.1),
    pointwise("float_power", extra=(1.5,), low=0.1),
    pointwise("special.i0e"),
    pointwise("special.i1"),
    pointwise("special.i1e"),
    pointwise("special.erfcx"),
    pointwise("special.ndtri", low=0.1, high=0.9),
    pointwise("special.ndtr"),
    pointwise("special.log_ndtr"),
    pointwise("special.entr", low=0.1),
    pointwise("special.expit"),
]

TESTS = [pointwise(n) for n in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal")]
TESTS += [pointwise("logical_not")]

BINARY = [
    pointwise("add", 2),
    pointwise("add", 2, kwargs={"alpha": 2}),
    pointwise("sub", 2),
    pointwise("sub", 2, kwargs={"alpha": 3}),
    pointwise("rsub", 2),
    pointwise("mul", 2),
    pointwise("div", 2, low=0.5),
    pointwise("div", 2, low=0.7, high=5, kwargs={"rounding_mode": "floor"}),
    pointwise("div", 2, low=0.7, high=5, kwargs={"rounding_mode": "trunc"}),
    pointwise("floor_divide", 2, low=1, high=9),
    pointwise("remainder", 2, low=1, high=9),
    pointwise("fmod", 2, low=1, high=9),
    pointwise("pow", 2, low=0.5),
    pointwise("atan2", 2),
    pointwise("hypot", 2),
    pointwise("maximum", 2),
    pointwise("minimum", 2),
    pointwise("fmax", 2),
    pointwise("fmin", 2),
    pointwise("logaddexp", 2),
    pointwise("logaddexp2", 2),
    pointwise("xlogy", 2, low=0.2),
    pointwise("copysign", 2),
    pointwise("special.xlog1py", 2, low=0.2),
    pointwise("nextafter", 2),
    pointwise("ldexp", 2),
    pointwise("ldexp", 2, dtypes=INTS),
    pointwise("heaviside", 2),
    pointwise("igamma", 2, low=0.3, constant=(0,)),
    pointwise("igammac", 2, low=0.3, constant=(0,)),
    pointwise("special.zeta", 2, low=1.5, constant=(0,)),
    pointwise("clamp_min", 2),
    pointwise("clamp_max", 2),
    pointwise("float_power", 2, low=0.5),
]
BINARY += [
    pointwise(n, 2) for n in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
]

INTEGER = [
    pointwise(n, 2, low=1, high=9, dtypes=INTS)
    for n in (
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_left_shift",
        "bitwise_right_shift",
        "gcd",
        "lcm",
    )
]
INTEGER += [
    pointwise("bitwise_not", low=1, high=9, dtypes=INTS, refused={"unsigned": "all bits above are set"})
]

TERNARY = [
    pointwise("lerp", 3),
    pointwise("addcmul", 3),
    pointwise("addcmul", 3, kwargs={"value": 2}),
    pointwise("addcdiv", 3, low=0.5),
    pointwise("addcdiv", 3, low=0.5, kwargs={"value": -2}),
    pointwise("clamp", 3),
]

ROWS = [*UNARY, *TESTS, *BINARY, *INTEGER, *TERNARY]
