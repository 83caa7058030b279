"""The report on a model: inserts the observers of detectors, and puts together what they found."""

from collections import OrderedDict

import rushlight

from ...qconfig_mapping import QConfigMapping
from .detector import (
    DETECTOR_IS_POST_OBS_KEY,
    DETECTOR_OBS_ARGS_KEY,
    DETECTOR_OBS_TO_INSERT_KEY,
    DETECTOR_TARGET_NODE_KEY,
)
from .model_report_visualizer import ModelReportVisualizer

__all__ = ["ModelReport"]


class ModelReport:
    """A report on a model of `prepare_fx`.

    1. `prepare_detailed_calibration` inserts the detectors' observers; then run samples through the model.
    2. `generate_model_report` tells what they saw, `generate_qconfig_mapping` and
       `generate_equalization_mapping` what to prepare the model with instead; `generate_visualizer` gives
       tables and pictures.
    """

    def __init__(self, model, desired_report_detectors):
        if not desired_report_detectors:
            raise ValueError("Should include at least 1 desired report")
        self._model = model
        self._desired_report_detectors = desired_report_detectors
        self._detector_name_to_observer_fqns = {
            detector.get_detector_name(): set() for detector in desired_report_detectors
        }
        self._prepared_flag = False
        self._removed_observers = False
        self._generated_reports = {}

    def get_desired_reports_names(self):
        return set(self._detector_name_to_observer_fqns)

    def get_observers_of_interest(self):
        """Paths of the observers that each detector reads."""
        return self._detector_name_to_observer_fqns.copy()

    def _detectors(self):
        # A set has no order of its own. Where two ask for one observer the later one's settings hold: those
        # of outliers, whose percentile the others do not read.
        return sorted(self._desired_report_detectors, key=lambda detector: detector.get_detector_name())

    def prepare_detailed_calibration(self):
        """The model with the detectors' observers."""
        if self._prepared_flag:
            raise ValueError(
                "Already ran preparing detailed calibration. "
                "Run the report generation next after calibration."
            )
        points = {}
        for detector in self._detectors():
            wanted = detector.determine_observer_insert_points(self._model)
            points.update(wanted)
            self._detector_name_to_observer_fqns[detector.get_detector_name()] = set(wanted)
        for fqn, point in points.items():
            self._insert(fqn, point)
        self._model.recompile()
        self._prepared_flag = True
        return self._model

    def _insert(self, fqn, point):
        node = point[DETECTOR_TARGET_NODE_KEY]
        self._model.add_submodule(fqn, point[DETECTOR_OBS_TO_INSERT_KEY])
        with self._model.graph.inserting_before(node.next if point[DETECTOR_IS_POST_OBS_KEY] else node):
            self._model.graph.create_node("call_module", fqn, args=point[DETECTOR_OBS_ARGS_KEY])

    def _check_observers_are_there(self):
        if not self._prepared_flag:
            raise Exception("Cannot generate report without preparing model for calibration")
        if self._removed_observers:
            raise Exception("Cannot generate report on model you already removed observers from")

    def generate_model_report(self, remove_inserted_observers):
        """Each detector's text and findings, ``{detector: (text, {path: {feature: value}})}``."""
        self._check_observers_are_there()
        reports = {
            detector.get_detector_name(): detector.generate_detector_report(self._model)
            for detector in self._detectors()
        }
        if remove_inserted_observers:
            self._remove_observers()
        self._generated_reports = {name: findings for name, (_, findings) in reports.items()}
        return reports

    def _remove_observers(self):
        paths = set().union(*self._detector_name_to_observer_fqns.values())
        for node in list(self._model.graph.nodes):
            if node.target in paths:
                self._model.graph.erase_node(node)
        for path in paths:
            self._model.delete_submodule(path)
        self._model.recompile()
        self._removed_observers = True

    def generate_visualizer(self):
        """Tables and pictures of the last report."""
        if not self._generated_reports:
            raise Exception("Unable to generate visualizers without first generating reports")
        return ModelReportVisualizer(self._features_by_module())

    def _features_by_module(self):
        """All detectors' features of each layer, in the order of the model's layers."""
        merged = {}
        for findings in self._generated_reports.values():
            for fqn, features in findings.items():
                present = merged.setdefault(fqn, {})
                if not all(_same(features[key], present[key]) for key in features.keys() & present.keys()):
                    raise ValueError(
                        "You have the same key with different values across detectors. "
                        "Someone incorrectly implemented a detector with conflicting keys to existing "
                        "detectors."
                    )
                present.update(features)
        return OrderedDict((fqn, merged[fqn]) for fqn, _ in self._model.named_modules() if fqn in merged)

    def generate_qconfig_mapping(self):
        """Configurations as the detectors recommend them, for `prepare_fx`."""
        return self._mapping(lambda info, module: info.generate_quantization_qconfig(module))

    def generate_equalization_mapping(self):
        """Configurations of equalisation, for `prepare_fx`."""
        return self._mapping(lambda info, module: info.generate_equalization_qconfig())

    def _mapping(self, configure):
        self._check_observers_are_there()
        combined = {}
        for detector in self._detectors():
            for fqn, info in detector.get_qconfig_info(self._model).items():
                known = combined.setdefault(fqn, info)
                known.is_activation_dynamic = known.is_activation_dynamic or info.is_activation_dynamic
                known.is_weight_per_channel = known.is_weight_per_channel or info.is_weight_per_channel
                known.is_equalization_recommended = (
                    known.is_equalization_recommended or info.is_equalization_recommended
                )
        mapping = QConfigMapping()
        for fqn, module in self._model.named_modules():
            if fqn in combined:
                mapping.set_module_name(fqn, configure(combined[fqn], module))
        return mapping


def _same(one, other):
    if isinstance(one, rushlight.Tensor) or isinstance(other, rushlight.Tensor):
        return type(one) is type(other) and rushlight.equal(one, other)
    return one == other
