"""Tensors of which some elements do not count, and reductions and normalisations that leave them out."""

from rushlight.masked import _ops
from rushlight.masked._ops import *
from rushlight.masked._ops import _canonical_dim, _combine_input_and_mask, _input_mask, _output_mask, _where
from rushlight.masked.maskedtensor import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
__all__ += _ops.__all__

__package_capture__ = "through"  # Note [Capture marks]
