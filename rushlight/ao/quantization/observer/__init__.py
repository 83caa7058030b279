"""Modules that watch numbers pass, and say which scale and zero point would hold them as integers."""

from rushlight._command.names import show_from

from .._late import _PartialWrapper, _with_args, _with_callable_args
from ._affine import (
    AffineQuantizedObserverBase,
    Granularity,
    MappingType,
    PerAxis,
    PerBlock,
    PerGroup,
    PerRow,
    PerTensor,
    PerToken,
    TorchAODType,
    ZeroPointDomain,
    get_block_size,
)
from ._base import (
    ObserverBase,
    UniformQuantizationObserverBase,
    _is_activation_post_process,
    _is_observer_script_module,
    _is_per_channel_script_obs_instance,
    _ObserverBase,
    get_observer_state_dict,
    load_observer_state_dict,
)
from ._defaults import *  # noqa: F403
from ._defaults import __all__ as _default_names
from ._histogram import HistogramObserver
from ._minmax import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    PerChannelMinMaxObserver,
)
from ._simple import (
    FixedQParamsObserver,
    NoopObserver,
    PlaceholderObserver,
    RecordingObserver,
    ReuseInputObserver,
)

__all__ = [
    "AffineQuantizedObserverBase",
    "FixedQParamsObserver",
    "Granularity",
    "HistogramObserver",
    "MappingType",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerAxis",
    "PerBlock",
    "PerChannelMinMaxObserver",
    "PerGroup",
    "PerRow",
    "PerTensor",
    "PerToken",
    "PlaceholderObserver",
    "RecordingObserver",
    "ReuseInputObserver",
    "TorchAODType",
    "UniformQuantizationObserverBase",
    "ZeroPointDomain",
    "get_block_size",
    "get_observer_state_dict",
    "load_observer_state_dict",
    *_default_names,
]

# Pickled modules and printed configurations name this module, not the files below it.
_below = [v for v in list(globals().values()) if getattr(v, "__module__", "").startswith(__name__ + ".")]
show_from("ao.quantization.observer", *_below)
