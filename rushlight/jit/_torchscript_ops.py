"""The operators that code of TorchScript archives may call: those of the table, and those that TorchScript
has for numbers, text and lists. Types of elements, layouts and memory formats are numbers there."""

import functools
import math

import rushlight
from rushlight.jit import _torchscript_layers as layers
from rushlight.jit._arithmetic import CALLS, divided, floor_divided, whole, wrapped
from rushlight.jit._percent import percent
from rushlight.jit._torchscript_numbers import METHODS, ON_NUMBERS
from rushlight.jit._torchscript_tensors import OF_TENSORS, code_of, dtype_of, format_of
from rushlight.jit._torchscript_values import tensor_properties, truth
from rushlight.jit._value_text import formatted, printed, text_of
from rushlight.nn import functional

Tensor = rushlight.Tensor
BUILTINS = (
    "int",
    "float",
    "bool",
    "str",
    "complex",
    "print",
    "ord",
    "chr",
    "len",
    "hex",
    "oct",
    "bin",
    "sorted",
)


# --- operators


def _numbers(on_numbers, name):
    """An operator of numbers, text and lists, which for tensors is the table's."""

    def run(*args, **kwargs):
        if any(isinstance(a, Tensor) for a in args):
            return _call_table(name, args, kwargs)
        return on_numbers(*args, **kwargs)

    return run


def _with_factor(name, reverse=False):
    """add, sub and rsub: a third positional argument is the factor of the second."""

    def run(a, b, alpha=1):
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):
            return wrapped(a + b if name == "add" else a - b * alpha)
        if reverse:
            return _table("sub")(b, a, alpha=alpha) if isinstance(b, Tensor) else b - alpha * a
        return _table(name)(a, b) if alpha == 1 else _table(name)(a, b, alpha=alpha)

    return run


def _divide(a, b, rounding_mode=None, *, out=None):
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return rushlight.div(a, b, rounding_mode=rounding_mode, out=out)
    floored, plain = lambda: floor_divided(a, b), lambda: divided(a, b)  # noqa: E731
    return {"trunc": lambda: math.trunc(a / b), "floor": floored, None: plain}[rounding_mode]()


def _to(x, *args, **kwargs):
    """aten::to in its five forms; numbers stand for dtypes and formats."""
    if not isinstance(x, Tensor):
        raise TypeError(f"to: expected a tensor, got {type(x).__name__}")
    words = {}
    args = list(args)
    if args and isinstance(args[0], Tensor):
        words.update(dtype=args[0].dtype, device=args.pop(0).device)
    if args and isinstance(args[0], (str, rushlight.device)):
        words["device"] = args.pop(0)
    if args and (args[0] is None or (type(args[0]) is int)):
        words["dtype"] = dtype_of(args.pop(0))
        if len(args) > 3 and (args[0] is None or type(args[0]) is int):  # to.dtype_layout
            args = args[3:]
    for name, value in zip(("non_blocking", "copy", "memory_format"), args, strict=False):
        words[name] = value
    words.update({k: v for k, v in kwargs.items() if k not in ("layout", "pin_memory")})
    words["dtype"] = dtype_of(words.get("dtype"))
    words["memory_format"] = format_of(words.get("memory_format"))
    words.setdefault("device", None)
    return x.to(**{k: v for k, v in words.items() if v is not None})


def _raise(message, kind="builtins.RuntimeError"):
    import builtins

    error = getattr(builtins, kind.rpartition(".")[2], None)
    if not (isinstance(error, type) and issubclass(error, Exception)):
        error = RuntimeError
    if message.startswith("AssertionError"):
        error, message = AssertionError, message.removeprefix("AssertionError").removeprefix(": ")
    made = error(message)
    made.__dict__["_raised_in_script"] = True  # by its own statement, which this stands for
    raise made


def _warn(message, stacklevel=2):
    import warnings

    warnings.warn(str(message), stacklevel=min(max(int(stacklevel), 1), 5) + 1)


def _padded(given, *defaults):
    return [*given, *defaults[len(given) :]]


def _slice(x, *bounds):
    if isinstance(x, Tensor):
        dim, start, end, step = _padded(bounds, 0, None, None, 1)
        return _table("slice")(x, dim, start, end, step)
    start, end, step = _padded(bounds, None, None, 1)
    return x[start:end:step]


