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
from ._distance import normalize as normalize
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
from ._loss import ctc_loss as ctc_loss
from ._loss import gaussian_nll_loss as gaussian_nll_loss
from ._loss import linear_cross_entropy as linear_cross_entropy
from ._loss import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from ._pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from ._pooling import adaptive_avg_pool3d as adaptive_avg_pool3d
from ._pooling import adaptive_max_pool1d as adaptive_max_pool1d
from ._pooling import adaptive_max_pool2d as adaptive_max_pool2d
from ._pooling import adaptive_max_pool3d as adaptive_max_pool3d
from ._pooling import fractional_max_pool2d as fractional_max_pool2d
from ._pooling import fractional_max_pool2d_with_indices as fractional_max_pool2d_with_indices
from ._pooling import fractional_max_pool3d as fractional_max_pool3d
from ._pooling import fractional_max_pool3d_with_indices as fractional_max_pool3d_with_indices
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
_native = _C._VariableFunctions  # what PyTorch has from the top namespace, as it is
bilinear, conv_tbc, pdist = _native.bilinear, _native.conv_tbc, _native.pdist
cosine_similarity, pairwise_distance = _native.cosine_similarity, _native.pairwise_distance
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
