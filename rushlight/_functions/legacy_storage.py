"""What typed storages have from the times when they were all there was: refusals of arguments, and second
names of methods, with an underscore, which never warn."""

from collections.abc import Sequence
from typing import Any

import rushlight

_OF_CLASS = """{name}.__new__ received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)"""
_OF_TYPED = """TypedStorage.__init__ received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""


def check_arguments(cls, own_dtype, args, wrap_storage, dtype, device):
    """Refuse what the constructor of a typed storage can't make one of."""
    expected = _OF_TYPED if own_dtype is None else _OF_CLASS.format(name=cls.__name__)

    def refuse(what, kind=RuntimeError):
        raise kind(f"{expected}\n{what}")

    if own_dtype is not None and device is not None:
        refuse("Keyword argument 'device' cannot be specified")
    if own_dtype is not None and dtype is not None:
        refuse("Keyword argument 'dtype' cannot be specified")
    if wrap_storage is not None:
        if args:
            refuse("No positional arguments should be given when using 'wrap_storage'")
        if own_dtype is None and dtype is None:
            refuse("Argument 'dtype' must be specified")
        if own_dtype is None and not isinstance(dtype, rushlight.dtype):
            refuse(f"Argument 'dtype' must be torch.dtype, not {type(dtype)}", TypeError)
        if device is not None:
            refuse("Argument 'device' should not be specified when 'wrap_storage' is given")
        if not isinstance(wrap_storage, rushlight.UntypedStorage):
            refuse(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}", TypeError)
        return
    if len(args) > 1:
        refuse("Too many positional arguments")
    if args and not _is_size(args[0]) and not isinstance(args[0], Sequence):
        refuse(f"Argument type not recognized: {type(args[0])}", TypeError)
    if device is not None and rushlight.device(device).type not in ("cpu", "cuda", "meta"):
        refuse(f"Storage device not recognized: {rushlight.device(device)}")


def _is_size(value):
    return hasattr(value, "__index__") and not isinstance(value, rushlight.Tensor)


class SecondNames:
    """Methods of typed storages under the names that PyTorch's own code calls."""

    def _size(self: Any):
        return len(self)

    def _nbytes(self: Any):
        return self.nbytes()

    def _element_size(self: Any):
        return self.element_size()

    def _data_ptr(self: Any):
        return self.data_ptr()

    def _resize_(self: Any, size):
        self.resize_(size)

    def _is_shared(self: Any):
        return self.is_shared()

    def _share_memory_(self: Any):
        return self.share_memory_()

    def _pickle_storage_type(self: Any):
        return self.pickle_storage_type()

    def _share_fd_cpu_(self: Any):
        descriptor, nbytes = self.untyped()._share_fd_cpu_()
        return descriptor, nbytes // self.element_size()

    def _share_filename_cpu_(self: Any):
        manager, name, nbytes = self.untyped()._share_filename_cpu_()
        return manager, name, nbytes // self.element_size()

    def _write_file(self: Any, file, is_real_file, save_size, element_size):
        self.untyped()._write_file(file, is_real_file, save_size, element_size)

    def _getitem(self: Any, index):
        return self[index]

    def _setitem(self: Any, index, value):
        self[index] = value

    def _deepcopy(self: Any, memo):
        return self.__deepcopy__(memo)


class OnCuda:
    """Constructors that storages on CUDA do not have."""

    @classmethod
    def from_buffer(cls, *args, **kwargs):
        raise RuntimeError("from_buffer: Not available for CUDA storage")

    @classmethod
    def _new_with_weak_ptr(cls, *args, **kwargs):
        raise RuntimeError("_new_with_weak_ptr: Not available for CUDA storage")

    @classmethod
    def _new_shared_filename(cls, manager, obj, size):
        raise RuntimeError("_new_shared_filename: Not available for CUDA storage")
