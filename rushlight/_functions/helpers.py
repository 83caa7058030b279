"""Small functions of the top namespace that need no kernel."""

import functools
import math
import numbers
from typing import Any

import rushlight
from rushlight import _C
from rushlight._command.names import show_public_from
from rushlight._operators.overridable import overridable

__capture__ = "through"  # Note [Capture marks]

TYPE_CHECKING = False


def _expect_tensor(name, value):
    if not isinstance(value, rushlight.Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(value).__name__}")


_EXAMPLES = {
    "is_floating_point": "\n\nExample:\n    >>> torch.is_floating_point(torch.ones(1))\n    True",
    "is_complex": "\n\nExample:\n    >>> torch.is_complex(torch.ones(1))\n    False",
}


def _ask(name):
    def ask(input):
        _expect_tensor(name, input)
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"``input.{name}()``\n\nArgs:\n    input (Tensor): the tensor." + _EXAMPLES.get(name, "")
    return _C._overridable(ask, False, name)


(
    is_floating_point,
    is_complex,
    is_signed,
    is_inference,
    is_conj,
    is_neg,
    numel,
    is_nonzero,
    resolve_conj,
    resolve_neg,
    get_device,
) = (
    _ask(name)
    for name in (
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_inference",
        "is_conj",
        "is_neg",
        "numel",
        "is_nonzero",
        "resolve_conj",
        "resolve_neg",
        "get_device",
    )
)


@overridable
def is_same_size(input, other):
    """Whether both tensors have the same sizes."""
    return input.is_same_size(other)


def _has_compatible_shallow_copy_type(input, from_):
    """Whether one tensor can take over the other's data: both dense, or of one sparse layout, on one
    device."""
    from rushlight.overrides import handle_torch_function, has_torch_function

    if has_torch_function((input, from_)):
        return handle_torch_function(_has_compatible_shallow_copy_type, (input, from_), input, from_)
    return input.layout == from_.layout and input.device.type == from_.device.type


@overridable
def is_distributed(input):
    return False


def is_storage(obj):
    """Whether the object is a storage."""
    from rushlight.storage import TypedStorage

    return isinstance(obj, (_C.StorageBase, TypedStorage))


