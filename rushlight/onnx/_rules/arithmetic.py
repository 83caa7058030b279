"""Operators that work element by element."""

import math

import rushlight as torch

from ._registry import RULES, rule


def _unary(kind):
    def translate(g, x, *_, **__):
        if not x.is_floating_point and g.out.dtype.is_floating_point:
            x = g.cast(x, g.out.dtype)
        return g.op(kind, x)

    return translate


for _name, _kind in {
    "abs": "Abs",
    "neg": "Neg",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "floor": "Floor",
    "ceil": "Ceil",
    "sigmoid": "Sigmoid",
    "relu": "Relu",
    "sign": "Sign",
    "mish": "Mish",
    "hardswish": "HardSwish",
}.items():
    RULES[_name] = _unary(_kind)

for _name in ("alias", "clone", "detach", "contiguous", "positive", "lift_fresh", "dropout", "conj_physical"):
    RULES[_name] = lambda g, x, *_, **__: x


def _as_result(g, x):
    return g.cast(x, g.out.dtype)


@rule("rsqrt")
def rsqrt(g, x):
    return g.op("Reciprocal", g.op("Sqrt", _as_result(g, x)))


@rule("square")
def square(g, x):
    return g.op("Mul", x, x)


@rule("expm1")
def expm1(g, x):
    return g.op("Sub", g.op("Exp", _as_result(g, x)), 1)


@rule("log1p")
def log1p(g, x):
    return g.op("Log", g.op("Add", _as_result(g, x), 1))


@rule("log2")
def log2(g, x):
    return g.op("Div", g.op("Log", _as_result(g, x)), math.log(2))


@rule("log10")
def log10(g, x):
    return g.op("Div", g.op("Log", _as_result(g, x)), math.log(10))


@rule("exp2")
def exp2(g, x):
    x = _as_result(g, x)
    return g.op("Pow", g.constant(2.0, x.dtype), x, shape=x.shape)


@rule("erfc")
def erfc(g, x):
    x = _as_result(g, x)
    return g.op("Sub", g.constant(1.0, x.dtype), g.op("Erf", x), shape=x.shape)


@rule("trunc")
def trunc(g, x):
    return g.op("Mul", g.op("Sign", x), g.op("Floor", g.op("Abs", x)))


@rule("frac")
def frac(g, x):
    return g.op("Sub", x, trunc(g, x))


@rule("round")
def round_(g, x, *, decimals=0):
    if not decimals:
        return g.op("Round", x)
    scale = 10.0**decimals
    return g.op("Div", g.op("Round", g.op("Mul", x, scale)), scale)


def _binary(kind, predicate=False):
    def translate(g, a, b, *_, **__):
        a, b = g.promote(a, b)
        if not predicate:
            return g.op(kind, a, b, shape=g.out.shape)
        return g.op(kind, a, b, dtype=torch.bool, shape=g.out.shape)

    return translate


for _name, _kind in {"mul": "Mul", "maximum": "Max", "minimum": "Min", "fmax": "Max", "fmin": "Min"}.items():
    RULES[_name] = _binary(_kind)
for _name, _kind in {
    "eq": "Equal",
    "lt": "Less",
    "le": "LessOrEqual",
    "gt": "Greater",
    "ge": "GreaterOrEqual",
}.items():
    RULES[_name] = _binary(_kind, predicate=True)


@rule("ne")
def ne(g, a, b):
    return g.op("Not", RULES["eq"](g, a, b))


@rule("add")
def add(g, a, b, *, alpha=1):
    a, b = g.promote(a, b)
    if a.dtype == torch.bool:
        return g.op("Or", a, b, shape=g.out.shape)
    return g.op("Add", a, b if alpha == 1 else g.op("Mul", b, alpha), shape=g.out.shape)


@rule("sub")
def sub(g, a, b, *, alpha=1):
    a, b = g.promote(a, b)
    return g.op("Sub", a, b if alpha == 1 else g.op("Mul", b, alpha), shape=g.out.shape)


