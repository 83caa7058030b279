"""`import torch._C._fft`: the part of the extension itself."""

import sys

from rushlight import _C

sys.modules[__name__] = _C._fft
