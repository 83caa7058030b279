"""Linear algebra; all of it is in the core."""

from rushlight import _C

__capture__ = "through"  # Note [Capture marks]

LinAlgError = _C._LinAlgError
globals().update({name: f for name, f in vars(_C._linalg).items() if not name.startswith("__")})
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._linalg import *  # noqa: F403

__all__ = sorted([*(name for name in vars(_C._linalg) if not name.startswith("_")), "LinAlgError"])
