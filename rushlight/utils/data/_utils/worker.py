"""What a loader's worker process knows about itself."""

_worker_info = None


def get_worker_info():
    """Number, count, seed and dataset of the current worker process; None in the main process."""
    return _worker_info