def _size(x, dim=None):
    return list(x.shape) if dim is None else x.shape[dim]


def _set_item(x, key, value):
    x[key] = value
    return x


def _sort(x, *args, **words):
    """Of a tensor, two tensors; a list is sorted in its place."""
    if isinstance(x, Tensor):
        return _call_table("sort", (x, *args), words)
    x.sort(reverse=bool(args and args[0]))


def _pop(x, *args):
    return x.pop(*args)


def _unimplemented(name):
    def run(*args, **kwargs):
        raise NotImplementedError(
            f"{name}: this operator of an archive that PyTorch wrote is not covered; export the model "
            "in PyTorch without it, or load its state_dict into a model of this program"
        )

    return run


def _tensor(data, dtype=None, device=None, requires_grad=False):
    return rushlight.tensor(data, dtype=dtype_of(dtype), device=device, requires_grad=requires_grad)


def _number(x):
    return x.item() if isinstance(x, Tensor) else x


def _method_of(name):
    def run(x, *args):
        if not isinstance(x, (list, dict, str)):
            return _call_table(name, (x, *args), {})
        result = getattr(x, name)(*args)
        return list(result) if name in ("keys", "values", "items") else result

    return run


def _method_or_operator(name):
    """Names that lists or text share with operators of tensors."""

    def run(x, *args, **kwargs):
        if isinstance(x, Tensor) or (
            isinstance(x, list) and x and isinstance(x[0], Tensor) and name != "index"
        ):
            return _call_table(name, (x, *args), kwargs)
        return getattr(x, name)(*args)

    return run


