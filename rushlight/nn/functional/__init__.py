"""The functions behind the layers.

Most are operators of the core and come from `_C._nn`. What is a composition of public operators is written
here, one file per family; what stands here wins where both exist.
"""

from rushlight import _C
from rushlight._operators.overridable import make_overridable
from rushlight.nn import _reduction as _Reduction  # packages take it from here  # noqa: F401
from rushlight.nn._broadcasting import BroadcastingList1 as BroadcastingList1  # noqa: F401
from rushlight.nn._broadcasting import BroadcastingList2 as BroadcastingList2
from rushlight.nn._broadcasting import BroadcastingList3 as BroadcastingList3

from ._activation import gumbel_softmax as gumbel_softmax
from ._activation import rrelu_ as rrelu_
from ._attention import _canonical_mask, _none_or_dtype
from ._attention import multi_head_attention_forward as multi_head_attention_forward
from ._conv import bilinear as bilinear
from ._conv import conv_tbc as conv_tbc
from ._distance import cosine_similarity as cosine_similarity
from ._distance import normalize as normalize
from ._distance import pairwise_distance as pairwise_distance
from ._distance import pdist as pdist
from ._dropout import alpha_dropout as alpha_dropout
from ._dropout import dropout as dropout
from ._dropout import dropout1d as dropout1d
from ._dropout import dropout2d as dropout2d
from ._dropout import dropout3d as dropout3d
from ._dropout import feature_alpha_dropout as feature_alpha_dropout
from ._grouped import ScalingType as ScalingType
from ._grouped import SwizzleType as SwizzleType
from ._grouped import grouped_mm as grouped_mm
from ._grouped import scaled_grouped_mm as scaled_grouped_mm
from ._grouped import scaled_mm as scaled_mm
from ._interpolate import interpolate as interpolate
from ._interpolate import upsample as upsample
from ._interpolate import upsample_bilinear as upsample_bilinear
from ._interpolate import upsample_nearest as upsample_nearest
from ._loss import cosine_embedding_loss as cosine_embedding_loss
from ._loss import ctc_loss as ctc_loss
from ._loss import gaussian_nll_loss as gaussian_nll_loss
from ._loss import hinge_embedding_loss as hinge_embedding_loss
from ._loss import linear_cross_entropy as linear_cross_entropy
from ._loss import margin_ranking_loss as margin_ranking_loss
from ._loss import multi_margin_loss as multi_margin_loss
from ._loss import multilabel_margin_loss as multilabel_margin_loss
from ._loss import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from ._loss import poisson_nll_loss as poisson_nll_loss
from ._loss import soft_margin_loss as soft_margin_loss
from ._loss import triplet_margin_loss as triplet_margin_loss
from ._loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from ._norm import instance_norm as instance_norm
from ._norm import local_response_norm as local_response_norm
from ._pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from ._pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from ._pooling import adaptive_max_pool1d as adaptive_max_pool1d
from ._pooling import adaptive_max_pool2d as adaptive_max_pool2d
from ._pooling import adaptive_max_pool3d as adaptive_max_pool3d
from ._pooling import fractional_max_pool2d as fractional_max_pool2d
from ._pooling import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from ._pooling import fractional_max_pool3d as fractional_max_pool3d
from ._pooling import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
from ._pooling import lp_pool1d as lp_pool1d
from ._pooling import lp_pool2d as lp_pool2d
from ._pooling import lp_pool3d as lp_pool3d
from ._pooling import max_pool1d as max_pool1d
from ._pooling import max_pool2d as max_pool2d
from ._pooling import max_pool3d as max_pool3d
from ._pooling import max_unpool1d as max_unpool1d
from ._pooling import max_unpool2d as max_unpool2d
from ._pooling import max_unpool3d as max_unpool3d
from ._sparse import embedding_bag as embedding_bag
from ._vision import affine_grid as affine_grid
from ._vision import channel_shuffle as channel_shuffle
from ._vision import grid_sample as grid_sample
from ._vision import native_channel_shuffle as native_channel_shuffle
from ._vision import pixel_shuffle as pixel_shuffle
from ._vision import pixel_unshuffle as pixel_unshuffle

__package_capture__ = "through"  # Note [Capture marks]

make_overridable(globals(), skip=["make_overridable"])
handle_torch_function = _C._handle_torch_function
has_torch_function = _C._has_torch_function
has_torch_function_unary = _C._has_torch_function_unary
has_torch_function_variadic = _C._has_torch_function_variadic

_COMPOSED = set(globals())
globals().update(
    {
        name: getattr(_C._nn, name)
        for name in dir(_C._nn)
        if not name.startswith("_") and name not in _COMPOSED
    }
)
TYPE_CHECKING = False
if TYPE_CHECKING:  # the same names, for type checkers
    from rushlight._C._nn import *  # type: ignore[assignment]  # the core's version wins
