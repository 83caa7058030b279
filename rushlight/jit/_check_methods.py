"""What TorchScript knows besides operators: methods of text, lists, dictionaries and tensors, built-ins of
`torch` that are no operators of the table, and what they give."""

from rushlight.jit import _types as t

__all__ = ["BUILTINS", "MATH", "METHODS", "NOT_METHODS", "TENSOR_METHODS", "TORCH_BUILTINS"]

_UNKNOWN = t.UNKNOWN


def _each(words, kind):
    return dict.fromkeys(words.split(), kind)


_STRINGS = t.list_of(t.STR)
_TEXT = {
    **_each(
        "capitalize casefold center expandtabs format join ljust lower lstrip replace rjust rstrip "
        "strip swapcase "
        "title upper zfill",
        t.STR,
    ),
    **_each("count find index rfind rindex __len__", t.INT),
    **_each(
        "endswith startswith isalnum isalpha isdecimal isdigit isidentifier islower isnumeric "
        "isprintable isspace "
        "istitle isupper __contains__",
        t.BOOL,
    ),
    **_each("split rsplit splitlines", _STRINGS),
    **_each("partition rpartition", t.tuple_of((t.STR, t.STR, t.STR))),
    **_each("encode removeprefix removesuffix maketrans translate isascii", _UNKNOWN),
}
_LIST = {
    "append": t.NONE,
    "pop": lambda owner, given: owner.args[0],
    "copy": lambda owner, given: owner,
    **_each("clear extend insert remove reverse sort", t.NONE),
    **_each("count index __len__", t.INT),
    **_each("__getitem__ __contains__ __setitem__ __delitem__", _UNKNOWN),
}
_DICT = {
    "keys": lambda owner, given: t.list_of(owner.args[0]),
    "values": lambda owner, given: t.list_of(owner.args[1]),
    "items": lambda owner, given: t.list_of(t.tuple_of(owner.args)),
    "get": lambda owner, given: owner.args[1] if len(given) > 1 else t.optional(owner.args[1]),
    "pop": lambda owner, given: owner.args[1],
    "setdefault": lambda owner, given: owner.args[1],
    "copy": lambda owner, given: owner,
    "popitem": lambda owner, given: t.tuple_of(owner.args),
    **_each("clear update", t.NONE),
    "__len__": t.INT,
    "__contains__": t.BOOL,
    **_each("__getitem__ __setitem__ __delitem__ move_to_end", _UNKNOWN),
}
METHODS = {"str": _TEXT, "List": _LIST, "Dict": _DICT, "Tuple": _each("index count __len__", t.INT)}

# Methods of tensors that are no operators of the table.
TENSOR_METHODS = {
    **_each(
        "cpu cuda dequantize detach_ int_repr pin_memory requires_grad_ resize resize_as "
        "resize_as_sparse_ set_ smm "
        "sspaddmm to to_mkldnn to_padded_tensor clone contiguous",
        t.TENSOR,
    ),
    **_each(
        "is_complex is_conj is_contiguous is_distributed is_floating_point is_inference is_neg "
        "is_nonzero is_pinned "
        "is_same_size is_set_to is_signed is_coalesced",
        t.BOOL,
    ),
    **_each("dim element_size get_device numel output_nr storage_offset", t.INT),
    **_each("backward record_stream retain_grad", t.NONE),
    **_each(
        "item q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point "
        "qscheme stride size "
        "tolist type split stft istft _version _autocast_to_full_precision "
        "_autocast_to_reduced_precision _coalesced_ _conj "
        "_conj_physical _dimI _dimV _is_all_true _is_any_true _is_zerotensor _to_dense _to_sparse "
        "__getitem__ "
        "__len__ __contains__ __setitem__",
        _UNKNOWN,
    ),
}

# Functions of `torch` that TorchScript has and the operator table has not.
TORCH_BUILTINS = {
    **_each(
        "as_tensor tensor detach_ hspmm smm sspaddmm segment_reduce sparse_bsc_tensor sparse_bsr_tensor "
        "sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor",
        t.TENSOR,
    ),
    **_each(
        "can_cast is_autocast_cpu_enabled is_complex is_conj is_distributed is_floating_point "
        "is_grad_enabled "
        "is_inference is_neg is_nonzero is_same_size is_signed",
        t.BOOL,
    ),
    **_each("get_device initial_seed numel promote_types result_type get_autocast_dtype seed", t.INT),
    **_each("manual_seed save set_grad_enabled sym_constrain_range sym_constrain_range_for_size", _UNKNOWN),
    **_each("Generator Size device broadcast_shapes from_file histogramdd is_autocast_enabled", _UNKNOWN),
    **_each(
        "split norm cdist stft istft meshgrid unique unique_consecutive tensordot lobpcg lu einsum", _UNKNOWN
    ),
}

NOT_METHODS = frozenset("bfloat16 bool to_sparse_coo".split())  # operators that scripts lack
MATH = frozenset(
    """acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh degrees erf erfc exp expm1 fabs
    factorial floor fmod frexp gamma gcd isfinite isinf isnan ldexp lgamma log log10 log1p modf pow radians
    remainder sin sinh sqrt tan tanh""".split()
)
_NOT_FLOATS = frozenset("ceil factorial floor frexp gcd isfinite isinf isnan modf".split())

BUILTINS = {
    **_each("print", t.NONE),
    **_each("any all callable", t.BOOL),
    **_each("ord hash id len", t.INT),
    **_each("chr hex oct bin", t.STR),
    **_each("warnings.warn", t.NONE),
    **dict.fromkeys((f"math.{name}" for name in MATH - _NOT_FLOATS), t.FLOAT),
    **_each("math.ceil math.factorial math.floor math.gcd", t.INT),
    **_each("math.isfinite math.isinf math.isnan", t.BOOL),
    "math.frexp": t.tuple_of((t.FLOAT, t.INT)),
    "math.modf": t.tuple_of((t.FLOAT, t.FLOAT)),
    **_each("torch.jit.is_scripting torch.jit.is_tracing", t.BOOL),
}
