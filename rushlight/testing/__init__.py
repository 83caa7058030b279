"""Help for tests: comparing tensors and making them."""

from rushlight.testing import _utils as _utils
from rushlight.testing._comparison import assert_allclose, assert_close
from rushlight.testing._creation import make_tensor
from rushlight.testing._file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]
