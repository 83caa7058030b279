"""NVIDIA's collectives between the devices of one process; between processes: `torch.distributed`."""

import functools

import rushlight

__all__ = ["all_gather", "all_reduce", "broadcast", "is_available", "reduce", "reduce_scatter"]
__all__ += ["unique_id", "version"]

SUM, PROD, MAX, MIN = range(4)


def _library():
    from ..distributed import _nccl_library

    return _nccl_library.require()


def is_available(tensors=None):
    """Whether NCCL is installed, and all `tensors` are ones it takes: dense and on different devices."""
    from ..distributed import _nccl_library

    if not rushlight.cuda.is_available() or _nccl_library.library() is None:
        return False
    tensors = list(tensors or ())
    devices = {t.device.index for t in tensors if t.is_cuda and not t.is_sparse and t.is_contiguous()}
    return len(devices) == len(tensors)


def version():
    """NCCL's version, as (2, 27, 3)."""
    return _library().version


def unique_id():
    """What the ranks of a new communicator find each other by."""
    return _library().unique_id()


@functools.cache
def _communicators(devices):
    return _library().communicators_of(devices)


def _run(name, tensors, arguments, streams=None):
    """One call on every device, with `arguments(i)` before the communicator."""
    library, devices = _library(), tuple(t.device.index for t in tensors)
    if len(set(devices)) != len(devices) or not all(t.is_cuda and t.is_contiguous() for t in tensors):
        raise RuntimeError(f"nccl.{name}: takes contiguous tensors on different CUDA devices, got {devices}")
    library.call("ncclGroupStart")
    try:
        for i, (device, handle) in enumerate(zip(devices, _communicators(devices))):
            with rushlight.cuda.device(device):
                stream = (streams[i] if streams else None) or rushlight.cuda.current_stream(device)
                library.call(name, *arguments(i), handle, stream.cuda_stream, handle=handle)
    finally:
        library.call("ncclGroupEnd")


def _dtype(tensor):
    from ..distributed._nccl_library import dtype_number

    return dtype_number(tensor.dtype)


def all_reduce(inputs, outputs=None, op=SUM, streams=None, comms=None):
    """The reduction of all inputs, on every device; in place unless there are outputs."""
    outputs = inputs if outputs is None else outputs

    def arguments(i):
        x = inputs[i]
        return x.data_ptr(), outputs[i].data_ptr(), x.numel(), _dtype(x), op

    _run("ncclAllReduce", inputs, arguments, streams)


def reduce(inputs, output=None, root=0, op=SUM, streams=None, comms=None, *, outputs=None):
    """The reduction of all inputs, on the device of input `root`."""
    target = output if output is not None else (outputs or inputs)[root]

    def arguments(i):
        x = inputs[i]
        to = target if i == root else x
        return x.data_ptr(), to.data_ptr(), x.numel(), _dtype(x), op, root

    _run("ncclReduce", inputs, arguments, streams)


def broadcast(inputs, root=0, streams=None, comms=None):
    """Input `root` on every device."""

    def arguments(i):
        x = inputs[i]
        return x.data_ptr(), x.data_ptr(), x.numel(), _dtype(x), root

    _run("ncclBroadcast", inputs, arguments, streams)


def all_gather(inputs, outputs, streams=None, comms=None):
    """All inputs, one after the other, on every device."""

    def arguments(i):
        return inputs[i].data_ptr(), outputs[i].data_ptr(), inputs[i].numel(), _dtype(inputs[i])

    _run("ncclAllGather", inputs, arguments, streams)


def reduce_scatter(inputs, outputs, op=SUM, streams=None, comms=None):
    """The reduction of all inputs, a part on each device."""

    def arguments(i):
        return inputs[i].data_ptr(), outputs[i].data_ptr(), outputs[i].numel(), _dtype(outputs[i]), op

    _run("ncclReduceScatter", inputs, arguments, streams)
