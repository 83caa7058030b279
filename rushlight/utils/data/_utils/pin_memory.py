"""Moves the tensors of a batch to page-locked memory, which an accelerator copies from faster."""

from collections.abc import Mapping, Sequence

import rushlight


def pin_memory(data, device=None):
    if isinstance(data, rushlight.Tensor):
        return data.pin_memory()
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return type(data)({key: pin_memory(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(pin_memory(value) for value in data))
    if isinstance(data, Sequence):
        values = [pin_memory(value) for value in data]
        return tuple(values) if isinstance(data, tuple) else values
    return data


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device):
    """The thread of a loader from elsewhere: batches of one queue, pinned, go to the other."""
    import queue

    from rushlight.utils.data._utils import MP_STATUS_CHECK_INTERVAL, ExceptionWrapper

    rushlight.set_num_threads(1)
    while not done_event.is_set():
        try:
            index, data = in_queue.get(timeout=MP_STATUS_CHECK_INTERVAL)
        except queue.Empty:
            continue
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        while not done_event.is_set():
            try:
                out_queue.put((index, data), timeout=MP_STATUS_CHECK_INTERVAL)
                break
            except queue.Full:
                continue
