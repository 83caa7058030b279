"""``torch.ops``: see ``rushlight._ops``. Importing this name gives the object itself."""

import sys

from rushlight._ops import ops

sys.modules[__name__] = ops
