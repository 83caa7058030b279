"""Calls of several modules at once, each in a thread."""

import threading

import rushlight as torch
from rushlight._utils import ExceptionWrapper

from .scatter_gather import _device

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """The first tensor in nested lists, tuples and dictionaries, or None."""
    if isinstance(obj, torch.Tensor):
        return obj
    parts = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    for part in parts:
        found = get_a_var(part)
        if found is not None:
            return found
    return None


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None) -> list:
    """``[modules[i](*inputs[i], **kwargs_tup[i])]``, each in a thread with device i as the current one.

    What is no tuple in `inputs` is the one argument. Grad mode and autocast are the caller's. An error of a
    call is raised here, with its traceback.

    Raises: ValueError where the lists differ in length.

    Example:
        >>> torch.nn.parallel.parallel_apply([torch.abs, torch.neg], [torch.tensor(-1), torch.tensor(2)])
        [tensor(1), tensor(-2)]
    """
    kwargs = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    places = [None if d is None else _device(d) for d in devices or [None] * len(modules)]
    if not len(modules) == len(inputs) == len(kwargs) == len(places):
        raise ValueError(
            f"parallel_apply: {len(modules)} modules, {len(inputs)} inputs, {len(kwargs)} kwargs_tup and "
            f"{len(places)} devices must be equally many"
        )
    results: list = [None] * len(modules)
    recording = torch.is_grad_enabled()
    casts = {
        kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")
    }

    def call(i, module, arguments, named, place):
        try:
            if not isinstance(arguments, (list, tuple)):
                arguments = (arguments,)
            if place is None:
                found = get_a_var(arguments)
                place = None if found is None else found.device
            on_device = place if place is not None and place.type == "cuda" else -1
            cpu, cuda = casts["cpu"], casts["cuda"]
            with (
                torch.cuda.device(on_device),
                torch.set_grad_enabled(recording),
                torch.autocast("cpu", dtype=cpu[1], enabled=cpu[0]),
                torch.autocast("cuda", dtype=cuda[1], enabled=cuda[0]),
            ):
                results[i] = module(*arguments, **named)
        except Exception:
            results[i] = ExceptionWrapper(where=f"in replica {i} on device {place}")

    calls = [(i, *each) for i, each in enumerate(zip(modules, inputs, kwargs, places))]
    if len(calls) == 1:
        call(*calls[0])
    else:
        threads = [threading.Thread(target=call, args=each) for each in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results
