"""Several quantised shadows of each part of a model beside it."""

import math

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization as ours
from rushlight.ao.ns import _numeric_suite_fx as suite
from rushlight.ao.quantization.backend_config import get_native_backend_config


def _network(library):
    n, f = library.nn, library.nn.functional

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.first = n.Conv2d(1, 3, 3), n.BatchNorm2d(3), n.Linear(12, 4)
            self.weight = n.Parameter(library.ones(4, 4))

        def forward(self, x):
            x = f.relu(self.bn(self.conv(x))).flatten(1)
            x = library.cat([self.first(x), self.first(x)], 1)[:, :4]
            return f.linear(x + x, self.weight)

    return Net().eval()


def _table(library, package, module, native, start, kind):
    model = _network(library)
    model.load_state_dict({name: library.from_numpy(value.copy()) for name, value in start.items()})
    x = library.from_numpy(np.random.RandomState(1).randn(8, 1, 4, 4).astype("f4"))
    if kind == "weights":
        mapping = package.get_default_qconfig_mapping("fbgemm")
        results = module._n_shadows_compare_weights(model, (x,), mapping, native())
        return {name: float(one[0]["comparisons"][0]) for name, one in results["model"]["weight"].items()}
    if kind == "along":
        mapping = package.get_default_qconfig_mapping("fbgemm").set_module_name("first", None)
        prepared = module._prepare_n_shadows_add_loggers_model(model, (x,), mapping, native())
    else:
        mappings = module.QConfigMultiMapping().set_global(
            [package.default_qconfig, package.default_dynamic_qconfig]
        )
        prepared = module.prepare_n_shadows_model(model, (x,), mappings, native())
    prepared(x)
    made = module.convert_n_shadows_model(prepared)
    module.loggers_set_enabled(made, True)
    made(x)
    results = module.extract_results_n_shadows_model(made)
    module.print_comparisons_n_shadows_model(results)
    return {
        name: [float(value) for value in one[0]["comparisons"]]
        for name, one in results["model"]["node_output"].items()
    }


@pytest.mark.parametrize("kind", ["beside", "along", "weights"])
def test_shadows_lose_what_pytorchs_do(kind):
    torch = pytest.importorskip("torch")
    from torch.ao.ns import _numeric_suite_fx as theirs
    from torch.ao.quantization.backend_config import get_native_backend_config as native

    torch.manual_seed(0)
    start = {name: value.numpy() for name, value in _network(torch).state_dict().items()}
    start["weight"] = np.random.RandomState(0).randn(4, 4).astype("f4")
    wanted = _table(torch, torch.ao.quantization, theirs, native, start, kind)
    found = _table(rushlight, ours, suite, get_native_backend_config, start, kind)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-3)


def test_a_table_has_a_line_a_part_and_a_column_a_shadow(capsys):
    rushlight.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 2)).eval(), rushlight.randn(4, 3)
    both = [ours.default_qconfig, ours.default_dynamic_qconfig]
    mappings = suite.QConfigMultiMapping().set_global(both).set_module_name("1", [None, both[0]])
    prepared = suite.prepare_n_shadows_model(model, (x,), mappings, get_native_backend_config())
    prepared(x)
    made = suite.convert_n_shadows_model(prepared)
    suite.loggers_set_enabled(made, True)
    suite.loggers_set_save_activations(made, False)
    assert rushlight.equal(made(x), model(x))
    suite.print_comparisons_n_shadows_model(suite.extract_results_n_shadows_model(made))
    head, first, second = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert head == ["node_name", "node_type", "fqn", "0", "1"]
    assert (len(first), len(second)) == (5, 4)
    assert all(20 < float(cell) < 80 for cell in first[3:] + second[3:])


def test_arguments_that_are_set_here_are_refused():
    model, x = nn.Sequential(nn.Linear(2, 2)).eval(), rushlight.ones(1, 2)
    mappings = suite.QConfigMultiMapping().set_global([ours.default_qconfig])
    with pytest.raises(AssertionError, match="cannot specify example_inputs"):
        suite.prepare_n_shadows_model(
            model, (x,), mappings, get_native_backend_config(), None, {"example_inputs": (x,)}
        )
    assert math.isinf(float(suite.compute_sqnr(x, x)))
