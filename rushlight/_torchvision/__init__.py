"""The operators of torchvision's own libraries, which are built for PyTorch's ABI and cannot be loaded here.

`torch.ops.load_library` calls `stands_in_for` with the file that torchvision asks for. The operators have the
schemas of torchvision 0.28 and the meaning that its documentation gives them; they are programs of tensor
operators, so that they have gradients, and run on every device. `box_iou_rotated` is missing.
"""

import importlib
import os

_OPERATORS_OF = {"_C": "boxes", "image": "images"}


def stands_in_for(path) -> bool:
    """Whether the file is one of torchvision's libraries, whose operators exist from now on."""
    folder, name = os.path.split(os.fspath(path))
    module = _OPERATORS_OF.get(name.partition(".")[0])
    if module is None or os.path.basename(folder) != "torchvision":
        return False
    importlib.import_module(f"{__name__}.{module}")
    return True
