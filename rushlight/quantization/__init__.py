"""The former home of `torch.ao.quantization`."""

from typing import TYPE_CHECKING

from rushlight._extension.moved import take_names

if TYPE_CHECKING:
    from rushlight.ao.quantization import *
    from rushlight.ao.quantization import default_eval_fn, fuse_modules, fuse_modules_qat, quantize

take_names(globals(), "rushlight.ao.quantization")