@rule("rsub")
def rsub(g, a, b, alpha=1):
    return sub(g, b, a, alpha=alpha)


@rule("div")
def div(g, a, b, *, rounding_mode=None):
    a, b = g.promote(a, b)
    if rounding_mode is None:
        return g.op("Div", _as_result(g, a), _as_result(g, b), shape=g.out.shape)
    if rounding_mode == "floor":
        return floor_divide(g, a, b)
    quotient = g.op("Div", a, b, shape=g.out.shape)
    return trunc(g, quotient) if a.is_floating_point else quotient


@rule("floor_divide")
def floor_divide(g, a, b):
    a, b = g.promote(a, b)
    quotient = g.op("Div", a, b, shape=g.out.shape)
    if a.is_floating_point:
        return g.op("Floor", quotient)
    rest = g.op("Sub", a, g.op("Mul", quotient, b, shape=g.out.shape), shape=g.out.shape)
    # Integers are divided towards zero: one less where something is left and the signs differ.
    zero = g.constant(0, a.dtype)
    left = g.op("Not", g.op("Equal", rest, zero, dtype=torch.bool))
    below = [g.op("Less", v, zero, dtype=torch.bool) for v in (rest, b)]
    down = g.op("And", left, g.op("Xor", *below, shape=g.out.shape), shape=g.out.shape)
    return g.op("Sub", quotient, g.cast(down, a.dtype))


@rule("remainder")
def remainder(g, a, b):
    a, b = g.promote(a, b)
    if not a.is_floating_point:
        return g.op("Mod", a, b, shape=g.out.shape)
    floored = g.op("Floor", g.op("Div", a, b, shape=g.out.shape))
    return g.op("Sub", a, g.op("Mul", floored, b), shape=g.out.shape)


def _power_of_two(g, a, b):
    a, b = g.promote(a, b)
    return a, g.op("Pow", g.constant(2, a.dtype), b, shape=b.shape)


@rule("bitwise_left_shift")
def bitwise_left_shift(g, a, b):
    a, factor = _power_of_two(g, a, b)
    return g.op("Mul", a, factor, shape=g.out.shape)


@rule("bitwise_right_shift")
def bitwise_right_shift(g, a, b):
    return floor_divide(g, *_power_of_two(g, a, b))


@rule("copysign")
def copysign(g, a, b):
    a, b = g.promote(a, b)
    size = g.op("Abs", a)
    zero = g.constant(0, a.dtype)
    below = [g.op("Less", v, zero, dtype=torch.bool, shape=b.shape) for v in (b, g.op("Reciprocal", b))]
    negative = g.op("Or", *below, shape=b.shape)  # the reciprocal of -0 is less than 0
    return g.op("Where", negative, g.op("Neg", size), size, dtype=a.dtype, shape=g.out.shape)


@rule("fmod")
def fmod(g, a, b):
    a, b = g.promote(a, b)
    return g.op("Mod", a, b, shape=g.out.shape, fmod=1)


@rule("pow")
def pow_(g, a, b):
    a, b = (_as_result(g, v) for v in g.promote(a, b))
    return g.op("Pow", a, b, shape=g.out.shape)


@rule("hypot")
def hypot(g, a, b):
    return g.op("Sqrt", g.op("Add", square(g, a), square(g, b), shape=g.out.shape))


@rule("xlogy")
def xlogy(g, a, b):
    a, b = (_as_result(g, v) for v in g.promote(a, b))
    zero = g.constant(0.0, a.dtype)
    product = g.op("Mul", a, g.op("Log", b), shape=g.out.shape)
    return g.op(
        "Where", g.op("Equal", a, zero, dtype=torch.bool), zero, product, dtype=a.dtype, shape=g.out.shape
    )


