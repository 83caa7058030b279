"""The Array API standard (https://data-apis.org/array-api), version 2024.12, over `rushlight.Tensor`.

``x.__array_namespace__()`` answers this module, so libraries written for the standard need no wrapper. Names,
defaults and type promotion are the standard's: ``axis`` and ``keepdims``, ``correction=0`` for `var`, 0-dim
arrays that promote like all others.
"""

from math import e, inf, nan, pi

from rushlight import (
    bool,
    complex64,
    complex128,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from rushlight.array_api import (
    _creation,
    _dtypes,
    _elementwise,
    _info,
    _linear,
    _manipulation,
    _search,
    _statistics,
    fft,
    linalg,
)
from rushlight.array_api._creation import *
from rushlight.array_api._dtypes import *
from rushlight.array_api._elementwise import *
from rushlight.array_api._info import __array_namespace_info__
from rushlight.array_api._linear import *
from rushlight.array_api._manipulation import *
from rushlight.array_api._search import *
from rushlight.array_api._statistics import *

__array_api_version__ = "2024.12"
newaxis = None

__all__ = [
    *("e", "inf", "nan", "newaxis", "pi", "fft", "linalg", "bool", "complex64", "complex128", "float32"),
    *("float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("__array_api_version__", "__array_namespace_info__"),
    *_creation.__all__,
    *_dtypes.__all__,
    *_elementwise.__all__,
    *_linear.__all__,
    *_manipulation.__all__,
    *_search.__all__,
    *_statistics.__all__,
]


def __dir__():
    return __all__
