"""Layers whose results keep their range from batch to batch, for static scales, and those that do not."""

from rushlight import nn

from ._detector import POST_OBSERVER_NAME, PRE_OBSERVER_NAME, DetectorBase, DetectorQConfigInfo, _point


class DynamicStaticDetector(DetectorBase):
    """Compares the average range of a batch with that of all: ``tolerance`` and less is not stationary."""

    DEFAULT_PRE_OBSERVER_NAME = PRE_OBSERVER_NAME
    DEFAULT_POST_OBSERVER_NAME = POST_OBSERVER_NAME

    STATIONARY_STR = "stationary"
    NON_STATIONARY_STR = "non-stationary"

    INPUT_ACTIVATION_PREFIX = "input_activation_"
    OUTPUT_ACTIVATION_PREFIX = "output_activation_"

    TOLERANCE_KEY = "dynamic_static_tolerance"
    DEFAULT_DYNAMIC_REC_KEY = "dynamic_recommended"
    PRE_OBS_COMP_STAT_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    POST_OBS_COMP_STAT_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_comp_stat"
    PRE_OBS_DATA_DIST_KEY = INPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    POST_OBS_DATA_DIST_KEY = OUTPUT_ACTIVATION_PREFIX + "dynamic_static_data_classification"
    IS_CURRENTLY_SUPPORTED_KEY = "is_dynamic_supported"

    # Layers that have a dynamic form, and others worth a look.
    DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED = {nn.Linear}
    DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED = {nn.Conv1d, nn.Conv2d, nn.Conv3d}

    def __init__(self, tolerance=0.5):
        super().__init__()
        self.tolerance = tolerance
        self.useful_observer_fqns = set()

    def get_detector_name(self):
        return "dynamic_vs_static_detector"

    def _has_dynamic_form(self, module):
        return isinstance(module, tuple(self.DEFAULT_DYNAMIC_STATIC_CHECK_SUPPORTED))

    def _is_supported(self, module):
        return self._has_dynamic_form(module) or isinstance(
            module, tuple(self.DEFAULT_DYNAMIC_STATIC_FUTURE_SUPPORTED)
        )

    def determine_observer_insert_points(self, prepared_fx_model):
        points = self._points_before(prepared_fx_model, self._is_supported)
        for fqn, module in prepared_fx_model.named_modules():
            if self._is_supported(module):
                node = self._get_targeting_node(prepared_fx_model, fqn)
                points[f"{fqn}.{POST_OBSERVER_NAME}"] = _point(node, (node,), True)
        return points

    def get_qconfig_info(self, model):
        recommended = {}
        for fqn, found in self._look(model).items():
            recommended[fqn] = DetectorQConfigInfo(fqn)
            recommended[fqn].is_activation_dynamic = found[self.DEFAULT_DYNAMIC_REC_KEY]
        return recommended

    def _distribution(self, ratio):
        return self.STATIONARY_STR if ratio > self.tolerance else self.NON_STATIONARY_STR

    def _look(self, model):
        found = {}
        for fqn, module in self._watched(model):
            if not self._is_supported(module) or not hasattr(module, POST_OBSERVER_NAME):
                continue
            before = getattr(module, PRE_OBSERVER_NAME).get_batch_to_epoch_ratio()
            after = getattr(module, POST_OBSERVER_NAME).get_batch_to_epoch_ratio()
            found[fqn] = {
                self.TOLERANCE_KEY: self.tolerance,
                self.DEFAULT_DYNAMIC_REC_KEY: after <= self.tolerance,
                self.PRE_OBS_COMP_STAT_KEY: before,
                self.PRE_OBS_DATA_DIST_KEY: self._distribution(before),
                self.POST_OBS_COMP_STAT_KEY: after,
                self.POST_OBS_DATA_DIST_KEY: self._distribution(after),
                self.IS_CURRENTLY_SUPPORTED_KEY: self._has_dynamic_form(module),
            }
        return found

    def _advice(self, fqn, info):
        before, after = info[self.PRE_OBS_DATA_DIST_KEY], info[self.POST_OBS_DATA_DIST_KEY]
        if info[self.DEFAULT_DYNAMIC_REC_KEY]:
            way, gain = "dynamic", "dynamic quantization gives more accurate results"
            if not info[self.IS_CURRENTLY_SUPPORTED_KEY]:
                gain += ", but this layer has no dynamic form yet"
        else:
            way, gain = "static", "static quantization is faster"
        text = (
            f"For module {fqn} it is suggested to use {way} quantization because the distribution of data "
            f"before it is {before} and the distribution after is {after}: {gain}."
        )
        if before == self.NON_STATIONARY_STR and after == self.STATIONARY_STR:
            text += " If it is static, quantize its input dynamically, per tensor: that is non-stationary."
        return text

    def generate_detector_report(self, model):
        found = self._look(model)
        advice = [self._advice(fqn, info) for fqn, info in found.items()]
        advice = advice or ["No applicable layers for suggestions. Only linear and conv are valid."]
        return "\n".join(["Dynamic vs. Static Quantization suggestions: ", *advice, ""]), found
