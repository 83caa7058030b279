"""Rows for the pointwise operators: the name, the interval that inputs come from, the other arguments."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Row:
    name: str  # dotted, below the top module
    inputs: int = 1
    low: float = -3.0
    high: float = 3.0
    kwargs: dict = field(default_factory=dict)
    extra: tuple = ()  # positional arguments after the tensors
    integers: bool = True  # also called with int64
    inplace: bool = True
    grad: bool = True
    first: tuple = ()  # positional arguments before the tensors


UNARY = [
    Row("abs"),
    Row("neg"),
    Row("exp"),
    Row("exp2"),
    Row("expm1"),
    Row("log", low=0.1),
    Row("log2", low=0.1),
    Row("log10", low=0.1),
    Row("log1p", low=-0.9),
    Row("sin"),
    Row("cos"),
    Row("tan"),
    Row("asin", low=-0.9, high=0.9),
    Row("acos", low=-0.9, high=0.9),
    Row("atan"),
    Row("sinh"),
    Row("cosh"),
    Row("tanh"),
    Row("asinh"),
    Row("acosh", low=1.1),
    Row("atanh", low=-0.9, high=0.9),
    Row("sqrt", low=0.1),
    Row("rsqrt", low=0.1),
    Row("square"),
    Row("reciprocal", low=0.2),
    Row("floor"),
    Row("ceil"),
    Row("trunc"),
    Row("frac", integers=False),
    Row("round"),
    Row("round", kwargs={"decimals": 2}),
    Row("round", kwargs={"decimals": -1}, low=-50, high=50),
    Row("sign"),
    Row("sgn"),
    Row("sigmoid"),
    Row("erf"),
    Row("erfc"),
    Row("erfinv", low=-0.9, high=0.9),
    Row("lgamma", low=0.2),
    Row("digamma", low=0.2),
    Row("digamma"),
    Row("sinc"),
    Row("deg2rad"),
    Row("rad2deg"),
    Row("i0"),
    Row("logit", low=0.1, high=0.9),
    Row("logit", extra=(0.2,), low=0.1, high=0.9),
    Row("nan_to_num"),
    Row("mvlgamma", extra=(2,), low=1.1),
    Row("positive", inplace=False),
    Row("polygamma", first=(1,), low=0.2, inplace=False),
    Row("polygamma", first=(3,), low=0.2, inplace=False),
    Row("clamp", extra=(-1, 1)),
    Row("clamp", kwargs={"min": 0.5}),
    Row("clamp_min", extra=(0.5,)),
    Row("clamp_max", extra=(0.5,)),
    Row("pow", extra=(2,)),
    Row("pow", extra=(3,)),
    Row("pow", extra=(0.5,), low=0.1),
    Row("pow", extra=(-1.5,), low=0.1),
    Row("float_power", extra=(1.5,), low=0.1, inplace=False),
    Row("special.i0e", inplace=False),
    Row("special.i1", inplace=False),
    Row("special.i1e", inplace=False),
    Row("special.erfcx", inplace=False),
    Row("special.ndtri", low=0.1, high=0.9, inplace=False),
    Row("special.ndtr", inplace=False),
    Row("special.log_ndtr", inplace=False),
    Row("special.entr", low=0.1, inplace=False),
    Row("special.expit", inplace=False),
]

TESTS = [
    Row(n, grad=False, inplace=False)
    for n in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal")
]
TESTS += [Row("logical_not", grad=False)]

BINARY = [
    Row("add"),
    Row("add", kwargs={"alpha": 2}),
    Row("sub"),
    Row("sub", kwargs={"alpha": 3}),
    Row("rsub", inplace=False),
    Row("mul"),
    Row("div", low=0.5),
    Row("div", low=0.7, high=5, kwargs={"rounding_mode": "floor"}),
    Row("div", low=0.7, high=5, kwargs={"rounding_mode": "trunc"}),
    Row("floor_divide", low=1, high=9, grad=False),
    Row("remainder", low=1, high=9),
    Row("fmod", low=1, high=9),
    Row("pow", low=0.5),
    Row("atan2"),
    Row("hypot", integers=False),
    Row("maximum", inplace=False),
    Row("minimum", inplace=False),
    Row("fmax", inplace=False),
    Row("fmin", inplace=False),
    Row("logaddexp", inplace=False, integers=False),
    Row("logaddexp2", inplace=False, integers=False),
    Row("xlogy", low=0.2),
    Row("copysign"),
    Row("special.xlog1py", low=0.2, inplace=False),
    Row("nextafter", grad=False, integers=False),
    Row("ldexp", inplace=False),
    Row("heaviside", grad=False),
    Row("igamma", low=0.3, grad=False, integers=False),
    Row("igammac", low=0.3, grad=False, integers=False),
    Row("special.zeta", low=1.5, inplace=False, grad=False),
    Row("clamp_min", integers=False),
    Row("clamp_max"),
    Row("float_power", low=0.5, inplace=False),
]
BINARY += [
    Row(n, grad=False)
    for n in ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor")
]

INTEGER = [
    Row(n, inputs=2, low=1, high=9)
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
INTEGER += [Row("bitwise_not", low=1, high=9)]

TERNARY = [
    Row("lerp", integers=False),
    Row("addcmul"),
    Row("addcmul", kwargs={"value": 2}),
    Row("addcdiv", low=0.5, integers=False),
    Row("addcdiv", low=0.5, integers=False, kwargs={"value": -2}),
    Row("clamp"),
]
