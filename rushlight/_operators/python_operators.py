"""Operators of `aten` that packages register rules for and that are plain Python here."""

import rushlight as torch
from rushlight import _C
from rushlight._operators import jagged_operators as jagged_operators

_library = torch.library.Library("aten", "FRAGMENT")


def _pin_memory(self, device=None):
    return self.pin_memory() if device is None else self.pin_memory(device)


_library.define("_pin_memory(Tensor self, Device? device=None) -> Tensor")
_library.impl("_pin_memory", _pin_memory, "CompositeImplicitAutograd")


def _convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *settings
):  # the settings choose algorithms of a library that is not here
    return torch.convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


_library.define(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, "
    "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor"
)
_library.impl("_convolution", _convolution, "CompositeImplicitAutograd")


def _convolution_backward(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    aten, how = torch.ops.aten, (stride, padding, dilation, groups)  # type: ignore[attr-defined]
    grads: list = [None, None, None]
    if output_mask[0] and transposed:
        grads[0] = torch.convolution(
            grad_output, weight.conj(), None, stride, padding, dilation, False, [0] * len(stride), groups
        )
    elif output_mask[0]:
        grads[0] = aten._conv_input_gradient(grad_output, weight.conj(), input.shape, *how)
    if output_mask[1]:
        grad, seen = (input.conj(), grad_output) if transposed else (grad_output, input.conj())
        grads[1] = aten._conv_weight_gradient(grad, seen, weight.shape, *how)
    if output_mask[2]:
        grads[2] = grad_output.sum([0, *range(2, grad_output.dim())])
    return tuple(grads)


_library.define(
    "convolution_backward(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)
_library.impl("convolution_backward", _convolution_backward, "CompositeImplicitAutograd")


def _convolution_double_backward(ggI, ggW, ggb, gO, weight, self, *how_and_mask):
    """What the gradients of a convolution, times those given, add up to: gradients by gO, self, weight."""
    *how, output_mask = how_and_mask
    aten = torch.ops.aten  # type: ignore[attr-defined]
    terms = []
    if ggI is not None:
        terms.append(torch.convolution(ggI, weight, None, *how))
    if ggW is not None:
        terms.append(torch.convolution(self, ggW, None, *how))
    if ggb is not None:
        terms.append(ggb.reshape(-1, *[1] * (gO.dim() - 2)).expand_as(gO))

    def gradient(x, w, which):
        mask = [i == which for i in range(3)]
        return aten.convolution_backward(gO, x, w, None, *how, mask)[which]

    return (
        sum(terms[1:], terms[0]) if output_mask[0] and terms else None,
        gradient(self, ggW, 0) if output_mask[1] and ggW is not None else None,
        gradient(ggI, weight, 1) if output_mask[2] and ggI is not None else None,
    )


_library.define(
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, "
    "Tensor self, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)"
)
_library.impl("_convolution_double_backward", _convolution_double_backward, "CompositeImplicitAutograd")


def _answer_or(tensor, fact, own, *arguments):
    """What the class of a tensor says of its strides if it asked for that, else what ``own`` says."""
    answer = _C._answer_of_class(tensor, fact, *arguments)
    return own(tensor, *arguments) if answer is None else bool(answer)


def _is_dense(self):
    """Whether the elements fill their part of memory, in some order, and none lies below another."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(self.stride(), self.shape) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _lies_like(self, memory_format):
    """Whether the strides grow in the order of a format's dimensions, gaps allowed."""
    order = {torch.channels_last: (1, 3, 2, 0), torch.channels_last_3d: (1, 4, 3, 2, 0)}.get(
        memory_format, ()
    )
    if len(order) != self.dim() or not self.dim() or 0 in self.shape or self.stride(1) == 0:
        return False
    least = 0
    for d in order:
        if self.stride(d) < least or (d == 0 and least == self.stride(1)):
            return False
        least = self.stride(d) * self.size(d)
    return True


# What a tensor is asked for, and conversions: methods without a record, which packages name as operators.
_METHODS = {
    "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor": lambda self, output_size: (
        torch.nn.functional.adaptive_avg_pool2d(self, output_size)
    ),
    "_mkldnn_transpose(Tensor self, int dim0, int dim1) -> Tensor": lambda self, dim0, dim1: self.transpose(
        dim0, dim1
    ).contiguous(),
    "lift_fresh_copy(Tensor self) -> Tensor": lambda self: self.clone(),
    "dim(Tensor self) -> int": lambda self: self.dim(),
    "is_contiguous(Tensor self) -> bool": lambda self: self.is_contiguous(),
    "is_contiguous.memory_format(Tensor self, MemoryFormat memory_format) -> bool": (
        lambda self, memory_format: self.is_contiguous(memory_format=memory_format)
    ),
    "is_pinned(Tensor self, Device? device=None) -> bool": lambda self, device=None: self.is_pinned(),
    "is_same_size(Tensor self, Tensor other) -> bool": lambda self, other: self.shape == other.shape,
    "_assert_scalar(Scalar self, str assert_msg) -> ()": lambda self, message: torch._check(
        bool(self), lambda: message
    ),
    "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor": (
        lambda self, message, token: _checked(bool(self), message, token)
    ),
    "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor": (
        lambda self, message, token: _checked(bool(self), message, token)
    ),
    "_print(str s) -> ()": print,
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, "
    "*, Device? device=None, Layout? layout=None) -> ()": torch._assert_tensor_metadata,
    "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()": torch.sym_constrain_range,
    "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()": (
        torch.sym_constrain_range_for_size
    ),
    "_sparse_compressed_tensor_with_dims(int nnz, int dense_dim, int[] size, int[] blocksize, "
    "ScalarType index_dtype, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor": torch.sparse._sparse_compressed_tensor_with_dims,
    "sym_numel(Tensor self) -> SymInt": lambda self: self.numel(),
    "sym_size(Tensor self) -> SymInt[]": lambda self: self.shape,
    "sym_stride(Tensor self) -> SymInt[]": lambda self: self.stride(),
    "sym_stride.int(Tensor self, int dim) -> SymInt": lambda self, dim: self.stride(dim),
    "sym_storage_offset(Tensor self) -> SymInt": lambda self: self.storage_offset(),
    "numel(Tensor self) -> int": lambda self: self.numel(),
    "size(Tensor self) -> int[]": lambda self: self.shape,
    "stride(Tensor self) -> int[]": lambda self: self.stride(),
    "storage_offset(Tensor self) -> int": lambda self: self.storage_offset(),
    "is_non_overlapping_and_dense(Tensor self) -> bool": lambda self: _answer_or(
        self, "is_non_overlapping_and_dense", _is_dense
    ),
    "is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool": (
        lambda self, memory_format: _answer_or(self, "is_strides_like_format", _lies_like, memory_format)
    ),
    "sym_size.int(Tensor self, int dim) -> SymInt": lambda self, dim: self.shape[dim],
    "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)": lambda self, *args, **kwargs: _to(
        self, ("dtype",), args, kwargs
    ),
    "to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)": lambda self, *args, **kwargs: _to(
        self, ("device", "dtype"), args, kwargs
    ),
    "to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, "
    "MemoryFormat? memory_format=None) -> Tensor(a)": lambda self, other, *args, **kwargs: _to(
        self, (), args, kwargs, device=other.device, dtype=other.dtype
    ),
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) "
    "-> Tensor(a)": lambda self, *, layout=None, pin_memory=None, **kwargs: _to(self, (), (), kwargs),
}


def _checked(condition, message, token):
    """Raise unless the condition holds; the token, copied, orders the check before what uses the copy."""
    torch._check(condition, lambda: message)
    return token.clone()


def _to(self, first, args, kwargs, **more):
    """`Tensor.to` with what an overload has by position under its names."""
    names = (*first, "non_blocking", "copy", "memory_format")
    given = {**dict(zip(names, args)), **kwargs, **more}
    return self.to(**{name: value for name, value in given.items() if value is not None})


for _schema, _function in _METHODS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")


# The overload whose factor may stand by position.
_library.define("rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor")
_library.impl(
    "rsub.Scalar",
    lambda self, other, alpha=1: torch.rsub(self, other, alpha=alpha),
    "CompositeImplicitAutograd",
)


def _grouped_mm(self, mat2, offs=None, bias=None, out_dtype=None):
    """Products of groups: ``offs`` says where each group ends, in the rows, the columns or the inner axis."""
    if self.dim() == 3 and mat2.dim() == 3:
        result = torch.bmm(self, mat2)
    else:
        if offs is None:
            raise RuntimeError("Have to provide offsets if there is a 2d matrix")
        ends = offs.tolist()
        parts = list(zip([0, *ends[:-1]], ends))
        if self.dim() == 2 and mat2.dim() == 2:
            result = torch.stack([self[:, a:b] @ mat2[a:b] for a, b in parts])
        elif self.dim() == 2:
            result = torch.cat([self[a:b] @ mat2[group] for group, (a, b) in enumerate(parts)])
        else:
            result = torch.cat([self[group] @ mat2[:, a:b] for group, (a, b) in enumerate(parts)], dim=-1)
    if bias is not None:
        result = result + bias
    return result if out_dtype is None else result.to(out_dtype)


_library.define(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) "
    "-> Tensor"
)
_library.impl("_grouped_mm", _grouped_mm, "CompositeExplicitAutograd")


def _library_batch_norm(
    input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
):
    """Normalisation by channel under a library's own name: the result, and the mean and scale of the
    batch."""
    return torch.native_batch_norm(
        input, weight, bias, running_mean, running_var, training, exponential_average_factor, epsilon
    )


_BATCH_NORM = (
    "(Tensor input, Tensor weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float exponential_average_factor, float epsilon) -> "
)
_library.define(f"cudnn_batch_norm{_BATCH_NORM}(Tensor, Tensor, Tensor, Tensor)")
_library.impl(
    "cudnn_batch_norm",
    # The fourth result is the library's memory for the backward pass.
    lambda input, *args: (*_library_batch_norm(input, *args), input.new_empty(0, dtype=torch.uint8)),
    "CompositeImplicitAutograd",
)
_library.define(f"miopen_batch_norm{_BATCH_NORM}(Tensor, Tensor, Tensor)")
_library.impl("miopen_batch_norm", _library_batch_norm, "CompositeImplicitAutograd")