def typename(obj):
    """The qualified name of an object's type."""
    if isinstance(obj, rushlight.Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins") else f"{module}.{kind.__qualname__}"


def can_cast(from_, to):
    """Whether PyTorch's rules allow a result of one dtype to be stored in another."""
    return _C._can_cast_dtypes(from_, to)


def _category_tensor(value):
    if isinstance(value, rushlight.Tensor):
        return value
    if isinstance(value, (bool, int, float, complex)):
        return value
    raise TypeError(f"result_type(): expected a Tensor or a Number, not {type(value).__name__}")


def result_type(tensor, other):
    """The dtype of an arithmetic operation on the two."""
    return _C._result_type(_category_tensor(tensor), _category_tensor(other))


if TYPE_CHECKING:  # what it makes is called, and has the members, as what it was made of
    from collections.abc import Callable
    from typing import Any, TypeVar, overload

    _F = TypeVar("_F", bound=Callable[..., Any])

    @overload  # type: ignore[no-overload-impl]
    def compile(
        model: _F,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        backend: str | Callable[..., Any] | None = None,
        mode: str | None = None,
        options: dict[str, Any] | None = None,
        name: str | None = None,
        disable: bool = False,
        recompile_limit: int | None = None,
        isolate_recompiles: bool = False,
        shapes_spec: Any = None,
    ) -> _F: ...
    @overload
    def compile(
        model: None = None,
        *,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        backend: str | Callable[..., Any] | None = None,
        mode: str | None = None,
        options: dict[str, Any] | None = None,
        name: str | None = None,
        disable: bool = False,
        recompile_limit: int | None = None,
        isolate_recompiles: bool = False,
        shapes_spec: Any = None,
    ) -> Callable[[_F], _F]: ...


def compile(  # type: ignore[no-redef]
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
    isolate_recompiles=False,
    shapes_spec=None,
):
    """Run a function or a module through graphs of operators where that is faster; see docs/compile.md.

    Args:
        model: a function or a module; without one, a decorator is returned.
        fullgraph: if there is no graph, raise an error that says why, instead of running the program as it
            is written.
        dynamic: accepted; a graph is for one shape of each input, and a few more are made for others.
        backend: a name of `torch._dynamo.list_backends()`, or a function that gets a GraphModule and example
            inputs and returns a function of tensors; without it, `torch.compiler.get_default_backend()`.
        mode, options: handed to the back end.
        disable: give the model back as it is.
        name, recompile_limit, isolate_recompiles, shapes_spec: accepted; they change no result.

    Example:
        >>> double = torch.compile(lambda x: x * 2)
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if disable:
        return model
    from rushlight._dynamo.eval_frame import compile_callable

    return compile_callable(model, fullgraph, backend, mode, options, dynamic)


def compiled_with_cxx11_abi():
    return True


def get_device_module(device=None):
    """The module of a device: ``torch.cpu`` or ``torch.cuda``."""
    kind = rushlight.device(device).type if device is not None else "cpu"
    return getattr(rushlight, kind)


# --- assertions ---------------------------------------------------------------------------------


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """Raise unless the tensor has this size, stride, dtype, device and layout; None stands for any."""
    found = [
        ("sizes", size and list(size), list(a.shape)),
        ("strides", stride and list(stride), list(a.stride())),
        ("dtype", dtype, a.dtype),
        ("device", device and rushlight.device(device), a.device),
        ("layout", layout, a.layout),
    ]
    for what, expected, got in found:
        if expected is not None and expected != got:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {got}")


def _nnpack_available():
    """Whether NNPACK is there to compute convolutions: oneDNN or loops of our own do."""
    return False


def _debug_has_internal_overlap(tensor):
    """Whether elements of a tensor share memory: 0 for no, 1 for yes, 2 where that was not found out."""
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride())):
        return 1
    after = 1  # what the next larger stride is where elements lie without gaps
    for stride, size in sorted((t, s) for s, t in zip(tensor.shape, tensor.stride()) if s != 1):
        if stride != after:
            return 2
        after *= size
    return 0


def _assert(condition, message):
    if type(condition) is not bool and _C._has_torch_function_unary(condition):
        return _C._handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message


def _check_with(error_type, cond, message=None):
    if not isinstance(cond, (bool, SymBool)):
        from rushlight._subclasses.size_choices import SizeTruth

        if isinstance(cond, SizeTruth):
            return _check_with(error_type, bool(cond), message)
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if isinstance(cond, SymBool):  # a comparison of numbers that an export reads from data
        return cond.expect(message)
    if not cond:
        text = (
            "Expected cond to be True, but got False."
            if message is None
            else message()
            if callable(message)
            else str(message)
        )
        raise error_type(text)


def _check(cond, message=None):
    """RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all(cond, message=None):
    """RuntimeError unless all elements of a bool tensor are true."""
    import rushlight

    if not rushlight.is_tensor(cond):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype is not rushlight.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check(cond.all().item(), message)


def _is_all_true(tensor):
    return tensor.all()


# --- symbolic numbers: sizes are plain numbers but where `torch.compile` traces for many sizes ----


def _size_of(node):
    from rushlight._subclasses.size_numbers import SizeInt

    return SizeInt(node.require_hint(), node.expr)


class SymInt:
    """A size of a program that is traced for many sizes at once, or a number that depends on data."""

    numbers: Any

    def __new__(cls, *args, **kwargs):
        """The number of a `SymNode`; classes below take what theirs are made of, and nothing where copied."""
        return _size_of(*args, **kwargs) if cls is SymInt else super().__new__(cls)


class SymFloat:
    """A number that depends on data; see SymInt."""


class SymBool:
    """Exports make subclasses of it for truths that depend on data; see SymInt."""

    numbers: Any
    as_tensor: Any
    expect: Any


def _extreme_number(choose, a, b):
    for number in (a, b):
        if not isinstance(number, numbers.Real):
            raise AssertionError(f"expected int or float, got {type(number)}")
    found = choose(a, b)
    return found if all(isinstance(n, numbers.Integral) for n in (a, b)) else float(found)


@overridable
def sym_max(a, b):
    """The larger of two numbers; a float if one of them is."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, SymInt) and hasattr(x, "__sym_max__") and isinstance(y, int):
            return x.__sym_max__(y)
    return _extreme_number(max, a, b)


@overridable
def sym_min(a, b):
    """The smaller of two numbers; a float if one of them is."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, SymInt) and hasattr(x, "__sym_min__") and isinstance(y, int):
            return x.__sym_min__(y)
    return _extreme_number(min, a, b)


@overridable
def sym_int(a):
    return a if isinstance(a, SymInt) else int(a)


@overridable
def sym_float(a):
    return float(a)


@overridable
def sym_not(a):
    return a.opposite() if isinstance(a, SymBool) else not a


@overridable
def sym_ite(b, t, f):
    return t if b else f


@overridable
def sym_sqrt(a):
    return a**0.5


def _of_number(name):
    """``torch._sym_<name>``: a function of `math` that `__torch_function__` sees."""

    def function(a):
        return getattr(math, name)(a)

    function.__name__ = function.__qualname__ = f"_sym_{name}"
    function.__module__ = rushlight.__name__
    return overridable(function)


_sym_acos, _sym_asin, _sym_atan = _of_number("acos"), _of_number("asin"), _of_number("atan")
_sym_cos, _sym_cosh, _sym_sin, _sym_sinh = map(_of_number, ["cos", "cosh", "sin", "sinh"])
_sym_sqrt, _sym_tan, _sym_tanh = map(_of_number, ["sqrt", "tan", "tanh"])


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Products of groups of rows, of columns, or of the inner axis; ``offs`` says where each group ends."""
    import rushlight

    return rushlight.ops.aten._grouped_mm(self, mat2, offs, bias, out_dtype)


show_public_from("", globals())
