"""What detectors share: where their observers go, and what they recommend for a layer."""

from abc import ABC, abstractmethod

from ...observer import (
    default_dynamic_quant_observer,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)
from ...qconfig import QConfig, _assert_valid_qconfig, default_qconfig
from .._equalize import default_equalization_qconfig
from .model_report_observer import ModelReportObserver

# What is told of an observer to insert.
DETECTOR_TARGET_NODE_KEY = "target_node"
DETECTOR_OBS_TO_INSERT_KEY = "observer_to_insert"
DETECTOR_IS_POST_OBS_KEY = "is_post_observer"
DETECTOR_OBS_ARGS_KEY = "observer_args"

PRE_OBSERVER_NAME = "model_report_pre_observer"
POST_OBSERVER_NAME = "model_report_post_observer"


class DetectorQConfigInfo:
    """What a detector recommends for one layer."""

    def __init__(self, module_fqn):
        self.module_fqn = module_fqn
        self.is_activation_dynamic = False
        self.is_weight_per_channel = False
        self.is_equalization_recommended = False

    def generate_quantization_qconfig(self, module):
        """The configuration that is recommended, or the nearest to it that the layer allows."""
        dynamic, per_channel = self.is_activation_dynamic, self.is_weight_per_channel
        for is_dynamic, by_channel in ((dynamic, per_channel), (dynamic, False), (False, per_channel)):
            qconfig = QConfig(
                default_dynamic_quant_observer if is_dynamic else default_observer,
                default_per_channel_weight_observer if by_channel else default_weight_observer,
            )
            try:
                _assert_valid_qconfig(qconfig, module)
            except AssertionError:
                continue
            return qconfig
        return default_qconfig

    def generate_equalization_qconfig(self):
        return default_equalization_qconfig


class DetectorBase(ABC):
    """Base of detectors. A detector names the observers that it needs; after calibration it reads them."""

    def __init__(self):
        self.detector_config_info = None

    @abstractmethod
    def determine_observer_insert_points(self, model):
        """Observers by their paths: ``{path: {DETECTOR_…_KEY: …}}``."""

    @abstractmethod
    def get_detector_name(self):
        """The name of this detector's report."""

    @abstractmethod
    def get_qconfig_info(self, model):
        """Recommendations by paths of layers: ``{path: DetectorQConfigInfo}``."""

    @abstractmethod
    def generate_detector_report(self, model):
        """A text, and what it was concluded from: ``{path: {feature: value}}``."""

    def _get_targeting_node(self, prepared_fx_model, target_fqn):
        """The node that calls a layer, or the nearest layer around it that a node calls."""
        by_target = {
            node.target: node for node in prepared_fx_model.graph.nodes if isinstance(node.target, str)
        }
        path = target_fqn
        while path not in by_target:
            path, inside, _ = path.rpartition(".")
            if not inside:
                raise ValueError("passed in target_fqn not found in graph's targets.")
        return by_target[path]

    def _watched(self, model):
        """Paths and layers that this detector's observers watch."""
        return [(fqn, module) for fqn, module in model.named_modules() if hasattr(module, PRE_OBSERVER_NAME)]

    def _points_before(self, model, wanted, **settings):
        """An observer before each layer for which ``wanted(layer)`` holds."""
        points = {}
        for fqn, module in model.named_modules():
            if wanted(module):
                node = self._get_targeting_node(model, fqn)
                points[f"{fqn}.{PRE_OBSERVER_NAME}"] = _point(node, node.args, False, **settings)
        return points


def _point(node, args, is_post, **settings):
    """An observer that gets ``args``, before or behind a node."""
    return {
        DETECTOR_TARGET_NODE_KEY: node,
        DETECTOR_OBS_TO_INSERT_KEY: ModelReportObserver(**settings),
        DETECTOR_IS_POST_OBS_KEY: is_post,
        DETECTOR_OBS_ARGS_KEY: args,
    }