_TABLE = {
    **{("torch", n): _method_of(n) for n in METHODS},
    **{("torch", n): _method_or_operator(n) for n in ("copy", "count", "split", "index")},
    **{("torch", n): _numbers(f, n) for n, f in ON_NUMBERS.items()},
    **{("torch", n): f for n, f in OF_TENSORS.items()},
    ("torch", "add"): _with_factor("add"),
    ("torch", "sub"): _with_factor("sub"),
    ("torch", "rsub"): _with_factor("rsub", True),
    ("torch", "add_"): _with_factor("add_"),
    ("torch", "sub_"): _with_factor("sub_"),
    ("torch", "div"): _divide,
    ("torch", "true_divide"): _divide,
    ("torch", "floordiv"): floor_divided,
    ("torch", "floor_divide"): lambda a, b: rushlight.div(a, b, rounding_mode="floor"),
    ("torch", "to"): _to,
    ("torch", "slice"): _slice,
    ("torch", "size"): _size,
    ("torch", "dim"): lambda x: x.dim(),
    ("torch", "len"): len,
    ("torch", "list"): list,
    ("torch", "dict"): dict,
    ("torch", "numel"): lambda x: x.numel(),
    ("torch", "stride"): lambda x, *d: x.stride(*d) if d else list(x.stride()),
    ("torch", "storage_offset"): lambda x: x.storage_offset(),
    ("torch", "is_contiguous"): lambda x, *f: x.is_contiguous(),
    ("torch", "is_floating_point"): lambda x: x.is_floating_point(),
    ("torch", "is_complex"): lambda x: x.is_complex(),
    ("torch", "is_grad_enabled"): lambda: rushlight.is_grad_enabled(),
    ("torch", "is_autocast_enabled"): lambda *a: rushlight.is_autocast_enabled(),
    ("torch", "set_grad_enabled"): lambda enabled: rushlight._C._set_grad_enabled(bool(enabled)),
    ("torch", "wait"): rushlight.jit.wait,
    ("torch", "is_scripting"): lambda: True,
    ("torch", "manual_seed"): lambda s: rushlight.manual_seed(s),
    ("torch", "item"): _number,
    ("torch", "tensor"): _tensor,
    ("torch", "device"): lambda *a: rushlight.device(*a),
    ("torch", "as_tensor"): lambda x, dtype=None, device=None: rushlight.as_tensor(
        x, dtype=dtype_of(dtype), device=device
    ),
    ("torch", "meshgrid"): lambda tensors, **words: list(rushlight.meshgrid(*tensors, **words)),
    ("torch", "einsum"): lambda equation, tensors, path=None: rushlight.einsum(equation, tensors),
    ("torch", "_transformer_encoder_layer_fwd"): layers.encoder_layer,
    ("torch", "_native_multi_head_attention"): layers.native_attention,
    # Without nested tensors: the layers then take padding as a mask.
    ("torch", "_nested_tensor_from_mask_left_aligned"): lambda x, mask: False,
    ("torch", "adaptive_avg_pool1d"): lambda x, n: functional.adaptive_avg_pool1d(x, n),
    ("torch", "adaptive_avg_pool2d"): lambda x, n: functional.adaptive_avg_pool2d(x, n),
    ("torch", "adaptive_avg_pool3d"): lambda x, n: functional.adaptive_avg_pool3d(x, n),
    ("torch", "detach"): lambda x: x.detach(),
    ("torch", "type_as"): lambda x, y: x.type_as(y),
    ("torch", "__is__"): lambda a, b: a is b,
    ("torch", "__isnot__"): lambda a, b: a is not b,
    ("torch", "__not__"): lambda a: not truth(a),
    ("torch", "__contains__"): lambda x, a: a in x,
    ("torch", "in"): lambda a, x: a in x,
    ("torch", "not_in"): lambda a, x: a not in x,
    ("torch", "__getitem__"): lambda x, i: x[i],
    ("torch", "_set_item"): _set_item,
    ("torch", "Delete"): lambda x, k: x.pop(k) and None,
    ("torch", "delete"): lambda x, k: x.pop(k) and None,
    ("torch", "pop"): _pop,
    ("torch", "sorted"): sorted,
    ("torch", "sort"): _sort,
    ("torch", "format"): formatted,
    ("torch", "percentFormat"): lambda t, *a: percent(t, a[0] if len(a) == 1 else a),
    ("torch", "warn"): _warn,
    ("torch", "str"): text_of,
    ("torch", "ord"): ord,
    ("torch", "chr"): chr,
    ("torch", "__range_length"): lambda a, b, c: len(range(a, b, c)),
    ("torch", "__derive_index"): lambda i, start, step: start + i * step,
    ("torch", "Int"): lambda x: whole(_number(x)),
    ("torch", "Float"): lambda x: float(_number(x)),
    ("torch", "Bool"): lambda x: bool(_number(x)),
    ("torch", "Complex"): lambda *x: complex(*map(_number, x)),
    ("torch", "hex"): hex,
    ("torch", "Size"): list,
    ("torch", "oct"): oct,
    ("torch", "bin"): bin,
    ("torch", "IntImplicit"): lambda x: whole(_number(x)),
    ("torch", "FloatImplicit"): lambda x: float(_number(x)),
    ("torch", "ScalarImplicit"): _number,
    ("torch", "get_autocast_dtype"): lambda kind: code_of(rushlight.get_autocast_dtype(kind)),
    ("prim", "RaiseException"): _raise,
    ("prim", "dtype"): lambda x: code_of(x.dtype),
    ("prim", "device"): lambda x: x.device,
    ("prim", "layout"): lambda x: 0,
    ("prim", "shape"): lambda x: list(x.shape),
    ("prim", "ndim"): lambda x: x.dim(),
    ("prim", "is_cuda"): lambda x: x.is_cuda,
    ("prim", "is_cpu"): lambda x: x.device.type == "cpu",
    ("prim", "is_meta"): lambda x: x.is_meta,
    ("prim", "is_sparse"): lambda x: x.is_sparse,
    ("prim", "is_sparse_csr"): lambda x: x.is_sparse_csr,
    ("prim", "is_quantized"): lambda x: False,
    ("prim", "is_mkldnn"): lambda x: False,
    ("prim", "is_xla"): lambda x: False,
    ("prim", "is_mps"): lambda x: False,
    ("prim", "is_nested"): lambda x: bool(getattr(x, "is_nested", False)),
    ("prim", "requires_grad"): lambda x: x.requires_grad,
    ("prim", "data"): lambda x: x.data,
    ("prim", "grad"): lambda x: x.grad,
    ("prim", "T"): lambda x: x.T,
    ("prim", "mT"): lambda x: x.mT,
    ("prim", "H"): lambda x: x.H,
    ("prim", "mH"): lambda x: x.mH,
    ("prim", "real"): lambda x: x.real,
    ("prim", "imag"): lambda x: x.imag,
    ("prim", "itemsize"): lambda x: x.itemsize,
    ("prim", "type"): lambda d: d.type,
    ("prim", "index"): lambda d: d.index,
    ("prim", "id"): id,
    ("prim", "NumToTensor"): lambda x: rushlight.tensor(x),
    ("prim", "unchecked_unwrap_optional"): lambda x: x,
    ("prim", "min"): _numbers(CALLS["min"], "min"),
    ("prim", "max"): _numbers(CALLS["max"], "max"),
    ("prim", "abs"): CALLS["abs"],
    ("prim", "rangelist"): lambda n: list(range(n)),
    ("prim", "data_ptr"): lambda x: x.data_ptr(),
    ("python", "int"): lambda x, *base: whole(_number(x), *base),
    ("python", "float"): lambda x: float(_number(x)),
    ("python", "bool"): truth,
    ("python", "str"): text_of,
    ("python", "print"): printed,
    ("python", "sorted"): sorted,
    ("python", "ord"): ord,
    ("python", "complex"): lambda *x: complex(*map(_number, x)),
    ("python", "chr"): chr,
    ("python", "len"): len,
    ("python", "hex"): hex,
    ("python", "oct"): oct,
    ("python", "bin"): bin,
}