@rule("atan2")
def atan2(g, y, x):
    """The angle of y / x, turned by half a circle where x is negative."""
    y, x = g.promote(y, x)
    zero, half = g.constant(0.0, x.dtype), g.constant(math.pi, x.dtype)
    angle = g.op("Atan", g.op("Div", y, x, shape=g.out.shape))
    below = g.op("Less", y, zero, dtype=torch.bool)
    turn = g.op("Where", below, g.op("Neg", half), half, dtype=x.dtype, shape=y.shape)
    turned = g.op("Add", angle, turn, shape=g.out.shape)
    left = g.op("Less", x, zero, dtype=torch.bool)
    return g.op("Where", left, turned, angle, dtype=x.dtype, shape=g.out.shape)


def _logical(kind):
    def translate(g, a, b):
        return g.op(kind, g.cast(a, torch.bool), g.cast(b, torch.bool), dtype=torch.bool, shape=g.out.shape)

    return translate


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    RULES[f"logical_{_name}"] = _logical(_kind)


def _bitwise(kind):
    def translate(g, a, b):
        a, b = g.promote(a, b)
        return g.op(kind if a.dtype == torch.bool else f"Bitwise{kind}", a, b, shape=g.out.shape)

    return translate


for _name, _kind in {"and": "And", "or": "Or", "xor": "Xor"}.items():
    RULES[f"bitwise_{_name}"] = _bitwise(_kind)


@rule("logical_not")
def logical_not(g, x):
    return g.op("Not", g.cast(x, torch.bool))


@rule("bitwise_not")
def bitwise_not(g, x):
    return g.op("Not" if x.dtype == torch.bool else "BitwiseNot", x)


@rule("isnan")
def isnan(g, x):
    return g.op("IsNaN", x, dtype=torch.bool)


@rule("isinf")
def isinf(g, x):
    return g.op("IsInf", x, dtype=torch.bool)


@rule("isposinf")
def isposinf(g, x):
    return g.op("IsInf", x, dtype=torch.bool, detect_negative=0)


@rule("isneginf")
def isneginf(g, x):
    return g.op("IsInf", x, dtype=torch.bool, detect_positive=0)


@rule("isfinite")
def isfinite(g, x):
    return g.op("Not", g.op("Or", isnan(g, x), isinf(g, x)))


@rule("where")
def where(g, condition, a, b):
    a, b = g.promote(a, b)
    return g.op("Where", condition, a, b, dtype=a.dtype, shape=g.out.shape)


@rule("masked_fill")
def masked_fill(g, x, mask, value):
    return g.op("Where", mask, g.cast(value, x.dtype), x, dtype=x.dtype, shape=g.out.shape)


@rule("clamp")
def clamp(g, x, min=None, max=None):
    x = _as_result(g, x)
    if min is not None:
        x = g.op("Max", x, g.cast(min, x.dtype), shape=g.out.shape)
    return x if max is None else g.op("Min", x, g.cast(max, x.dtype), shape=g.out.shape)


@rule("hardtanh")
def hardtanh(g, x, min_val=-1.0, max_val=1.0):
    x = _as_result(g, x)
    if not x.dtype.is_floating_point or min_val > max_val:
        return clamp(g, x, min_val, max_val)
    # One step, which engines and tools that quantise take into the layer before it.
    return g.op("Clip", x, g.cast(min_val, x.dtype), g.cast(max_val, x.dtype), shape=g.out.shape)


RULES["clamp_min"] = lambda g, x, min: clamp(g, x, min)
RULES["clamp_max"] = lambda g, x, max: clamp(g, x, None, max)


@rule("nan_to_num")
def nan_to_num(g, x, nan=None, posinf=None, neginf=None):
    limits = torch.finfo(x.dtype)
    x = g.op("Where", isnan(g, x), g.constant(nan or 0.0, x.dtype), x, dtype=x.dtype, shape=x.shape)
    high, low = (limits.max if posinf is None else posinf), (limits.min if neginf is None else neginf)
    for sign, number in ((1, high), (-1, low)):
        at = g.op("Equal", x, g.infinity(x.dtype, sign), dtype=torch.bool)
        x = g.op("Where", at, g.constant(number, x.dtype), x, dtype=x.dtype, shape=x.shape)
    return x


