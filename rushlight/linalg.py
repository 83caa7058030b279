"""Linear algebra."""

from rushlight import _C

LinAlgError = _C._LinAlgError
globals().update({name: f for name, f in vars(_C._linalg).items() if not name.startswith("__")})
__all__ = sorted(name for name in vars(_C._linalg) if not name.startswith("_")) + ["LinAlgError"]
