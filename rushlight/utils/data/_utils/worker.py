"""What a loader's worker knows about itself; what it does is in `serving`."""

from _thread import _local

__all__ = ["WorkerInfo", "get_worker_info"]

_worker_info: "WorkerInfo | None" = None  # of a process
_of_thread = _local()  # .info: of a thread


def get_worker_info():
    """What a worker of a DataLoader knows about itself; None elsewhere.

    Returns: an object with `id`, `num_workers`, `seed` and `dataset`, or None.

    Example:
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return getattr(_of_thread, "info", None) or _worker_info


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.utils.data._utils.serving import WorkerInfo as WorkerInfo


def __getattr__(name):
    if not name.startswith("__"):
        from importlib import import_module

        serving = import_module("rushlight.utils.data._utils.serving")  # PyTorch has its names here
        if hasattr(serving, name):
            return getattr(serving, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
