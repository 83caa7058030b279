"""Comparing traced models before and after they are quantised (`torch.ao.ns._numeric_suite_fx`)."""

import copy

import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization
from rushlight.ao.ns import _numeric_suite_fx as ns
from rushlight.ao.ns.fx.graph_matcher import GraphMatchingException, get_matching_subgraph_pairs
from rushlight.ao.ns.fx.qconfig_multi_mapping import QConfigMultiMapping
from rushlight.ao.ns.fx.utils import compute_sqnr
from rushlight.ao.quantization.quantize_fx import convert_fx, prepare_fx


class _Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(2, 3, 3), nn.Linear(12, 4)
        self.weight = nn.Parameter(rushlight.randn(5, 4))

    def forward(self, x):
        x = rushlight.relu(self.conv(x)).flatten(1)
        return nn.functional.linear(self.head(x), self.weight)


@pytest.fixture
def models():
    rushlight.manual_seed(0)
    x = rushlight.randn(2, 2, 4, 4)
    mapping = quantization.QConfigMapping().set_global(quantization.default_qconfig)
    prepared = prepare_fx(_Net().eval(), mapping, (x,))
    prepared(x)
    return prepared, convert_fx(copy.deepcopy(prepared)), x


def test_weights(models):
    prepared, whole, _ = models
    results = ns.extract_weights("numbers", prepared, "integers", whole)
    assert list(results) == ["conv", "head", "linear"]
    ns.extend_logger_results_with_comparison(results, "numbers", "integers", compute_sqnr, "sqnr")
    for name, (path, weight) in {
        "conv": ("conv", prepared.conv.weight),
        "head": ("head", prepared.head.weight),
        "linear": ("", prepared.weight),
    }.items():
        first, second = (results[name]["weight"][model][0] for model in ("numbers", "integers"))
        assert first["fqn"] == second["fqn"] == path
        assert rushlight.equal(first["values"][0], weight) and second["values"][0].is_quantized
        assert 30 < float(second["sqnr"][0]) < 60


@pytest.mark.parametrize("inputs", [False, True])
def test_results_of_operations(models, inputs):
    prepared, whole, x = models
    first, second = ns.add_loggers("a", prepared, "b", whole, ns.OutputLogger, should_log_inputs=inputs)
    expected = whole(x)
    first(x)
    rushlight.testing.assert_close(second(x), expected, rtol=0, atol=0)
    results = ns.extract_logger_info(first, second, ns.OutputLogger, "b")
    assert [set(of_types) for of_types in results.values()] == [
        {"node_output", "node_input"} if inputs else {"node_output"}
    ] * len(results)
    ns.extend_logger_results_with_comparison(results, "a", "b", compute_sqnr, "sqnr")
    assert {"conv", "head", "linear"} <= set(results)
    for of_types in results.values():
        assert float(of_types["node_output"]["b"][0]["sqnr"][0]) > 15


def test_operations_on_operands_of_the_other_model(models):
    prepared, whole, x = models
    shadowed = ns.add_shadow_loggers("a", prepared, "b", whole, ns.OutputLogger)
    expected = whole(x)
    rushlight.testing.assert_close(shadowed(x), expected, rtol=0, atol=0)
    results = ns.extract_shadow_logger_info(shadowed, ns.OutputLogger, "b")
    assert {"conv", "head", "linear"} <= set(results)
    values = {m: results["head"]["node_output"][m][0]["values"][0] for m in ("a", "b")}
    # Of one rounding each: what was rounded before does not count.
    assert float(compute_sqnr(values["a"], values["b"].dequantize())) > 25
    ns.loggers_set_enabled(shadowed, False)
    shadowed(x)
    again = ns.extract_shadow_logger_info(shadowed, ns.OutputLogger, "b")
    assert len(again["head"]["node_output"]["a"][0]["values"]) == 1


def test_graphs_of_other_operations_are_refused():
    trace = rushlight.fx.symbolic_trace
    one = trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    for other in (nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU()), nn.Sequential(*[nn.Linear(2, 2)] * 2)):
        with pytest.raises(GraphMatchingException):
            get_matching_subgraph_pairs(one, trace(other))
    with pytest.raises(AssertionError, match="not found in results"):
        empty = {"x": {"weight": {"a": []}}}
        ns.extend_logger_results_with_comparison(empty, "a", "b", compute_sqnr, "sqnr")


def test_configurations_side_by_side():
    first, second = quantization.default_qconfig, quantization.default_dynamic_qconfig
    many = QConfigMultiMapping().set_object_type(nn.Linear, [first]).set_global([first, second, first])
    one, other = many.qconfig_mappings_list
    assert (one.global_qconfig, other.global_qconfig) == (first, second)
    assert one.object_type_qconfigs == {nn.Linear: first}
    assert other.object_type_qconfigs == {nn.Linear: None}
    again = QConfigMultiMapping.from_list_qconfig_mapping([one, other]).qconfig_mappings_list
    assert quantization.qconfig.qconfig_equals(again[1].global_qconfig, second)


def test_operators_of_integers_are_one_node(models):
    _, whole, x = models
    again = rushlight.fx.symbolic_trace(whole)
    targets = [node.target for node in again.graph.nodes]
    assert rushlight.ops.quantized.linear in targets
    assert any(str(target).startswith("_packed_weight") for target in targets)
    rushlight.testing.assert_close(again(x), whole(x), rtol=0, atol=0)
