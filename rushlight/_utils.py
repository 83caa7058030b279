"""The functions that pickled tensors name: how a tensor is taken apart for pickling and put together
again."""

from _thread import _local as _local_of_thread

import rushlight

__capture__ = "through"  # Note [Capture marks]

# .saver: the file being written by this thread, which may move tensors within it. .unfilled: while a file
# is read whose numbers come last, the checks of those that say where others lie.
_local = _local_of_thread()


def _extent(size, stride, offset=0):
    """First and one-past-last element that a tensor of this layout touches; empty for a tensor without
    elements."""
    if 0 in size:
        return offset, offset
    low = high = offset
    for n, step in zip(size, stride):
        if step < 0:
            low += (n - 1) * step
        else:
            high += (n - 1) * step
    return low, high + 1


def _storage_for_pickle(tensor):
    """The storage to write for a tensor, and the tensor's offset in it.

    Only the bytes that are looked at are written. While a file is being saved, tensors that share memory
    have to agree on one piece, so the saver decides; a tensor pickled alone takes its own.
    """
    from rushlight.storage import TypedStorage

    whole, offset, dtype = tensor.untyped_storage(), tensor.storage_offset(), tensor.dtype
    saver = getattr(_local, "saver", None)
    extent = _extent(tensor.size(), tensor.stride(), offset)
    if saver is not None:
        start = saver.place(whole, dtype, extent)
    else:
        start, end = extent
        if (end - start) * tensor.element_size() < whole.nbytes():
            whole = whole[start * tensor.element_size() : end * tensor.element_size()]
        else:
            start = 0
    offset = 0 if 0 in tensor.size() else offset - start
    return TypedStorage(wrap_storage=whole, dtype=dtype, _internal=True), offset


def _reduce_tensor(tensor, protocol=2):
    """What ``Tensor.__reduce_ex__`` returns: a rebuild function and its arguments."""
    from rushlight._serialization.settings import skips_data

    if skips_data():
        tensor = _without_data(tensor)
    if type(tensor) is rushlight.Tensor and not tensor.__dict__:
        return _reduce_plain(tensor)
    function, args = _reduce_plain(tensor)
    state = _get_obj_state(tensor)
    return _rebuild_from_type_v2, (function, type(tensor), args, state)


def _reduce_plain(tensor):
    if tensor._backward_hooks:
        from rushlight.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    if tensor.layout != rushlight.strided:
        return _rebuild_sparse_tensor, _sparse_parts(tensor)
    size, stride, requires_grad = tuple(tensor.size()), tuple(tensor.stride()), tensor.requires_grad
    if _is_data_less_wrapper(tensor):
        return _rebuild_wrapper_subclass, (
            type(tensor),
            tensor.dtype,
            size,
            stride,
            tensor.storage_offset(),
            tensor.layout,
            tensor.device,
            requires_grad,
        )
    if tensor.is_meta:
        return _rebuild_meta_tensor_no_storage, (tensor.dtype, size, stride, requires_grad)
    if tensor.is_conj() or tensor.is_neg():  # readers without such views, C++ too, find the numbers
        tensor = tensor.detach().clone()
        stride = tensor.stride()
    storage, offset = _storage_for_pickle(tensor)
    if tensor.is_quantized:
        parts = (_quantizer_parts(tensor), requires_grad, _no_hooks())
        return _rebuild_qtensor, (storage, offset, size, stride, *parts)
    args = (storage, offset, size, stride, requires_grad, _no_hooks())
    if storage.is_extended:
        return _rebuild_tensor_v3, (storage.untyped(), *args[1:], tensor.dtype)
    return _rebuild_tensor_v2, args


def _no_hooks():
    """Hooks are code and stay behind; an empty dict keeps their place."""
    from collections import OrderedDict

    return OrderedDict()


def _without_data(tensor):
    """What to write for a tensor where storages stay empty: for a fake one, if wanted, a plain one."""
    from rushlight._serialization.settings import fakes_materialized

    if fakes_materialized() and hasattr(tensor, "fake_mode"):
        storage = rushlight._C._as_meta(tensor).untyped_storage()
        made = _local.saver.materialized  # the meta storage is kept: its address tells it from others
        _, room = made.setdefault(storage._cdata, (storage, rushlight.UntypedStorage(storage.nbytes())))
        real = rushlight.empty(0, dtype=tensor.dtype)
        real.set_(room, tensor.storage_offset(), tensor.size(), tensor.stride())
        return real.requires_grad_(tensor.requires_grad)
    if tensor.is_meta:
        import warnings

        warnings.warn(
            "Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=2
        )
    return tensor


