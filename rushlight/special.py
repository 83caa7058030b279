"""Special functions."""

from rushlight import _C

__capture__ = "through"  # Note [Capture marks]

globals().update({name: f for name, f in vars(_C._special).items() if not name.startswith("__")})
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._special import *  # noqa: F403
__all__ = sorted(name for name in vars(_C._special) if not name.startswith("_"))
