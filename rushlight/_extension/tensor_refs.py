"""References to tensors that do not keep them, and the set of those whose memory a graph replays."""

import weakref

from rushlight.utils.weak import WeakIdKeyDictionary


class _WeakTensorRef:
    """Knows whether a tensor is still there. A tensor has one Python object, which lives as long as it."""

    def __init__(self, tensor):
        self._ref = weakref.ref(tensor)

    def expired(self):
        return self._ref() is None


_cached = WeakIdKeyDictionary()
_enabled = False


def _set_cached_tensors_enabled(enabled):
    """Whether tensors are noted; those noted before are forgotten when it is switched off."""
    global _enabled
    _enabled = bool(enabled)
    if not _enabled:
        _cached.clear()


def _add_cached_tensor(tensor):
    if _enabled:
        _cached[tensor] = True


def _remove_cached_tensor(tensor):
    _cached.pop(tensor, None)


def _is_cached_tensor(tensor):
    return tensor in _cached
