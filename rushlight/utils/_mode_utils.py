"""Names under which test helpers switch dispatch modes off."""

from rushlight import _C

__all__ = ["all_same_mode", "no_dispatch"]


def no_dispatch():
    """A context in which no ``__torch_dispatch__`` runs, neither a mode's nor a subclass's."""
    return _C._DisableTorchDispatch()


def all_same_mode(modes):
    return all(mode == modes[0] for mode in modes)
