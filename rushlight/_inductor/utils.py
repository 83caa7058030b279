"""Helpers of the default back end."""

import contextlib
import os
import tempfile

__all__ = ["clear_caches", "fresh_cache", "fresh_inductor_cache"]

_PLACE = "TORCHINDUCTOR_CACHE_DIR"


@contextlib.contextmanager
def fresh_cache(cache_entries=None, dir=None, delete=True):  # noqa: A002 - PyTorch's name
    """Within it, what is kept on disk lies in a new folder, which goes at the end.

    Args:
        cache_entries: a dict that gets the names of the files made, and their sizes in bytes.
        dir: where to make the folder.
        delete: False leaves the folder.
    """
    before, place = os.environ.get(_PLACE), tempfile.mkdtemp(dir=dir)
    os.environ[_PLACE] = place
    try:
        yield
        if cache_entries is not None:
            for parent, _, names in os.walk(place):
                paths = (os.path.join(parent, name) for name in names)
                cache_entries.update({os.path.relpath(path, place): os.path.getsize(path) for path in paths})
    finally:
        if before is None:
            del os.environ[_PLACE]
        else:
            os.environ[_PLACE] = before
        if delete:
            import shutil

            shutil.rmtree(place, ignore_errors=True)


fresh_inductor_cache = fresh_cache


def clear_caches():
    """Forget all graphs of this process; what is on disk stays."""
    from rushlight import _dynamo

    _dynamo.reset()
