"""Patterns of several operands, and what a graph's layers are told of weights that training has watched."""

import copy
import operator

import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization as ours
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn.intrinsic import quantized as nniq
from rushlight.ao.quantization import quantize_fx
from rushlight.ao.quantization.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    get_onednn_backend_config,
)
from rushlight.ao.quantization.fx.custom_config import PrepareCustomConfig
from rushlight.ao.quantization.utils import MatchAllNode


def _sum_network(norm, relu, left, two, add):
    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.other = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)
            self.bn, self.other_bn, self.relu = nn.BatchNorm2d(3), nn.BatchNorm2d(3), nn.ReLU()

        def forward(self, x):
            made = self.bn(self.conv(x)) if norm else self.conv(x)
            beside = (self.other_bn(self.other(x)) if norm else self.other(x)) if two else x
            made = add(made, beside) if left else add(beside, made)
            return self.relu(made) if relu else made

    model = Sum().eval()
    for bn in (model.bn, model.other_bn):
        bn.running_mean.uniform_(-1, 1)
        bn.running_var.uniform_(0.5, 2)
    return model


def _called(graph):
    return [
        type(graph.get_submodule(node.target)) if node.op == "call_module" else node.target
        for node in graph.graph.nodes
        if node.op.startswith("call")
    ]


@pytest.mark.parametrize("add", [rushlight.add, operator.add])
@pytest.mark.parametrize(
    "norm, relu, left, two", [(1, 1, 1, 1), (1, 0, 0, 0), (0, 1, 0, 1), (0, 0, 1, 0), (1, 1, 0, 1)]
)
def test_onednn_adds_as_it_stores(norm, relu, left, two, add):
    model, x = _sum_network(norm, relu, left, two, add), rushlight.randn(2, 3, 6, 6)
    wanted = model(x)
    fused = nni.ConvAddReLU2d if relu else nni.ConvAdd2d
    graph = quantize_fx.fuse_fx(model, backend_config=get_onednn_backend_config())
    assert _called(graph) == [nn.Conv2d] * two + [fused]
    assert rushlight.allclose(graph(x), wanted, atol=1e-5)
    mapping = ours.get_default_qconfig_mapping("onednn")
    prepared = quantize_fx.prepare_fx(model, mapping, (x,), backend_config=get_onednn_backend_config())
    prepared(x)
    made = quantize_fx.convert_fx(prepared, backend_config=get_onednn_backend_config())
    assert (nniq.ConvAddReLU2d if relu else nniq.ConvAdd2d) in _called(made)
    assert nn.ReLU not in _called(made)
    assert (made(x) - wanted).abs().max() < 0.05 * wanted.abs().max()


def test_an_operand_of_any_kind_is_no_part_of_a_pattern():
    model, x = _sum_network(False, True, True, True, rushlight.add), rushlight.randn(1, 3, 5, 5)
    model.other_bn = nn.ReLU()
    given = []

    def fuse(is_qat, relu, sum_of):
        given.append(sum_of)
        return nn.Sequential(sum_of[1], relu)

    pattern = (nn.ReLU, (rushlight.add, nn.Conv2d, MatchAllNode))
    config = BackendPatternConfig()._set_pattern_complex_format(pattern).set_fuser_method(fuse)
    config._set_root_node_getter(lambda nodes: nodes[1][1])
    graph = quantize_fx.fuse_fx(model, backend_config=BackendConfig().set_backend_pattern_config(config))
    assert given == [(rushlight.add, model.conv, MatchAllNode)]
    # The program's method left the other operand out.
    assert rushlight.allclose(graph(x), model.conv(x).relu())


