"""Which pipes a pipe is made of."""

from collections.abc import Mapping

from rushlight.utils.data.datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

_PIPES = (IterDataPipe, MapDataPipe)


def _pipes_in(value, found):
    """Pipes in a value: itself, or those in a collection."""
    if isinstance(value, _PIPES):
        found.append(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            _pipes_in(item, found)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            _pipes_in(item, found)
    return found


def _traverse(pipe, above):
    if not isinstance(pipe, _PIPES):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:
        return {}
    above = above | {id(pipe)}
    below = {}
    for item in _pipes_in(list(vars(pipe).values()), []):
        below.update(_traverse(item, above))
    return {id(pipe): (pipe, below)}


def traverse_dps(datapipe):
    """The pipes that a pipe has as attributes, also inside of collections: ``{id: (pipe, {...})}``."""
    return _traverse(datapipe, frozenset())


def traverse(datapipe, only_datapipe=None):
    """The former name of :func:`traverse_dps`."""
    import warnings

    warnings.warn(
        "`traverse` function is deprecated and will be removed after 1.13. "
        "Please use `traverse_dps` instead.",
        FutureWarning,
        stacklevel=2,
    )
    return traverse_dps(datapipe)
