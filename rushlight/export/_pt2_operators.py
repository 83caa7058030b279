"""Operators by the names that PyTorch's archives of programs give them, and the other way round.

Most are records of the table under the same name, with the same arguments. Tables here hold the others.
"""

import functools
import math
import operator

import rushlight as torch
from rushlight import _C
from rushlight._higher_order_ops.operator import HigherOrderOperator
from rushlight._operators.overloads import of_numbers, takes_plain_numbers
from rushlight._ops import OpOverloadPacket
from rushlight.jit import _torchscript_ops
from rushlight.nn import functional

_ARITHMETIC = (
    "eq ne le ge lt gt neg pos mul add sub floordiv mod pow truediv and_ or_ lshift rshift getitem".split()
)
_ON_NUMBERS = {
    **{f"_operator.{name}": getattr(operator, name) for name in _ARITHMETIC},
    "math.trunc": math.trunc,
    **{f"torch.sym_{name}": getattr(torch, f"sym_{name}") for name in "not int float ite max min".split()},
    "torch._sym_sqrt": math.sqrt,
    "torch.sym_sqrt": math.sqrt,
}


def _nothing():
    """What PyTorch does once before its first level, and needs no doing here."""


# Levels of vmap, which PyTorch's programs enter and leave by calls.
_LEVELS = "torch._functorch.predispatch."
LEVEL_CALLS = {
    "lazy_load_decompositions": _nothing,
    **{
        name: getattr(_C._functorch, name)
        for name in (
            "_vmap_increment_nesting",
            "_vmap_decrement_nesting",
            "_add_batch_dim",
            "_remove_batch_dim",
        )
    },
}


class ForeignOperator:
    """An operator of PyTorch that is no record here; it is called as there."""

    def __init__(self, target, run):
        self.target, self.run = target, run
        self.parameters = []  # names of the arguments, as the file that it comes from has them
        # Generated code finds it by a name of its own: `aten.mul_Scalar`.
        self.__module__, _, name = target.removeprefix("torch.ops.").partition(".")
        self.__name__ = self.__qualname__ = name.removesuffix(".default").replace(".", "_")

    def __call__(self, *args, **kwargs):
        return self.run(*args, **kwargs)

    def __repr__(self):
        return f"<{self.target} of PyTorch>"


# --- from PyTorch -----------------------------------------------------------------------------------


def _resize(mode, aligns):
    """upsample_*.vec: a size, or factors."""

    def run(x, size, *rest, align_corners=None, scale_factors=None):
        rest = list(rest)
        if aligns and rest:
            align_corners = rest.pop(0)
        factors = rest.pop(0) if rest else scale_factors
        corners = {"align_corners": align_corners} if aligns else {}
        return functional.interpolate(x, size, None if size is not None else factors, mode, **corners)

    return run


def _checked(condition, message=""):
    if not condition:
        raise RuntimeError(message)


def _checked_metadata(x, size=None, stride=None, dtype=None, *, device=None, layout=None):
    wanted = {"dtype": dtype, "layout": layout, "device": device}
    for name, value in wanted.items():
        if value is not None and getattr(x, name) != value:
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {value}, Got: {getattr(x, name)}")


def _flash_attention(
    query, key, value, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None
):
    out = functional.scaled_dot_product_attention(query, key, value, None, dropout_p, is_causal, scale=scale)
    return (out,)


def _batch_norm_without_updates(input, weight, bias, mean, var, momentum, eps):
    return torch.native_batch_norm(input, weight, bias, mean, var, False, momentum, eps)


def _batch_norm_without_statistics(input, weight, bias, training, momentum, eps):
    return torch.native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def _batch_norm_functional(input, weight, bias, mean, var, training, momentum, eps):
    mean, var = mean.clone(), var.clone()
    return (*torch.native_batch_norm(input, weight, bias, mean, var, training, momentum, eps), mean, var)


