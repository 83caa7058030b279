"""The former home of `torch.distributed.tensor._utils`."""

from rushlight.distributed.tensor._utils import *  # noqa: F403
from rushlight.distributed.tensor._utils import __all__ as __all__
