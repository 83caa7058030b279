"""Kernels of built-in operators that a library replaces for as long as it lives."""

import functools

from rushlight import _C

AUTOGRAD_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA", "AutogradMeta")
# Devices that no build has: their kernels are accepted, and no tensor ever asks for them.
ELSEWHERE = frozenset(
    prefix + device
    for prefix in ("", "Autograd", "Autocast")
    for device in ("XPU", "MPS", "HPU", "MTIA", "XLA", "IPU", "Lazy")
)
AUTOCAST_DEVICES = {"AutocastCPU": "cpu", "AutocastCUDA": "cuda"}
_DEVICES = ("cpu", "cuda", "meta")


def replace(overload, key, function):
    """Let a function compute an operator on the devices of a dispatch key; what `undo` undoes it by.

    Raises NotImplementedError for a key whose kernels cannot be replaced.
    """
    devices, records = _meant(overload, key)
    entry = overload._entry
    places = [(entry.index, int(entry.form), device) for device in devices]
    for place in places:
        _C._replace_kernel(*place, function, records)
    return [functools.partial(_C._replace_kernel, *place, None, False) for place in places]


def skip(overload, key):
    """Let nothing be done to calls of an operator for a dispatch key; what `undo` undoes it by.

    Raises NotImplementedError for a key that cannot be skipped.
    """
    if key in AUTOGRAD_KEYS:
        raise NotImplementedError(f"Library.impl: {overload} has a derivative, which cannot be left out")
    if key not in AUTOCAST_DEVICES:
        return []
    place = overload._entry.index, AUTOCAST_DEVICES[key]
    _C._skip_autocast(*place, True)
    return [functools.partial(_C._skip_autocast, *place, False)]


def undo(changes):
    """The operators compute by their own kernels again."""
    for change in changes:
        change()


def _meant(overload, key):
    """The devices that a key means, and whether the function records its own gradients."""
    if key in ("CompositeImplicitAutograd", ""):
        return (_DEVICES if overload.traits.family == "composite" else ()), True
    if key == "CompositeExplicitAutograd" or key in ELSEWHERE:
        return (), False  # what computes on a device goes first, and there is something for each
    if key in ("CPU", "CUDA", "Meta", *AUTOGRAD_KEYS):
        device = key.removeprefix("Autograd").lower()
        return ((device,) if device else _DEVICES), key in AUTOGRAD_KEYS
    raise NotImplementedError(f"Library.impl: no kernels can be replaced for dispatch key {key!r}")