def _transform(x, n_fft, hop_length=None, win_length=None, window=None, *flags, **words):
    """stft without padding, which PyTorch does by itself before."""
    names = ("normalized", "onesided", "return_complex", "align_to_window")
    words = {**dict(zip(names, flags, strict=False)), **words}
    return torch.ops.aten.stft(x, n_fft, hop_length, win_length, window, center=False, **words)


def _to(x, non_blocking=False, copy=False, memory_format=None, *, dtype=None, device=None):
    words = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return x.to(copy=copy, **{name: value for name, value in words.items() if value is not None})


_FOREIGN = {
    "_cdist_forward": lambda a, b, p, compute_mode=None: torch.cdist(a, b, p),
    **{
        f"adaptive_max_pool{n}d": functools.partial(
            getattr(functional, f"adaptive_max_pool{n}d"), return_indices=True
        )
        for n in (2, 3)
    },
    "upsample_nearest1d.vec": _resize("nearest", False),
    "upsample_nearest2d.vec": _resize("nearest", False),
    "upsample_nearest3d.vec": _resize("nearest", False),
    "_upsample_nearest_exact1d.vec": _resize("nearest-exact", False),
    "_upsample_nearest_exact2d.vec": _resize("nearest-exact", False),
    "_upsample_nearest_exact3d.vec": _resize("nearest-exact", False),
    "upsample_linear1d.vec": _resize("linear", True),
    "upsample_bilinear2d.vec": _resize("bilinear", True),
    "upsample_bicubic2d.vec": _resize("bicubic", True),
    "upsample_trilinear3d.vec": _resize("trilinear", True),
    "_native_batch_norm_legit_no_training": _batch_norm_without_updates,
    "_native_batch_norm_legit.default": torch.native_batch_norm,
    "_native_batch_norm_legit.no_stats": _batch_norm_without_statistics,
    "_native_batch_norm_legit_functional": _batch_norm_functional,
    "_scaled_dot_product_flash_attention": _flash_attention,
    "detach_": lambda x: x.detach_(),
    "rrelu_with_noise": lambda x, noise, *args: functional.rrelu(x, *args[:3]),
    "copy": lambda x, source, non_blocking=False: source.to(x.dtype).expand_as(x).clone(),
    "fill": lambda x, value: torch.full_like(x, value),
    "log_sigmoid_forward": lambda x: (functional.logsigmoid(x), x),
    "meshgrid": lambda tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing),
    "pad_sequence": lambda x, batch_first=False, value=0.0, side="right": (
        torch.nn.utils.rnn.pad_sequence(x, batch_first, value, side)
    ),
    "native_channel_shuffle": functional.channel_shuffle,
    "_assert_async": _checked,
    "_assert_tensor_metadata": _checked_metadata,
    "sym_constrain_range": lambda size, **bounds: None,
    "sym_constrain_range_for_size": lambda size, **bounds: None,
    "_linalg_solve_ex": lambda a, b, *, left=True, check_errors=False: (
        torch.linalg.solve(a, b, left=left), *torch.linalg.lu_factor_ex(a)
    ),
    "_linalg_det": lambda a: (torch.linalg.det(a), *torch.linalg.lu_factor(a)),
    "_linalg_slogdet": lambda a: (*torch.linalg.slogdet(a), *torch.linalg.lu_factor(a)),
    "stft.default": _transform,
    "to.dtype": lambda x, dtype, *rest, **words: _to(x, *rest, dtype=dtype, **words),
    "to.device": lambda x, device, dtype, *rest, **words: _to(x, *rest, dtype=dtype, device=device, **words),
    "to.other": lambda x, y, *rest, **words: _to(x, *rest, dtype=y.dtype, device=y.device, **words),
    "to.dtype_layout": lambda x, *, layout=None, pin_memory=None, **words: _to(x, **words),
    **{f"__{name}__": getattr(operator, f"__{name}__") for name in ("and", "or", "xor", "lshift", "rshift")},
    "range": torch.range,
}  # fmt: skip
_SAME = {"item": "_local_scalar_dense"}  # names there and here