def _is_data_less_wrapper(tensor):
    """Whether a class computes elsewhere what this tensor only stands for."""
    if type(tensor) is rushlight.Tensor or tensor.is_meta:
        return False
    return tensor.numel() > 0 and tensor.untyped_storage().device.type == "meta"


def _sparse_parts(tensor):
    """Layout and parts of a sparse tensor, as files hold them."""
    layout, size = tensor.layout, tensor.size()
    if layout == rushlight.sparse_coo:
        return layout, (tensor._indices(), tensor._values(), size, tensor.is_coalesced())
    if layout in (rushlight.sparse_csr, rushlight.sparse_bsr):
        return layout, (tensor.crow_indices(), tensor.col_indices(), tensor.values(), size)
    return layout, (tensor.ccol_indices(), tensor.row_indices(), tensor.values(), size)


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor from a file, with every index checked, now or when there are numbers."""
    later = getattr(_local, "unfilled", None)
    if later is not None:
        tensor = _unchecked_sparse_tensor(layout, data)
        later.append(lambda: _check_sparse_tensor(tensor, layout, data))
        return tensor
    if layout == rushlight.sparse_coo:
        indices, values, size, *coalesced = data
        tensor = rushlight.sparse_coo_tensor(indices, values, size)
        if coalesced and coalesced[0] and tensor.coalesce()._nnz() == tensor._nnz():
            tensor = tensor.coalesce()
        return tensor
    compressed, plain, values, size = data
    return rushlight.sparse_compressed_tensor(compressed, plain, values, size, layout=layout)


def _unchecked_sparse_tensor(layout, data):
    functions = rushlight._C._VariableFunctions
    if layout == rushlight.sparse_coo:
        indices, values, size, *coalesced = data
        coalesced = bool(coalesced and coalesced[0])
        return functions._sparse_coo_tensor_unsafe(indices, values, list(size), is_coalesced=coalesced)
    compressed, plain, values, size = data
    return functions._sparse_compressed_tensor_unsafe(compressed, plain, values, list(size), layout=layout)


def _check_sparse_tensor(tensor, layout, data):
    made = _rebuild_sparse_tensor(layout, data)
    if layout == rushlight.sparse_coo and tensor.is_coalesced() and not made.is_coalesced():
        raise RuntimeError("load: a sparse tensor is not coalesced, though the file says so; it is damaged")


def _reduce_parameter(parameter, protocol=2):
    """What ``Parameter.__reduce_ex__`` returns."""
    state = _get_obj_state(parameter)
    args = (parameter.data, parameter.requires_grad, _no_hooks())
    return (_rebuild_parameter_with_state, (*args, state)) if state else (_rebuild_parameter, args)


def _get_obj_state(tensor):
    """Attributes that a program put on the tensor object."""
    if hasattr(type(tensor), "__getstate__") and type(tensor).__getstate__ is not _object_getstate:
        return tensor.__getstate__()
    attributes = dict(getattr(tensor, "__dict__", None) or {})
    slots = _slot_values(tensor)
    return (attributes, slots) if slots else attributes


def _slot_values(tensor):
    """What a subclass keeps in slots of its own."""
    from copyreg import _slotnames

    return {name: getattr(tensor, name) for name in _slotnames(type(tensor)) if hasattr(tensor, name)}


_object_getstate = getattr(object, "__getstate__", None)


def _set_obj_state(obj, state):
    """Put pickled attributes back: a dict, or a pair of a dict and slot values."""
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes, slots = state
    else:
        attributes, slots = state, None
    for key, value in {**(attributes or {}), **(slots or {})}.items():
        setattr(obj, key, value)
    return obj


def _check_layout(storage, offset, size, stride, itemsize):
    """Refuse a layout that reaches outside the storage: a file may say anything."""
    numbers = (offset, *size, *stride)
    if (
        len(size) != len(stride)
        or not all(isinstance(n, int) for n in numbers)
        or any(n < 0 for n in (offset, *size))
    ):
        raise RuntimeError(
            f"rebuild tensor: invalid layout, size {size}, stride {stride}, storage offset {offset}; is "
            "the file damaged?"
        )
    low, high = _extent(size, stride, offset)
    if 0 not in size and (low < 0 or high * itemsize > storage.nbytes()):
        raise RuntimeError(
            f"rebuild tensor: size {size}, stride {stride} and storage offset {offset} reach outside the "
            f"storage of {storage.nbytes()} bytes; is the file damaged?"
        )


def _rebuild(storage, dtype, offset, size, stride):
    size, stride = tuple(size), tuple(stride)
    if storage.device.type == "meta":
        return rushlight.empty_strided(size, stride, dtype=dtype, device="meta")
    tensor = rushlight.empty((0,), dtype=dtype, device=storage.device)
    _check_layout(storage, offset, size, stride, tensor.element_size())
    tensor.set_(storage, offset, size, stride)
    return tensor


def _quantizer_parts(tensor):
    """What the integers of a quantised tensor mean, as files hold it."""
    scheme = tensor.qscheme()
    if scheme == rushlight.per_tensor_affine:
        return scheme, tensor.q_scale(), tensor.q_zero_point()
    channels = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return scheme, *channels, tensor.q_per_channel_axis()


def _quantized_on(storage, dtype, offset, size, stride, parts):
    """A quantised tensor over the bytes of a storage."""
    scheme, scale, zero_point, *axis = parts
    size, stride = tuple(size), tuple(stride)
    together = {rushlight.quint4x2: 2, rushlight.quint2x4: 4}.get(dtype)  # integers in a byte
    if together is None:
        _check_layout(storage, offset, size, stride, dtype.itemsize)
    if scheme == rushlight.per_tensor_affine:
        tensor = rushlight._empty_affine_quantized(size, scale=scale, zero_point=zero_point, dtype=dtype)
    elif scheme in (rushlight.per_channel_affine, rushlight.per_channel_affine_float_qparams):
        if not isinstance(scale, rushlight.Tensor):  # files of PyTorch up to 1.7 hold lists
            integers = scheme == rushlight.per_channel_affine
            scale = rushlight.tensor(scale, dtype=rushlight.double if integers else rushlight.float)
            zero_point = rushlight.tensor(zero_point, dtype=rushlight.long if integers else rushlight.float)
        tensor = rushlight._empty_per_channel_affine_quantized(
            size, scales=scale, zero_points=zero_point, axis=axis[0], dtype=dtype
        )
    else:
        raise RuntimeError(f"Can't deserialize quantized tensor with qscheme {scheme}")
    if together is None:
        tensor.set_(storage, offset, size, stride)
        return tensor
    bytes_of = tensor.untyped_storage()
    if offset or stride != tensor.stride() or bytes_of.nbytes() > storage.nbytes():
        raise RuntimeError(
            f"rebuild tensor: size {size}, stride {stride} and storage offset {offset} do not fit {dtype} in "
            f"a storage of {storage.nbytes()} bytes; is the file damaged?"
        )
    bytes_of.copy_(storage[: bytes_of.nbytes()])
    return tensor


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    tensor = _quantized_on(storage.untyped(), storage.dtype, storage_offset, size, stride, quantizer_params)
    return _finish(tensor, requires_grad, backward_hooks, None)


def _rebuild_tensor(storage, storage_offset, size, stride):
    return _rebuild(storage.untyped(), storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    return _finish(
        _rebuild_tensor(storage, storage_offset, size, stride), requires_grad, backward_hooks, metadata
    )


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    tensor = _rebuild(storage.untyped(), dtype, storage_offset, size, stride)
    return _finish(tensor, requires_grad, backward_hooks, metadata)


def _turned(tensor, conj, neg):
    """A leaf on the same memory whose conjugation or negation is pending."""
    with rushlight.no_grad():
        tensor = tensor.conj() if conj else tensor
        return (tensor._neg_view() if neg else tensor).detach()


def _finish(tensor, requires_grad, backward_hooks, metadata):
    if metadata:
        tensor = _turned(tensor, metadata.get("conj"), metadata.get("neg"))
    tensor.requires_grad = bool(requires_grad)
    _restore_hooks(tensor, backward_hooks)
    return tensor


def _restore_hooks(tensor, backward_hooks):
    if backward_hooks:
        tensor._backward_hooks = backward_hooks


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A strided nested tensor from its buffer and where the components lie there."""
    from rushlight.nested._internal.strided import strided_from_buffer

    return strided_from_buffer(buffer, sizes, strides, storage_offsets)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return rushlight.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    return rushlight.Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        dtype=dtype,
        storage_offset=storage_offset,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_parameter(data, requires_grad, backward_hooks):
    parameter = rushlight.nn.Parameter(data, requires_grad)
    _restore_hooks(parameter, backward_hooks)
    return parameter


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _rebuild_from_type_v2(func, new_type, args, state):
    tensor = func(*args)
    if type(tensor) is not new_type:
        tensor = tensor.as_subclass(new_type)
    if getattr(new_type, "__setstate__", None) is not getattr(rushlight.Tensor, "__setstate__", None):
        tensor.__setstate__(state)
    else:
        _set_obj_state(tensor, state)
    return tensor


