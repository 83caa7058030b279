"""Matrices with two numbers of four: a format of CUDA devices, whose kernels this build does not have."""

from collections import namedtuple

import rushlight

__all__ = [
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]

_SEMI_STRUCTURED_SPARSE_CONFIG = namedtuple(
    "_SEMI_STRUCTURED_SPARSE_CONFIG", "sparse_min_rows sparse_min_cols dense_min_rows dense_min_cols"
)


class SparseSemiStructuredTensor(rushlight.Tensor):
    """Base of the two formats. Making one is refused: where PyTorch refuses it, in its words."""

    _DEFAULT_ALG_ID = 0
    _FORCE_CUTLASS = False
    _FUSE_TRANSPOSE = False
    _PROTOTYPE_WARNING_SHOWN = False
    _DTYPE_SHAPE_CONSTRAINTS: dict = {}

    @classmethod
    def _validate_device_dim_dtype_shape(cls, original_tensor):
        if not original_tensor.is_cuda:
            raise RuntimeError(
                f"Error original_tensor.device= {original_tensor.device} is not supported! "
                "Only CUDA tensors are currently supported."
            )
        if original_tensor.dim() != 2:
            raise RuntimeError(
                f"Error original_tensor.dim = {original_tensor.dim()} is not supported! "
                "Only 2d tensors are currently supported."
            )
        if original_tensor.dtype not in cls._DTYPE_SHAPE_CONSTRAINTS:
            raise RuntimeError(
                f"Error original_tensor.dtype {original_tensor.dtype} is not a supported dtype for {cls!r}!"
            )

    @classmethod
    def from_dense(cls, original_tensor):
        """Refused: the tensor's device, shape or dtype does not fit, or this build has no kernels for
        the format."""
        cls._validate_device_dim_dtype_shape(original_tensor)
        raise NotImplementedError(
            f"{cls.__name__}: this build has no kernels for two numbers of four; keep it dense"
        )


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The format of CUTLASS."""

    _DTYPE_SHAPE_CONSTRAINTS = {
        rushlight.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 128, 16, 16),
        rushlight.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        rushlight.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 64, 8, 8),
        rushlight.float32: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 4, 4),
    }


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The format of cuSPARSELt."""

    _DTYPE_SHAPE_CONSTRAINTS = {
        rushlight.float8_e4m3fn: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        rushlight.int8: _SEMI_STRUCTURED_SPARSE_CONFIG(32, 32, 16, 16),
        rushlight.float16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
        rushlight.bfloat16: _SEMI_STRUCTURED_SPARSE_CONFIG(16, 16, 8, 8),
    }


def to_sparse_semi_structured(original_tensor, transposed=False):
    """A dense matrix in the format of the device at hand."""
    return SparseSemiStructuredTensorCUSPARSELT.from_dense(original_tensor)
