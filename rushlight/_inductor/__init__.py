"""The default back end of `torch.compile`: no compiler is needed where it runs."""

from rushlight._inductor import config, utils
from rushlight._inductor.compile_fx import compile_fx

__all__ = ["compile_fx", "config", "list_mode_options", "list_options", "utils"]

_MODES: dict = {
    "default": {},
    "reduce-overhead": {"triton.cudagraphs": True},
    "max-autotune": {"triton.cudagraphs": True},
    "max-autotune-no-cudagraphs": {},
}


def list_mode_options(mode=None, dynamic=None):
    """What the modes of `torch.compile` set: whether CUDA graphs are recorded; on the CPU all do the same."""
    return dict(_MODES) if mode is None else _MODES[mode]


def list_options():
    """The names that ``options=`` takes."""
    return [name for name in vars(config) if not name.startswith("_")]
