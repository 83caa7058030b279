"""Reports on prepared models: what detectors find, which settings they advise."""

import numpy as np
import pytest

import rushlight
from rushlight.ao import quantization as ours
from rushlight.ao.quantization.fx._model_report import detector as our_detectors
from rushlight.ao.quantization.fx._model_report.model_report import ModelReport


def _network(library):
    n = library.nn

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.relu, self.linear = n.Conv2d(4, 6, 3), n.ReLU(), n.Linear(6, 5)

        def forward(self, x):
            return self.linear(self.relu(self.conv(x)))

    return Net().eval()


def _batches(library):
    random = np.random.RandomState(0)
    for step in range(3):
        x = random.randn(2, 4, 8, 8).astype("f4") * 10**step
        x[0, 1, 2, 3] = 50 * 10**step
        x[:, 3] = 1
        yield library.from_numpy(x)


def _calibrated(library, quantization, detectors, report_class, state):
    """The report of all detectors, after three batches."""
    from importlib import import_module

    model = _network(library)
    model.load_state_dict({name: library.from_numpy(value) for name, value in state.items()})
    prepare_fx = import_module(f"{quantization.__name__}.quantize_fx").prepare_fx
    mapping = quantization.get_default_qconfig_mapping("x86")
    prepared = prepare_fx(model, mapping, (next(_batches(library)),))
    report = report_class(
        prepared,
        {
            detectors.PerChannelDetector("x86"),
            detectors.DynamicStaticDetector(0.7),
            detectors.InputWeightEqualizationDetector(0.5),
            detectors.OutlierDetector(reference_percentile=0.9),
        },
    )
    prepared = report.prepare_detailed_calibration()
    for x in _batches(library):
        prepared(x)
    return prepared, report


def _plain(value):
    return np.asarray(value.tolist() if hasattr(value, "tolist") else value)


def _state():
    return {name: value.numpy().copy() for name, value in _network(rushlight).state_dict().items()}


def _ours(state=None):
    return _calibrated(rushlight, ours, our_detectors, ModelReport, state or _state())


def test_findings_and_advice_are_pytorchs(torch):
    from torch.ao import quantization as theirs
    from torch.ao.quantization.fx._model_report import detector
    from torch.ao.quantization.fx._model_report.model_report import ModelReport as TheirReport

    state = _state()
    _, report = _ours(state)
    _, wanted = _calibrated(torch, theirs, detector, TheirReport, state)
    for make in ("generate_qconfig_mapping", "generate_equalization_mapping"):
        found, expected = getattr(report, make)(), getattr(wanted, make)()
        assert list(found.module_name_qconfigs) == list(expected.module_name_qconfigs)
        for name, qconfig in expected.module_name_qconfigs.items():
            made, theirs_made = found.module_name_qconfigs[name], qconfig
            assert type(made).__name__ == type(theirs_made).__name__
            assert [type(part()).__name__ for part in made] == [type(part()).__name__ for part in theirs_made]
    found, expected = report.generate_model_report(False), wanted.generate_model_report(False)
    assert set(found) == set(expected)
    for name, (_, layers) in expected.items():
        assert list(found[name][1]) == list(layers), name
        for fqn, features in layers.items():
            assert set(found[name][1][fqn]) == set(features)
            for feature, value in features.items():
                got, want = _plain(found[name][1][fqn][feature]), _plain(value)
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(got, want, rtol=1e-4, err_msg=f"{fqn} {feature}")
                else:
                    np.testing.assert_array_equal(got, want, err_msg=f"{fqn} {feature}")


def test_texts_name_what_was_found():
    prepared, report = _ours()
    reports = report.generate_model_report(True)
    per_channel = reports["per_channel_detector"][0]
    assert per_channel.endswith("No further per_channel optimizations possible.")
    assert "use dynamic quantization" in reports["dynamic_vs_static_detector"][0]
    outliers = reports["outlier_detector"][0]
    assert "For channel 1, we found outliers" in outliers and "For channel 3, we found 3 constant" in outliers
    assert "channels would benefit" in reports["input_weight_equalization_detector"][0]
    assert not any("model_report" in name for name, _ in prepared.named_modules())
    assert not any("model_report" in str(node.target) for node in prepared.graph.nodes)
    assert prepared(next(_batches(rushlight))).shape == (2, 6, 6, 5)
    with pytest.raises(Exception, match="already removed observers"):
        report.generate_model_report(False)


def test_a_model_is_prepared_as_advised():
    _, report = _ours()
    sample = next(_batches(rushlight))
    prepared = ours.quantize_fx.prepare_fx(_network(rushlight), report.generate_qconfig_mapping(), (sample,))
    prepared(sample)
    converted = ours.quantize_fx.convert_fx(prepared)
    assert type(converted.linear).__module__.endswith("quantized.dynamic.modules.linear")
    assert converted(sample).shape == (2, 6, 6, 5)


def test_tables_and_pictures(capsys):
    _, report = _ours()
    with pytest.raises(Exception, match="without first generating reports"):
        report.generate_visualizer()
    report.generate_model_report(False)
    shown = report.generate_visualizer()
    assert shown.get_all_unique_module_fqns() == {"conv.0", "conv.1", "linear"}
    key = our_detectors.OutlierDetector.MAX_VALS_KEY
    assert key in shown.get_all_unique_feature_names()
    headers, rows = shown.generate_filtered_tables(key, "conv.0")[shown.TABLE_CHANNEL_KEY]
    assert headers == ["idx", "layer_fqn", "channel", key]
    assert [row[:3] for row in rows] == [[i, "conv.0", i] for i in range(4)] and rows[1][3] == 5000
    shown.generate_table_visualization(key)
    assert "5000" in capsys.readouterr().out
    layers, lines, by_channel = shown._get_plottable_data(key, "")
    # The observer of a fused layer's part sees what comes to the whole.
    assert by_channel and layers == [0, 1, 2] and [len(line) for line in lines] == [3] * 4 + [1] * 2
    with pytest.raises(ValueError, match="only a single feature"):
        shown.generate_plot_visualization("") if _has_matplotlib() else shown._get_plottable_data("", "")
    if _has_matplotlib():
        import matplotlib

        matplotlib.use("Agg")
        shown.generate_plot_visualization(key)
        shown.generate_histogram_visualization(key)


def _has_matplotlib():
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def test_bad_settings():
    with pytest.raises(ValueError, match="at least 1"):
        ModelReport(_network(rushlight), set())
    with pytest.raises(ValueError, match="threshold"):
        our_detectors.InputWeightEqualizationDetector(1)
    with pytest.raises(AssertionError, match="reference_percentile"):
        our_detectors.OutlierDetector(reference_percentile=2)
    with pytest.raises(ValueError, match="Not configured to work with gpu"):
        our_detectors.PerChannelDetector("gpu")
