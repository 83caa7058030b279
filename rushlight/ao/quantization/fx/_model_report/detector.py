"""The detectors of reports, under PyTorch's path."""

from ._detector import (
    DETECTOR_IS_POST_OBS_KEY,
    DETECTOR_OBS_ARGS_KEY,
    DETECTOR_OBS_TO_INSERT_KEY,
    DETECTOR_TARGET_NODE_KEY,
    DetectorBase,
    DetectorQConfigInfo,
)
from ._dynamic_static import DynamicStaticDetector
from ._input_weight import InputWeightEqualizationDetector
from ._outliers import OutlierDetector
from ._per_channel import PerChannelDetector

__all__ = [
    "DETECTOR_IS_POST_OBS_KEY",
    "DETECTOR_OBS_ARGS_KEY",
    "DETECTOR_OBS_TO_INSERT_KEY",
    "DETECTOR_TARGET_NODE_KEY",
    "DetectorBase",
    "DetectorQConfigInfo",
    "DynamicStaticDetector",
    "InputWeightEqualizationDetector",
    "OutlierDetector",
    "PerChannelDetector",
]
