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
    """Refuses names and types as PyTorch does, and tells of settings of PyTorch's code generator, which this
    back end has no use for."""
    known = config.get_config_copy()
    idle = []
    for option, value in options.items():
        name = option.replace("-", "_")
        if name not in known:
            raise RuntimeError(
                f"Unexpected optimization option {option}, known options are {list(known.keys())}"
            )
        if not isinstance(value, config.get_type(name)):
            kind, given = type(known[name]).__name__, type(value).__name__
            raise RuntimeError(f"Unexpected type of attr {option}, got {given} should be {kind}")
        if name not in config.EFFECTIVE:
            idle.append(option)
    if idle:
        warnings.warn(
            f"torch.compile: the options {', '.join(map(repr, idle))} have no effect: they are settings of a "
            f"code generator. This back end has: {', '.join(sorted(config.EFFECTIVE))}",
            UserWarning,
            stacklevel=4,
        )
