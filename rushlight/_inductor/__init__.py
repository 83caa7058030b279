"""The default back end of `torch.compile`: no compiler is needed where it runs."""

import warnings

from rushlight._inductor import config, utils
from rushlight._inductor.compile_fx import compile_fx

__all__ = ["compile_fx", "config", "list_mode_options", "list_options", "utils"]

_MODES: dict = {
    "default": {},
    "lite": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {},
    "max-autotune": {"triton.cudagraphs": True},
}


def list_mode_options(mode=None, dynamic=None):
    """What the modes of `torch.compile` set: whether CUDA graphs are recorded. On the CPU all but "lite",
    which runs the operators as they were captured, do the same."""
    return dict(_MODES) if mode is None else _MODES[mode]


def list_options():
    """The names that ``options=`` takes."""
    return list(config.get_config_copy())


def check_options(options):
    """Refuses a value of another type than the setting's, and tells of names that are no settings here: those
    of PyTorch's code generator, and misspelt ones."""
    known = config.get_config_copy()
    for name, value in options.items():
        if name in known and not isinstance(value, type(known[name])):
            kind = type(known[name]).__name__
            given = type(value).__name__
            raise RuntimeError(f"Unexpected type of attr {name}, got {given} should be {kind}")
    unknown = [name for name in options if name not in known]
    if unknown:
        warnings.warn(
            f"torch.compile: the options {', '.join(map(repr, unknown))} have no effect: this back end has "
            f"no such setting. It has: {', '.join(known)}",
            UserWarning,
            stacklevel=4,
        )
