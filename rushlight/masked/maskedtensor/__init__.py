"""MaskedTensor: data beside a mask of the elements that are there (True) or not (False).

| module | what |
|---|---|
| `core` | the class, what it refuses, how it is shown |
| `creation` | tensors of copies, and over tensors whose gradients they give on |
| `rules` | what an operator does with data and masks |
| `functions` | steps between plain and masked tensors, with derivatives |
| `unary`, `binary`, `reductions` | names of the functions that take masked tensors |
"""

from rushlight.masked.maskedtensor.core import MaskedTensor, is_masked_tensor
from rushlight.masked.maskedtensor.creation import as_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