@rule("lerp")
def lerp(g, start, end, weight):
    step = g.op(
        "Mul", g.op("Sub", end, start, shape=g.out.shape), g.cast(weight, start.dtype), shape=g.out.shape
    )
    return g.op("Add", start, step, shape=g.out.shape)


@rule("addcmul")
def addcmul(g, x, a, b, *, value=1):
    product = g.op("Mul", a, b, shape=g.out.shape)
    return g.op("Add", x, product if value == 1 else g.op("Mul", product, value), shape=g.out.shape)


@rule("addcdiv")
def addcdiv(g, x, a, b, *, value=1):
    quotient = g.op("Div", a, b, shape=g.out.shape)
    return g.op("Add", x, quotient if value == 1 else g.op("Mul", quotient, value), shape=g.out.shape)


@rule("_to_copy")
def to_copy(g, x, *, dtype=None, **_):
    if dtype is not None and x.is_floating_point and dtype in (torch.uint8, torch.int8, torch.int16):
        x = g.cast(x, torch.int32)  # ONNX leaves what does not fit open
    return x if dtype is None else g.cast(x, dtype)


# Activations.


@rule("gelu")
def gelu(g, x, *, approximate="none"):
    if g.opset >= 20:
        return g.op("Gelu", x, approximate=approximate)
    if approximate == "tanh":
        cubed = g.op("Mul", g.op("Mul", g.op("Mul", x, x), x), 0.044715)
        inner = g.op("Tanh", g.op("Mul", g.op("Add", x, cubed), math.sqrt(2 / math.pi)))
    else:
        inner = g.op("Erf", g.op("Mul", x, math.sqrt(0.5)))
    return g.op("Mul", g.op("Mul", x, g.op("Add", inner, 1)), 0.5)


@rule("silu")
def silu(g, x):
    return g.op("Mul", x, g.op("Sigmoid", x))


@rule("softplus")
def softplus(g, x, beta=1, threshold=20):
    scaled = x if beta == 1 else g.op("Mul", x, beta)
    soft = g.op("Softplus", scaled)
    soft = soft if beta == 1 else g.op("Div", soft, beta)
    large = g.op("Greater", scaled, threshold, dtype=torch.bool)
    return g.op("Where", large, x, soft, dtype=x.dtype, shape=x.shape)


@rule("log_sigmoid")
def log_sigmoid(g, x):
    return g.op("Neg", g.op("Softplus", g.op("Neg", x)))


@rule("leaky_relu")
def leaky_relu(g, x, negative_slope=0.01):
    return g.op("LeakyRelu", x, alpha=float(negative_slope))


@rule("_prelu_kernel")
def prelu(g, x, weight):
    return g.op("PRelu", x, weight)


@rule("elu")
def elu(g, x, alpha=1, scale=1, input_scale=1):
    if input_scale != 1:
        x = g.op("Where", g.op("Less", x, 0, dtype=torch.bool), g.op("Mul", x, input_scale), x, dtype=x.dtype)
    result = g.op("Elu", x, alpha=float(alpha))
    return result if scale == 1 else g.op("Mul", result, scale)


@rule("hardsigmoid")
def hardsigmoid(g, x):
    return g.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@rule("threshold")
def threshold(g, x, threshold, value):
    above = g.op("Greater", x, threshold, dtype=torch.bool)
    return g.op("Where", above, x, g.constant(value, x.dtype), dtype=x.dtype, shape=x.shape)


@rule("softshrink")
def softshrink(g, x, lambd=0.5):
    return g.op("Shrink", x, lambd=float(lambd), bias=float(lambd))


@rule("hardshrink")
def hardshrink(g, x, lambd=0.5):
    return g.op("Shrink", x, lambd=float(lambd), bias=0.0)
