"""Help for tests: comparing tensors and making them."""

from rushlight.testing._comparison import assert_allclose, assert_close
from rushlight.testing._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