tensor_properties.update({name: f for (space, name), f in _TABLE.items() if space == "prim"})


def find(space, name):
    """The function behind `torch.name`, `ops.space.name`; what is not known says so when it is called."""
    if space == "aten":
        space = "torch"
    found = _TABLE.get((space, name))
    if found is not None:
        return found
    if space == "torch":
        return (
            functools.partial(_call_named, name) if _packet("aten", name) else _unimplemented(f"aten::{name}")
        )
    if space in ("prim", "python") or name.startswith("__"):
        return _unimplemented(f"{space}::{name}")
    return lambda *args, **kwargs: _registered(space, name)(*args, **kwargs)


def _packet(space, name):
    if name.startswith("__"):
        return None
    return getattr(getattr(rushlight.ops, space), name, None)


def _registered(space, name):
    """An operator that a program or a library added; they may come after the archive."""
    return _packet(space, name) or _unimplemented(f"{space}::{name}")


def _table(name):
    return _packet("aten", name) or _unimplemented(f"aten::{name}")


def _call_table(name, args, kwargs):
    return _call_named(name, *args, **kwargs)


def _call_named(name, *args, **kwargs):
    positions, words = _numbered(name)
    if positions:
        args = [positions[i](a) if i in positions else a for i, a in enumerate(args)]
    if kwargs:
        kwargs = {k: words[k](v) if k in words else v for k, v in kwargs.items()}
    result = _table(name)(*args, **kwargs)
    return list(result) if _gives_list(name) and isinstance(result, tuple) else result


@functools.cache
def _schemas():
    found = {}
    for record in rushlight._C._operator_records():
        head, _, rest = record["schema"].partition("(")
        found.setdefault(head.partition(".")[0], []).append(rest)
    for name in [n for n in found if "::" in n]:  # of torch.nn.functional: unless PyTorch has one of its own
        found.setdefault(name.rpartition("::")[2], found[name])
    return found


@functools.cache
def _gives_list(name):
    return any(s.rpartition("-> ")[2].startswith("Tensor[]") for s in _schemas().get(name, ()))


@functools.cache
def _numbered(name):
    """Which arguments are dtypes, layouts or formats: by position, where all overloads agree, and by name."""
    kinds = {
        "ScalarType": dtype_of,
        "Layout": lambda n: rushlight.strided if n == 0 else n,
        "MemoryFormat": format_of,
    }
    by_position, by_name = {}, {}
    for text in _schemas().get(name.removesuffix("_"), _schemas().get(name, ())):
        listed = text.partition(") -> ")[0].split(", ")
        positional = listed.index("*") if "*" in listed else len(listed)
        for i, parameter in enumerate(listed):
            kind, _, rest = parameter.partition(" ")
            converter = kinds.get(kind.rstrip("?"))
            if converter:
                by_name[rest.partition("=")[0]] = converter
            if i < positional:
                by_position.setdefault(i, set()).add(converter)
    return {i: c.pop() for i, c in by_position.items() if len(c) == 1 and None not in c}, by_name
