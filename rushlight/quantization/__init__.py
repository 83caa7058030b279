"""The former home of `torch.ao.quantization`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization import *
    from rushlight.ao.quantization import ObserverOrFakeQuantize as ObserverOrFakeQuantize
    from rushlight.ao.quantization import default_eval_fn as default_eval_fn
    from rushlight.ao.quantization import fuse_modules as fuse_modules
    from rushlight.ao.quantization import fuse_modules_qat as fuse_modules_qat
    from rushlight.ao.quantization import quantize as quantize

take_names(globals(), "rushlight.ao.quantization")