class KeyErrorMessage(str):
    """A text that is its own repr: KeyError shows the repr of its argument, which would spoil a traceback."""

    __slots__ = ()

    def __repr__(self):
        return self


class ExceptionWrapper:
    """The exception being handled, as type and text, on its way to another thread or process."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        # The traceback itself is not kept: it would keep every frame's variables alive.
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = exc_info[0]
        self.exc_msg = "".join(traceback.format_exception(*exc_info))
        self.where = where

    def reraise(self):
        """Raises an exception of the same type whose message holds the first one's traceback."""
        msg = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            msg = KeyErrorMessage(msg)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=msg)
        try:
            exception = self.exc_type(msg)
        except Exception:  # a type that is not made from one text
            raise RuntimeError(msg) from None
        raise exception


def _element_size(dtype):
    """Bytes of one element of this type."""
    if not isinstance(dtype, rushlight.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _is_privateuse1_backend_available():
    """Whether an extension claimed the spare device type: none can."""
    return False


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number of a device that is given as a number, a name or a device.

    Args:
        device: None stands for the current one, with `optional`.
        optional: whether the number may be left out; the current device's is taken then.
        allow_cpu: whether the CPU is welcome, as -1.
    """
    if isinstance(device, str):
        device = rushlight.device(device)
    if isinstance(device, rushlight.device):
        if device.type == "cpu":
            if allow_cpu:
                return -1 if device.index is None else device.index
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        device = device.index
    elif not isinstance(device, (int, type(None))):
        raise ValueError(f"Expected a torch.device, a string or an integer, but got: {device}")
    if device is not None:
        return device
    if not optional:
        raise ValueError("Expected a device with a specified index or an integer, but got: None")
    return rushlight.accelerator.current_device_index()


def _get_available_device_type():
    """The accelerator of this machine that is in use, or None."""
    return next(
        (name for name in ("cuda", "mps", "xpu", "mtia") if getattr(rushlight, name).is_available()), None
    )


def _get_device_module(device_type):
    """The module of a type of device."""
    module = getattr(rushlight, device_type, None)
    if module is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return module


def is_compiling():
    """Deprecated: `torch.compiler.is_compiling`."""
    import warnings

    from rushlight.compiler import is_compiling

    message = "`torch._utils.is_compiling` is deprecated. Use `torch.compiler.is_compiling` instead."
    warnings.warn(message, stacklevel=2)
    return is_compiling()


def _take_tensors(tensors, size_limit):
    """Groups of tensors of one type, in order, each of at most so many bytes unless one tensor has more."""
    groups: dict = {}
    for tensor in tensors:
        group, size = groups.get(tensor.type(), ([], 0))
        if group and size + tensor.nbytes > size_limit:
            yield group
            group, size = [], 0
        groups[tensor.type()] = [*group, tensor], size + tensor.nbytes
    yield from (group for group, _ in groups.values() if group)


def _flatten_dense_tensors(tensors):
    """All elements of the tensors as one vector."""
    flat = [t.contiguous().view(-1) for t in tensors]
    return flat[0] if len(flat) == 1 else rushlight.cat(flat)


def _unflatten_dense_tensors(flat, tensors):
    """Views of a vector in the shapes of the tensors; those without elements get a vector without any."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(p.view_as(t) if t.numel() else flat.new_empty(0) for p, t in zip(parts, tensors))
