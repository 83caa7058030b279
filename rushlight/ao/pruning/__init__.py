"""Pruning: weights under masks that a sparsifier chooses, at levels that a scheduler sets.

`import rushlight` does not load this package.
"""

from ._mappings import get_dynamic_sparse_quantized_mapping as get_dynamic_sparse_quantized_mapping
from ._mappings import get_static_sparse_quantized_mapping as get_static_sparse_quantized_mapping
from .scheduler.base_scheduler import BaseScheduler as BaseScheduler
from .scheduler.cubic_scheduler import CubicSL as CubicSL
from .scheduler.lambda_scheduler import LambdaSL as LambdaSL
from .sparsifier.base_sparsifier import BaseSparsifier as BaseSparsifier
from .sparsifier.nearly_diagonal_sparsifier import NearlyDiagonalSparsifier as NearlyDiagonalSparsifier
from .sparsifier.utils import FakeSparsity as FakeSparsity
from .sparsifier.utils import fqn_to_module as fqn_to_module
from .sparsifier.utils import get_arg_info_from_tensor_fqn as get_arg_info_from_tensor_fqn
from .sparsifier.utils import module_to_fqn as module_to_fqn
from .sparsifier.weight_norm_sparsifier import WeightNormSparsifier as WeightNormSparsifier
