"""How much collectives check themselves: TORCH_DISTRIBUTED_DEBUG=OFF, INFO or DETAIL."""

import enum
import os

from rushlight._command.names import show_public_from


class DebugLevel(enum.IntEnum):
    OFF = 0
    INFO = 1
    DETAIL = 2

    __str__ = enum.Enum.__str__  # the name, as PyTorch prints it


_level = DebugLevel.OFF


def get_debug_level() -> DebugLevel:
    return _level


def set_debug_level(level: DebugLevel) -> None:
    global _level
    _level = DebugLevel(level)


def set_debug_level_from_env() -> None:
    """Read the level from TORCH_DISTRIBUTED_DEBUG; raises RuntimeError for another word."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError(
            f"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO or DETAIL, but is {name!r}"
        )
    set_debug_level(DebugLevel[name])


set_debug_level_from_env()


show_public_from("distributed.distributed_c10d", globals())
