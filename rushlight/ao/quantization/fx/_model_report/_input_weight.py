"""Layers whose input and weight differ in range from channel to channel, so that equalisation helps."""

import rushlight

from ._detector import PRE_OBSERVER_NAME, DetectorBase, DetectorQConfigInfo
from ._per_channel import _LAYERS
from .model_report_observer import _by_channel


class InputWeightEqualizationDetector(DetectorBase):
    """Compares the ranges of an input's and a weight's channels.

    A channel's number is ``sqrt(share of the weight's range / share of the input's range)``. Between the
    threshold and its inverse, equalising the channel is worth while.
    """

    SUPPORTED_MODULES = set(_LAYERS)
    DEFAULT_PRE_OBSERVER_NAME = PRE_OBSERVER_NAME

    WEIGHT_PREFIX = "weight_"
    ACTIVATION_PREFIX = "input_activation_"

    PER_CHANNEL_MAX_KEY = "per_channel_max"
    PER_CHANNEL_MIN_KEY = "per_channel_min"
    GLOBAL_MAX_KEY = "global_max"
    GLOBAL_MIN_KEY = "global_min"

    RECOMMENDED_KEY = "input_weight_equalization_recommended"
    COMP_METRIC_KEY = "input_weight_channel_comparison_metrics"
    THRESHOLD_KEY = "input_weight_threshold"
    CHANNEL_KEY = "input_weight_channel_axis"

    WEIGHT_STR = "weight"
    INPUT_STR = "input"

    # The share of channels from which on a layer is advised to be equalised.
    DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO = 0.4

    def __init__(self, ratio_threshold, ch_axis=1):
        super().__init__()
        if not 0 < ratio_threshold < 1:
            raise ValueError("Make sure threshold is > 0 and < 1")
        self.ratio_threshold = ratio_threshold
        self.ch_axis = ch_axis

    def get_detector_name(self):
        return "input_weight_equalization_detector"

    def _is_supported(self, module):
        return type(module) in self.SUPPORTED_MODULES  # fused layers are left to their parts

    def determine_observer_insert_points(self, prepared_fx_model):
        return self._points_before(prepared_fx_model, self._is_supported, ch_axis=self.ch_axis)

    def get_qconfig_info(self, model):
        recommended = {}
        for fqn, found in self._look(model).items():
            recommended[fqn] = DetectorQConfigInfo(fqn)
            recommended[fqn].is_equalization_recommended = any(found[self.RECOMMENDED_KEY])
        return recommended

    def _ranges(self, prefix, low, high):
        return {
            prefix + self.PER_CHANNEL_MAX_KEY: high,
            prefix + self.PER_CHANNEL_MIN_KEY: low,
            prefix + self.GLOBAL_MAX_KEY: high.max(),
            prefix + self.GLOBAL_MIN_KEY: low.min(),
        }

    def _shares(self, fqn, what, prefix, ranges):
        """Each channel's part of the whole range."""
        whole = ranges[prefix + self.GLOBAL_MAX_KEY] - ranges[prefix + self.GLOBAL_MIN_KEY]
        if whole == 0:
            raise ValueError(
                f"The range of the {what} data for module {fqn} is 0, which means you have a constant value "
                "channel. We recommend removing this channel as it doesn't provide any useful information."
            )
        return (ranges[prefix + self.PER_CHANNEL_MAX_KEY] - ranges[prefix + self.PER_CHANNEL_MIN_KEY]) / whole

    def _look(self, model):
        found = {}
        for fqn, module in self._watched(model):
            if not self._is_supported(module):
                continue
            observer = getattr(module, PRE_OBSERVER_NAME)
            of_input = self._ranges(self.ACTIVATION_PREFIX, observer.min_val, observer.max_val)
            low, high = rushlight.aminmax(_by_channel(module.weight.detach(), self.ch_axis), dim=1)
            of_weight = self._ranges(self.WEIGHT_PREFIX, low, high)
            weight_shares = self._shares(fqn, self.WEIGHT_STR, self.WEIGHT_PREFIX, of_weight)
            input_shares = self._shares(fqn, self.INPUT_STR, self.ACTIVATION_PREFIX, of_input)
            groups, rest = divmod(len(input_shares), len(weight_shares))
            if rest:
                raise AssertionError("input channels should be divisible by weight channels.")
            metric = weight_shares.repeat(groups).sqrt() / input_shares.sqrt()
            low_end, high_end = self.ratio_threshold, 1 / self.ratio_threshold
            found[fqn] = {
                self.RECOMMENDED_KEY: [low_end <= value <= high_end for value in metric.tolist()],
                self.COMP_METRIC_KEY: metric,
                self.THRESHOLD_KEY: self.ratio_threshold,
                self.CHANNEL_KEY: self.ch_axis,
                **of_input,
                **of_weight,
            }
        return found

    def generate_detector_report(self, model):
        found = self._look(model)
        lines = ["Input-Weight Equalization suggestions: "]
        for fqn, info in found.items():
            recommended = info[self.RECOMMENDED_KEY]
            helped, channels = sum(recommended), len(recommended)
            lines.append(f"For Module {fqn} looked at with axis {self.ch_axis}: ")
            if helped / channels >= self.DEFAULT_RECOMMEND_INPUT_WEIGHT_CHANNEL_RATIO:
                lines.append(
                    "\tWe suggest to use input weight equalization because "
                    f"{helped}/{channels} channels would benefit."
                )
            else:
                lines.append(
                    "\tWe suggest to not use input weight equalization because only "
                    f"{helped}/{channels} channels would benefit."
                )
        if not found:
            lines.append("No applicable layers for suggestions. Only linear and conv valid.")
        return "\n".join([*lines, ""]), found