@pytest.mark.parametrize("kind", [nn.ReLU, None])
def test_graphs_round_trained_weights_as_modules_do(kind):
    """A moving average that saw the weight twice gave scales that were a little off, and other integers."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.quant, self.dequant = ours.QuantStub(), ours.DeQuantStub()
            self.conv, self.bn = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
            self.relu = nn.Identity() if kind is None else kind()

        def forward(self, x):
            x = self.bn(self.conv(self.quant(x)))
            return self.dequant(x if kind is None else self.relu(x))

    for seed in range(6):
        rushlight.manual_seed(seed)
        model, x = Net().train(), rushlight.rand(2, 3, 9, 9)
        eager = Net().train()
        eager.load_state_dict(model.state_dict())
        mapping = ours.get_default_qat_qconfig_mapping("fbgemm")
        prepared = quantize_fx.prepare_qat_fx(model, mapping, (x,))
        prepared(x)
        graph = quantize_fx.convert_fx(prepared)
        parts = ["conv", "bn"] + (["relu"] if kind else [])
        eager = ours.fuse_modules_qat(eager, parts)
        eager.qconfig = ours.get_default_qat_qconfig("fbgemm")
        eager = ours.prepare_qat(eager)
        eager(x)
        eager = ours.convert(eager)
        one, two = graph.conv.weight(), eager.conv.weight()
        assert rushlight.equal(one.q_per_channel_scales(), two.q_per_channel_scales())
        assert rushlight.equal(one.int_repr(), two.int_repr())
        assert rushlight.equal(graph(x), eager(x))


class _Apart(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 3, 1), nn.ReLU()

    def forward(self, x):
        return self.relu(self.conv(x))


@pytest.mark.parametrize("integers", [[], [0]])
@pytest.mark.parametrize("by", ["name", "class"])
def test_modules_prepared_apart_compute_what_they_do_in_the_whole(integers, by):
    rushlight.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 3, 1), _Apart(), nn.Conv2d(3, 2, 1)).eval()
    x = rushlight.rand(2, 2, 4, 4)

    def made(custom=None):
        prepared = quantize_fx.prepare_fx(
            copy.deepcopy(model), ours.get_default_qconfig_mapping("x86"), (x,), prepare_custom_config=custom
        )
        prepared(x)
        return quantize_fx.convert_fx(copy.deepcopy(prepared))

    inner = PrepareCustomConfig().set_input_quantized_indexes(integers).set_output_quantized_indexes(integers)
    custom = PrepareCustomConfig()
    if by == "name":
        custom.set_standalone_module_name("1", None, (x,), inner, None)
    else:
        custom.set_standalone_module_class(_Apart, None, (x,), inner, None)
    graph = made(custom)
    assert rushlight.equal(graph(x), made()(x))
    part = graph.get_submodule("1")
    assert type(part.conv) is nniq.ConvReLU2d
    assert (rushlight.quantize_per_tensor in _called(part)) == (not integers)
    assert ("dequantize" in _called(part)) == (not integers)


def test_a_module_prepared_apart_may_be_called_twice():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = _Apart()

        def forward(self, x):
            return self.part(x) + self.part(x * 0.5)

    rushlight.manual_seed(0)
    model, x = Twice().eval(), rushlight.rand(2, 3, 4, 4)
    inner = PrepareCustomConfig().set_input_quantized_indexes([0]).set_output_quantized_indexes([0])
    custom = PrepareCustomConfig().set_standalone_module_name("part", None, (x,), inner, None)
    mapping = ours.get_default_qconfig_mapping("x86")
    prepared = quantize_fx.prepare_fx(copy.deepcopy(model), mapping, (x,), prepare_custom_config=custom)
    prepared(x)
    made = quantize_fx.convert_fx(prepared)
    calls = [node for node in made.graph.nodes if node.target == "part"]
    assert len(calls) == 2 and all(list(n.users)[0].target == "dequantize" for n in calls)
    assert float((made(x) - model(x)).abs().max()) < 0.1 * float(model(x).abs().max())


@pytest.mark.parametrize("mixed", [False, True])
def test_a_layer_that_is_called_twice_is_fused_where_both_calls_are_alike(mixed):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU()

        def forward(self, x):
            x = self.relu(self.bn(self.conv(x)))
            return self.conv(x) if mixed else self.relu(self.bn(self.conv(x)))

    model, x = Twice().eval(), rushlight.randn(2, 2, 3, 3)
    model.bn.running_mean.fill_(0.5)
    graph = quantize_fx.fuse_fx(model)
    assert rushlight.allclose(graph(x), model(x), atol=1e-6)
    assert (nni.ConvReLU2d in _called(graph)) == (not mixed)
