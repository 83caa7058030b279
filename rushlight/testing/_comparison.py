"""``assert_close``: compares tensors, numbers and structures of them, and says how they differ."""

import cmath
import sys
from collections.abc import Mapping, Sequence

import rushlight

__capture__ = "through"  # Note [Capture marks]

_PRECISION = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
_OF_PYTHON = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}


def default_tolerances(*dtypes):
    """Relative and absolute tolerance for values of these types: the widest of each."""
    pairs = [_PRECISION.get(str(d).rpartition(".")[2], (0.0, 0.0)) for d in dtypes]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Check that ``|actual - expected| <= atol + rtol * |expected|`` holds everywhere, and that properties
    agree.

    Sequences and mappings are gone through. ``msg`` replaces the message of a failure, or is a function of
    it.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    checker = _Checker(
        allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride
    )
    try:
        checker.compare(actual, expected, ())
    except _Difference as difference:
        text = difference.text
        if difference.place:
            text += f"\n\nThe failure occurred for item {''.join(f'[{p!r}]' for p in difference.place)}"
        raise AssertionError(text if msg is None else msg(text) if callable(msg) else msg) from None


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form of ``assert_close``: converts its arguments and checks no dtype."""
    if not isinstance(actual, rushlight.Tensor):
        actual = rushlight.tensor(actual)
    if not isinstance(expected, rushlight.Tensor):
        expected = rushlight.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}
        rtol, atol = pairs.get(str(actual.dtype).rpartition(".")[2], (0.0, 0.0))
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None
    )


class _Difference(Exception):
    def __init__(self, text, place):
        super().__init__(text)
        self.text, self.place = text, place


class _Checker:
    def __init__(self, subclasses, rtol, atol, equal_nan, device, dtype, layout, stride):
        self.subclasses, self.rtol, self.atol, self.equal_nan = subclasses, rtol, atol, equal_nan
        self.device, self.dtype, self.layout, self.stride = device, dtype, layout, stride

    def compare(self, actual, expected, place):
        if isinstance(actual, Mapping) and isinstance(expected, Mapping):
            self._mappings(actual, expected, place)
        elif _is_sequence(actual) and _is_sequence(expected):
            if len(actual) != len(expected):
                raise _Difference(
                    f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", place
                )
            for i, (a, e) in enumerate(zip(actual, expected)):
                self.compare(a, e, (*place, i))
        elif actual is None or expected is None:
            if actual is not expected:
                raise _Difference(f"None mismatch: {actual} is not {expected}", place)
        elif _is_bool(actual) and _is_bool(expected):
            if actual != expected:
                raise _Difference(f"Booleans mismatch: {actual} is not {expected}", place)
        elif _is_number(actual) and _is_number(expected):
            self._numbers(actual, expected, place)
        elif self._comparable(actual, expected):
            self._tensors(_as_tensor(actual), _as_tensor(expected), place)
        else:
            raise TypeError(
                f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}."
            )

    def _comparable(self, actual, expected):
        kinds = (rushlight.Tensor, *_numpy_arrays())
        if not (isinstance(actual, kinds) and isinstance(expected, kinds)):
            return False
        related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
        return type(actual) is type(expected) if not self.subclasses else related

    def _mappings(self, actual, expected, place):
        missing, extra = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or extra:
            raise _Difference(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(extra)}",
                place,
            )
        try:
            keys = sorted(expected)
        except TypeError:
            keys = list(expected)
        for key in keys:
            self.compare(actual[key], expected[key], (*place, key))

    def _tolerances(self, *dtypes):
        return default_tolerances(*dtypes) if self.rtol is None else (self.rtol, self.atol)

    def _numbers(self, actual, expected, place):
        if self.dtype and type(actual) is not type(expected):
            raise _Difference(f"The (d)types do not match: {type(actual)} != {type(expected)}.", place)
        rtol, atol = self._tolerances(_OF_PYTHON[_base(actual)], _OF_PYTHON[_base(expected)])
        if actual == expected or (self.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
            return
        difference = abs(actual - expected)
        if difference <= atol + rtol * abs(expected) and cmath.isfinite(actual) and cmath.isfinite(expected):
            return
        relative = difference / abs(expected) if expected != 0 else float("inf")
        raise _Difference(_number_text(actual, expected, difference, relative, rtol, atol), place)

    def _tensors(self, actual, expected, place):
        self._properties(actual, expected, place)
        if actual.is_quantized and expected.is_quantized:
            actual, expected = actual.dequantize(), expected.dequantize()
        rtol, atol = self._tolerances(actual.dtype, expected.dtype)
        if actual.device != expected.device:
            actual, expected = actual.cpu(), expected.cpu()
        if actual.layout != expected.layout:
            actual, expected = (
                x if x.layout == rushlight.strided else x.to_dense() for x in (actual, expected)
            )
        if actual.dtype != expected.dtype:
            common = rushlight.promote_types(actual.dtype, expected.dtype)
            actual, expected = actual.to(common), expected.to(common)
        if actual.layout == rushlight.strided:
            self._elements(actual, expected, rtol, atol, place)
        else:
            self._sparse(actual, expected, rtol, atol, place)

    def _elements(self, actual, expected, rtol, atol, place, what="Tensor-likes"):
        with rushlight.no_grad():
            close = rushlight.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=self.equal_nan)
            if not bool(close.all()):
                raise _Difference(_tensor_text(actual, expected, close, rtol, atol, what), place)

    def _sparse(self, actual, expected, rtol, atol, place):
        """Positions must be equal, listed values close."""
        kind = _SPARSE_NAMES[actual.layout]
        counts = {"specified values": (actual._nnz(), expected._nnz())}
        if kind == "COO":
            counts = {"sparse dimensions": (actual.sparse_dim(), expected.sparse_dim()), **counts}
        for what, (a, e) in counts.items():
            if a != e:
                raise _Difference(
                    f"The number of {what} in sparse {kind} tensors does not match: {a} != {e}", place
                )
        for name, a, e in zip(
            _SPARSE_PARTS[kind], _sparse_parts(actual), _sparse_parts(expected), strict=True
        ):
            exact = name != "values"
            self._elements(a, e, 0 if exact else rtol, 0 if exact else atol, place, f"Sparse {kind} {name}")

    def _properties(self, actual, expected, place):
        def same(name, a, e):
            if a != e:
                raise _Difference(f"The values for attribute '{name}' do not match: {a} != {e}.", place)

        same("shape", actual.shape, expected.shape)
        if self.layout:
            same("layout", actual.layout, expected.layout)
        if self.device:
            same("device", actual.device, expected.device)
        if self.dtype:
            same("dtype", actual.dtype, expected.dtype)
        same("is_quantized", actual.is_quantized, expected.is_quantized)
        if actual.is_quantized:
            same("qscheme()", actual.qscheme(), expected.qscheme())
        if self.stride:
            same("stride()", actual.stride(), expected.stride())


_SPARSE_NAMES = {
    getattr(rushlight, f"sparse_{kind.lower()}"): kind for kind in ("COO", "CSR", "CSC", "BSR", "BSC")
}
_BY_ROWS, _BY_COLUMNS = ("crow_indices", "col_indices", "values"), ("ccol_indices", "row_indices", "values")
_SPARSE_PARTS = {
    "COO": ("indices", "values"),
    **dict.fromkeys(("CSR", "BSR"), _BY_ROWS),
    **dict.fromkeys(("CSC", "BSC"), _BY_COLUMNS),
}


def _sparse_parts(tensor):
    if tensor.layout == rushlight.sparse_coo:
        return tensor._indices(), tensor._values()
    return tuple(getattr(tensor, name)() for name in _SPARSE_PARTS[_SPARSE_NAMES[tensor.layout]])


def _is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _numpy_arrays():
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (numpy.ndarray,)


def _numpy_scalars(kind):
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, kind),)


def _is_bool(value):
    return isinstance(value, (bool, *_numpy_scalars("bool_")))


def _is_number(value):
    return isinstance(value, (int, float, complex, *_numpy_scalars("number")))


def _base(value):
    return next(
        kind for kind in (bool, int, float, complex) if isinstance(value, kind) or _converts(value, kind)
    )


def _converts(value, kind):
    numpy = sys.modules.get("numpy")
    group = {bool: "bool_", int: "integer", float: "floating", complex: "complexfloating"}[kind]
    return numpy is not None and isinstance(value, getattr(numpy, group))


def _as_tensor(value):
    return value if isinstance(value, rushlight.Tensor) else rushlight.as_tensor(value)


def _allowed(tolerance, rtol, atol):
    return f" (up to {tolerance} allowed)" if rtol or atol else ""


def _number_text(actual, expected, difference, relative, rtol, atol):
    word = "close" if rtol or atol else "equal"
    return (
        f"Scalars are not {word}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{_allowed(atol, rtol, atol)}\n"
        f"Relative difference: {relative}{_allowed(rtol, rtol, atol)}"
    )


def _tensor_text(actual, expected, close, rtol, atol, what):
    if actual.dim() == 0:
        a, e = actual.item(), expected.item()
        if isinstance(a, bool):
            a, e = int(a), int(e)
        return _number_text(a, e, abs(a - e), abs(a - e) / abs(e) if e else float("inf"), rtol, atol)
    if not (actual.is_floating_point() or actual.is_complex()):
        actual, expected = actual.to(rushlight.int64), expected.to(rushlight.int64)
    wrong = ~close
    count, total = int(wrong.sum()), wrong.numel()
    # Elements that are close do not count for the greatest difference.
    difference = (actual - expected).abs().masked_fill(close, 0)
    relative = (difference / expected.abs()).masked_fill(close, 0)
    word = "close" if rtol or atol else "equal"
    return (
        f"{what} are not {word}!\n\nMismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {_greatest(difference)}{_allowed(atol, rtol, atol)}\n"
        f"Greatest relative difference: {_greatest(relative)}{_allowed(rtol, rtol, atol)}"
    )


def _greatest(values):
    flat = int(values.flatten().argmax())
    index, rest = [], flat
    for n in reversed(values.shape):
        index.append(rest % n)
        rest //= n
    return f"{values.flatten()[flat].item()} at index {tuple(reversed(index))}"
