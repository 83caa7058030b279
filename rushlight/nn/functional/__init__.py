"""The functions behind the layers.

Most are operators of the core and come from `_C._nn`. What is a composition of public operators is written
here, one file per family; the core's version wins where both exist.
"""

from rushlight import _C
from rushlight._overridable import make_overridable
from rushlight.nn import _reduction as _Reduction  # packages take it from here  # noqa: F401
from rushlight.nn._broadcasting import BroadcastingList1, BroadcastingList2, BroadcastingList3  # noqa: F401

from ._activation import gumbel_softmax, rrelu, rrelu_, softmin, softsign, tanhshrink
from ._attention import _canonical_mask, _none_or_dtype, multi_head_attention_forward
from ._conv import bilinear, conv_tbc
from ._distance import cosine_similarity, normalize, pairwise_distance, pdist
from ._dropout import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout
from ._grouped import ScalingType, SwizzleType, grouped_mm, scaled_grouped_mm, scaled_mm
from ._loss import (
    cosine_embedding_loss,
    ctc_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    linear_cross_entropy,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._norm import instance_norm, local_response_norm, rms_norm
from ._pooling import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ._sparse import embedding_bag
from ._vision import (
    affine_grid,
    channel_shuffle,
    grid_sample,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)

from ._interpolate import interpolate, upsample, upsample_bilinear, upsample_nearest  # isort: skip

make_overridable(globals(), skip=["make_overridable"])
handle_torch_function = _C._handle_torch_function
has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic

globals().update({name: getattr(_C._nn, name) for name in dir(_C._nn) if not name.startswith("_")})
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._nn import *
