"""What code of TorchScript archives asks of tensors beside the operators of the table, and functions of ATen
that are methods or functions of Python here."""

import rushlight
from rushlight._serialization.dtype_numbers import NUMBERS
from rushlight.nn import functional, init
from rushlight.nn.utils.rnn import pad_sequence

__all__ = ["OF_TENSORS", "code_of", "dtype_of", "format_of"]

_FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")
_CODES = {getattr(rushlight, name): number for number, name in NUMBERS.items()}


def dtype_of(number):
    if type(number) is not int:
        return number
    if number not in NUMBERS:
        raise NotImplementedError(f"the dtype number {number} of archives of PyTorch's is not covered")
    return getattr(rushlight, NUMBERS[number])


def code_of(dtype):
    """The number that stands for a dtype."""
    return _CODES[dtype]


def format_of(number):
    return getattr(rushlight, _FORMATS[number]) if type(number) is int else number


def _method(name):
    def run(x, *args, **words):
        if not isinstance(x, rushlight.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        return getattr(x, name)(*args, **words)

    return run


def _property(name):
    def run(x):
        if not isinstance(x, rushlight.Tensor):
            raise TypeError(f"{name}: expected a tensor, got {type(x).__name__}")
        return getattr(x, name)

    return run


def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    """A convolution that is padded by a name, of as many dimensions as its filters have."""
    run = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}[weight.dim()]
    return run(input, weight, bias, stride, padding, dilation, groups)


def _adaptive_max_pool(run):
    return lambda x, size: run(x, size, True)


def _upsample(x, size=None, factor=None, mode="nearest", corners=None):
    return functional.interpolate(x, size, factor, mode, corners)


def _backward(tensors, gradients=None, retain_graph=None, create_graph=False):
    rushlight.autograd.backward(tensors, gradients, retain_graph, create_graph)


def _cast(dtype):
    return lambda x, non_blocking=False: x.to(dtype, non_blocking)


def _uniform(x, a, b, generator=None):
    return init.uniform_(x, a, b, generator)


def _normal(x, mean, std, generator=None):
    return init.normal_(x, mean, std, generator)


_METHODS = """cpu cuda detach_ element_size get_device is_conj is_inference is_neg is_nonzero is_same_size
is_set_to is_signed pin_memory requires_grad_ retain_grad""".split()
_PROPERTIES = "_version data grad is_leaf output_nr retains_grad".split()
_CASTS = dict(
    Byte=rushlight.uint8, Char=rushlight.int8, Double=rushlight.float64, Float=rushlight.float32,
    Half=rushlight.float16, Int=rushlight.int32, Long=rushlight.int64, Short=rushlight.int16,
)  # fmt: skip

OF_TENSORS = {
    **{name: _method(name) for name in _METHODS},
    **{name: _property(name) for name in _PROPERTIES},
    **{f"_cast_{name}": _cast(dtype) for name, dtype in _CASTS.items()},
    "__iand__": lambda x, y: x.__iand__(y),
    "__ior__": lambda x, y: x.__ior__(y),
    "__ixor__": lambda x, y: x.__ixor__(y),
    "__interpolate": functional.interpolate,
    "__upsample": _upsample,
    "__upsample_nearest": lambda x, size=None, factor=None: _upsample(x, size, factor),
    "__upsample_bilinear": lambda x, size=None, factor=None: _upsample(x, size, factor, "bilinear", True),
    "_convolution_mode": _convolution_mode,
    "_infer_size": lambda a, b: list(rushlight.broadcast_shapes(a, b)),
    "_list_to_tensor": lambda numbers: rushlight.tensor(numbers),
    "_no_grad_fill_": init.constant_,
    "_no_grad_normal_": _normal,
    "_no_grad_uniform_": _uniform,
    "_no_grad_zero_": init.zeros_,
    "_tensor_to_list": lambda x: x.tolist(),
    "_unwrap_optional": lambda x: x,
    "adaptive_max_pool2d": _adaptive_max_pool(functional.adaptive_max_pool2d_with_indices),
    "adaptive_max_pool3d": _adaptive_max_pool(functional.adaptive_max_pool3d_with_indices),
    "backward": _backward,
    "can_cast": lambda start, end: rushlight.can_cast(dtype_of(start), dtype_of(end)),
    "hash": hash,
    "pad_sequence": pad_sequence,
    "promote_types": lambda a, b: code_of(rushlight.promote_types(dtype_of(a), dtype_of(b))),
    "relu6_": lambda x: functional.relu6(x, True),
    "result_type": lambda a, b: code_of(rushlight.result_type(a, b)),
}
