from rushlight.autograd._functions import Resize, Type  # noqa: F401
