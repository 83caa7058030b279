"""Layers whose inputs have single numbers far beyond the others, which widen the range of integers."""

import rushlight

from ...observer import _is_activation_post_process
from ._detector import PRE_OBSERVER_NAME, DetectorBase


class OutlierDetector(DetectorBase):
    """Compares a channel's greatest number with a percentile of its numbers.

    A channel has outliers where their ratio is on average above ``ratio_threshold``. The ratio is trusted
    where at least the share ``fraction_batches_used_threshold`` of the batches had numbers other than zero.
    """

    DEFAULT_PRE_OBSERVER_NAME = PRE_OBSERVER_NAME
    INPUT_ACTIVATION_PREFIX = "input_activation_"

    OUTLIER_KEY = "outliers_detected"
    NUM_BATCHES_KEY = "outlier_detection_batches_used"
    IS_SUFFICIENT_BATCHES_KEY = "outlier_detection_is_sufficient_batches"
    COMP_METRIC_KEY = "outlier_detection_percentile_ratios"
    RATIO_THRES_KEY = "outlier_detection_ratio_threshold"
    REF_PERCENTILE_KEY = "outlier_detection_reference_percentile"
    CHANNEL_AXIS_KEY = "outlier_detection_channel_axis"
    MAX_VALS_KEY = INPUT_ACTIVATION_PREFIX + "per_channel_max"
    CONSTANT_COUNTS_KEY = "constant_batch_counts"

    def __init__(
        self, ratio_threshold=3.5, reference_percentile=0.975, fraction_batches_used_threshold=0.95, ch_axis=1
    ):
        super().__init__()
        if not 0 <= reference_percentile <= 1:
            raise AssertionError("reference_percentile must be between 0 and 1")
        if not 0 <= fraction_batches_used_threshold <= 1:
            raise AssertionError("fraction_batches_used_threshold must be between 0 and 1")
        self.ratio_threshold = ratio_threshold
        self.reference_percentile = reference_percentile
        self.fraction_batches_used_threshold = fraction_batches_used_threshold
        self.ch_axis = ch_axis

    def get_detector_name(self):
        return "outlier_detector"

    def _supports_insertion(self, module):
        return not any(True for _ in module.children()) and not _is_activation_post_process(module)

    def determine_observer_insert_points(self, prepared_fx_model):
        return self._points_before(
            prepared_fx_model,
            self._supports_insertion,
            ch_axis=self.ch_axis,
            comp_percentile=self.reference_percentile,
        )

    def get_qconfig_info(self, model):
        return {}  # no configuration mends outliers

    def _look(self, model):
        found = {}
        for fqn, module in self._watched(model):
            observer = getattr(module, PRE_OBSERVER_NAME)
            # A percentile below zero, or beyond the greatest number, is as far from it.
            ratios = observer.average_percentile_ratio.abs()
            ratios = rushlight.where(ratios < 1, 1 / ratios, ratios)
            batches = observer.percentile_batches_tracked
            share = self.fraction_batches_used_threshold
            found[fqn] = {
                self.CHANNEL_AXIS_KEY: self.ch_axis,
                self.REF_PERCENTILE_KEY: self.reference_percentile,
                self.RATIO_THRES_KEY: self.ratio_threshold,
                self.COMP_METRIC_KEY: ratios,
                self.NUM_BATCHES_KEY: batches,
                self.OUTLIER_KEY: [ratio > self.ratio_threshold for ratio in ratios.tolist()],
                self.IS_SUFFICIENT_BATCHES_KEY: [
                    count / observer.num_batches_tracked >= share for count in batches.tolist()
                ],
                self.CONSTANT_COUNTS_KEY: observer.constant_channels,
                self.MAX_VALS_KEY: observer.max_val,
            }
        return found

    def _lines(self, info):
        """What is to be said of a layer's channels."""
        lines = []
        for channel, is_outlier in enumerate(info[self.OUTLIER_KEY]):
            if is_outlier:
                lines.append(
                    f"\tFor channel {channel}, we found outliers in the preceding activation data "
                    f"with a max value across all batches of {info[self.MAX_VALS_KEY][channel]}."
                )
            constant = int(info[self.CONSTANT_COUNTS_KEY][channel])
            if constant:
                lines.append(f"\tFor channel {channel}, we found {constant} constant value batches.")
        return lines

    def generate_detector_report(self, model):
        found = self._look(model)
        lines = ["Outlier detection report: "]
        for fqn, info in found.items():
            said = self._lines(info)
            if said:
                lines += [f"For Module {fqn} looked at with axis {self.ch_axis}: ", *said]
        lines.append(
            "Note: outlier detection is only reliable for stationary distributions; "
            "the static vs. dynamic detector tells whether they are."
            if len(lines) > 1
            else "There were no outliers found in the activations."
        )
        return "\n".join([*lines, ""]), found
