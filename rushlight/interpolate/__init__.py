"""Interpolation, with gradients: values at new points of data known at others.

Names and conventions are NumPy's (`interp`, `digitize`) and SciPy's (the rest). Everything is differentiable
in the points asked for, in the data, and in where the data lie.
"""

from rushlight.interpolate._grid import RegularGridInterpolator, interpn
from rushlight.interpolate._linear import digitize, interp
from rushlight.interpolate._piecewise import (
    Akima1DInterpolator,
    CubicHermiteSpline,
    CubicSpline,
    PchipInterpolator,
    PPoly,
)

__all__ = [
    "Akima1DInterpolator",
    "CubicHermiteSpline",
    "CubicSpline",
    "PPoly",
    "PchipInterpolator",
    "RegularGridInterpolator",
    "digitize",
    "interp",
    "interpn",
]
