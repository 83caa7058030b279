"""The former home of `torch.ao.quantization`."""

from rushlight.ao.quantization import *
from rushlight.ao.quantization import default_eval_fn, fuse_modules, fuse_modules_qat, quantize