class Unknown(Exception):
    """No operator of that name is here."""


def find(target):
    """What a node of an archive calls: a function of numbers, or an operator."""
    if target in _ON_NUMBERS:
        return _ON_NUMBERS[target]
    if target.startswith(_LEVELS) and target.removeprefix(_LEVELS) in LEVEL_CALLS:
        return LEVEL_CALLS[target.removeprefix(_LEVELS)]
    parts = target.removeprefix("torch.ops.").split(".")
    if target.startswith("torch.ops.higher_order."):
        found = getattr(torch.ops.higher_order, parts[-1], None)  # type: ignore[attr-defined]
        if isinstance(found, HigherOrderOperator):
            return found
    if not target.startswith("torch.ops.") or len(parts) != 3:
        raise Unknown
    space, name, overload = parts
    name = _SAME.get(name, name) if space == "aten" else name
    return _find_operator(target, space, name, overload)


def _find_operator(target, space, name, overload):
    foreign = _FOREIGN.get(f"{name}.{overload}") or _FOREIGN.get(name) if space == "aten" else None
    if foreign:
        return ForeignOperator(target, foreign)
    packet = getattr(getattr(torch.ops, space), name, None)
    if isinstance(packet, OpOverloadPacket):
        known = overload in packet.overloads()
        return getattr(packet, overload) if known else ForeignOperator(target, packet)
    if space == "aten" and ("torch", name) in _torchscript_ops._TABLE:
        return ForeignOperator(target, _torchscript_ops.find("aten", name))
    raise Unknown


# --- to PyTorch -------------------------------------------------------------------------------------

_NAMES = {
    **{f"adaptive_max_pool{n}d_with_indices": f"adaptive_max_pool{n}d" for n in (2, 3)},
}
# Parameters that PyTorch lacks: left out if they have this value, or whatever they are (None).
_EXTRA = {
    "generator": (None,),
    "return_indices": (False, True),  # both results are there in any case
    "inplace": (False,),
    "by_rows": None,
}
_REPLACED = {"by_product": ("compute_mode", None)}  # how the same is computed
_BY_NAME = {"_linalg_solve_ex": ("left",)}  # parameters that PyTorch takes by name alone


def written(target, args=()):
    """(name in archives, names of the parameters) of a call; Unknown if PyTorch has no such operator."""
    if isinstance(target, ForeignOperator):
        return target.target, target.parameters
    name = _NAMES.get(target._opname, target._opname)
    if target.namespace == "aten" and target.traits.absent_in_pytorch:
        raise Unknown
    names = [a.name for a in target._schema.arguments]
    return f"torch.ops.{target.namespace}.{name}.{_overload(target, args)}", names


def _overload(target, args):
    numbers = tuple(
        i
        for i, (value, parameter) in enumerate(zip(args, target._schema.arguments, strict=False))
        if str(parameter.type) == "Tensor" and isinstance(value, (bool, int, float, complex))
    )
    if target._entry.second_name:
        numbers = (1,)
    if numbers and not takes_plain_numbers(target.traits):
        own, inplace, _ = of_numbers(target.traits, numbers)
        return inplace or own if target._entry.form == 1 else own
    return target._overloadname


def named_arguments(target, names, args, kwargs):
    """(name, value, whether by position) of each argument, as PyTorch has them."""
    by_name = _BY_NAME.get(getattr(target, "_opname", ""), ())
    given = [(name, value, name not in by_name) for name, value in zip(names, args, strict=False)]
    given += [(name, value, False) for name, value in kwargs.items()]
    for name, value, by_position in given:
        if name in _REPLACED:
            name, value = _REPLACED[name]
        if name not in _EXTRA or not (_EXTRA[name] is None or value in _EXTRA[name]):
            yield name, value, by_position
