"""How tensors and storages are taken apart for other processes, and put together there.

A message holds where a storage lies in its sender's slab of shared memory (``core/shared_memory.h``). The
receiver maps a slab once, when the first message from it arrives; after that a tensor of any size costs a few
microseconds.
"""

import errno
import os
from multiprocessing import reduction, util

import rushlight
from rushlight import _C
from rushlight._utils import _rebuild
from rushlight.storage import TypedStorage, UntypedStorage


def _slab_source(fd):
    """From where a receiver gets the slab: (pid, fd), or an object that sends the descriptor itself where the
    system would not let others of the same user open ours."""
    return (os.getpid(), fd) if _C._is_dumpable() and os.path.isdir("/proc/self/fd") else reduction.DupFd(fd)


def _open_slab(source):
    if not isinstance(source, tuple):
        return source.detach()
    pid, fd = source
    path = f"/proc/{pid}/fd/{fd}"
    try:
        if os.readlink(path).startswith("/memfd:rushlight"):
            return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        pass
    raise FileNotFoundError(
        errno.ENOENT,
        f"the memory of a received tensor is gone: process {pid}, which sent it, has ended. Keep it running "
        "until its tensors have been received",
    )


def reduce_storage(storage):
    if storage.device.type != "cpu":
        kind = storage.device.type if storage.device.type == "meta" else storage.device.type.upper()
        raise RuntimeError(f"Cannot pickle {kind} storage; try pickling a {kind} tensor instead")
    if storage.nbytes() == 0:
        return rebuild_storage_empty, (type(storage),)
    _C._shared_move(storage)
    handle, fd = _C._shared_send(storage)
    return rebuild_storage, (handle, _slab_source(fd))


def rebuild_storage_empty(cls):
    return cls()


def rebuild_storage(handle, source):
    if not _C._shared_is_attached(handle[0]):
        _C._shared_attach(_open_slab(source), handle[0])
    elif not isinstance(source, tuple):
        os.close(source.detach())
    return _C._shared_receive(handle)


def reduce_typed_storage(storage):
    return rebuild_typed_storage, (type(storage), storage.untyped(), storage.dtype)


def rebuild_typed_storage(cls, storage, dtype):
    return cls(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_tensor(tensor):
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not "
            "support crossing process boundaries.  If you just want to transfer the data, call detach() on "
            "the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor._backward_hooks:
        from rushlight.utils.hooks import warn_if_has_hooks

        warn_if_has_hooks(tensor)
    if tensor.layout != rushlight.strided:
        return _reduce_sparse(tensor)
    layout = (tensor.storage_offset(), tuple(tensor.size()), tuple(tensor.stride()))
    if tensor.is_meta:
        return rebuild_meta_tensor, (type(tensor), tensor.dtype, *layout[1:], tensor.requires_grad)
    storage = tensor.untyped_storage()
    pending = (tensor.is_conj(), tensor.is_neg())
    return rebuild_tensor, (type(tensor), storage, (tensor.dtype, *layout, tensor.requires_grad), pending)


def _as_class(tensor, cls, requires_grad):
    if cls is rushlight.Tensor:
        return tensor.requires_grad_() if requires_grad else tensor
    return cls(tensor, requires_grad=requires_grad)


def rebuild_tensor(cls, storage, metadata, pending=(False, False)):
    dtype, offset, size, stride, requires_grad = metadata
    tensor = _rebuild(storage, dtype, offset, size, stride)
    is_conj, is_neg = pending
    tensor = tensor.conj() if is_conj else tensor
    return _as_class(tensor._neg_view() if is_neg else tensor, cls, requires_grad)


def rebuild_meta_tensor(cls, dtype, size, stride, requires_grad):
    tensor = rushlight.empty_strided(size, stride, dtype=dtype, device="meta")
    return _as_class(tensor, cls, requires_grad)


def _reduce_sparse(tensor):
    from rushlight._utils import _sparse_parts

    return rebuild_sparse_tensor, (*_sparse_parts(tensor.detach()), tensor.requires_grad)


def rebuild_sparse_tensor(layout, parts, requires_grad):
    from rushlight._utils import _rebuild_sparse_tensor

    tensor = _rebuild_sparse_tensor(layout, parts)
    return tensor.requires_grad_() if requires_grad else tensor


def init_reductions():
    """Teaches the pickler of queues, pipes and processes about tensors."""
    from rushlight.nn.parameter import Parameter

    reduction.register(UntypedStorage, reduce_storage)
    reduction.register(TypedStorage, reduce_typed_storage)
    for cls in (rushlight.Tensor, Parameter):
        reduction.register(cls, reduce_tensor)


def _register_at_exit():
    # What others still hold stays theirs when this process ends, the rest of its slab goes back at once.
    util.Finalize(None, _C._shared_close, exitpriority=-200)


_register_at_exit()
util.register_after_fork(_C, lambda _: _register_at_exit())


class StorageWeakRef:
    """A reference that does not keep a storage alive; equal to others of the same storage."""

    __slots__ = ("cdata", "_life")

    def __init__(self, storage):
        untyped = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
        self.cdata, self._life = untyped._cdata, _C._storage_life(untyped)

    def expired(self):
        """Whether the storage's memory was freed."""
        return _C._storage_has_ended(self._life)

    def __hash__(self):
        return hash(self._life)

    def __eq__(self, other):
        return isinstance(other, StorageWeakRef) and self._life == other._life
