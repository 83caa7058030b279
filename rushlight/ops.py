"""``torch.ops``: see ``rushlight._ops``. Importing this name gives the object itself."""

import sys

from rushlight._ops import ops as ops

__capture__ = "through"  # Note [Capture marks]

ops.__spec__ = __spec__
sys.modules[__spec__.name] = ops
