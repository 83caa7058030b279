"""`import torch._C._nn`: the part of the extension itself."""

import sys

from rushlight import _C

sys.modules[__name__] = _C._nn
