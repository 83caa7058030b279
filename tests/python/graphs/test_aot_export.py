"""aot_export_module: the graph of a module as a function of its parameters, buffers and arguments."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._functorch.aot_autograd import aot_export_module

aten = torch.ops.aten  # type: ignore[attr-defined]


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        y = self.linear(x)
        self.count.add_(y.detach().sum(0))
        y.mul_(y.reshape(-1).sum())
        return y.sum(), y.detach().view(-1)


def _results(module, x):
    held = [t.detach().clone() for t in (*module.parameters(), *module.buffers())]
    result = module(x)
    count = module.count.clone()
    module.load_state_dict(dict(zip(("linear.weight", "linear.bias", "count"), held)))
    return [count, *result]


@pytest.mark.parametrize("pre_dispatch", [False, True])
def test_graphs_of_results(pre_dispatch):
    module, x = Program(), torch.randn(2, 3)
    graph, signature = aot_export_module(module, [x], trace_joint=False, pre_dispatch=pre_dispatch)
    assert not any(n.target._schema.is_mutable for n in graph.graph.nodes if n.op == "call_function")
    for given in (x, torch.randn(2, 3)):
        found = graph(*module.parameters(), *module.buffers(), given)
        torch.testing.assert_close(list(found), _results(module, given))
    assert signature.parameters == ["linear.weight", "linear.bias"] and signature.buffers == ["count"]
    assert list(signature.buffers_to_mutate.values()) == ["count"]
    assert signature.user_inputs == ["arg3_1"] and len(signature.user_outputs) == 2
    assert signature.inputs_to_parameters == {"arg0_1": "linear.weight", "arg1_1": "linear.bias"}
    assert signature.inputs_to_buffers == {"arg2_1": "count"}
    whole = [n.target for n in graph.graph.nodes]
    assert (aten.linear.default in whole) is pre_dispatch


def test_what_is_cut_off_stays_so_in_graphs_that_are_differentiated_later():
    module, x = Program(), torch.randn(2, 3)
    graph, _ = aot_export_module(module, [x], trace_joint=False, pre_dispatch=True)
    _, loss, cut = graph(*module.parameters(), *module.buffers(), x)
    assert loss.requires_grad and not cut.requires_grad


def test_joint_graphs():
    module, x = Program(), torch.randn(2, 3)
    graph, signature = aot_export_module(module, [x], trace_joint=True, output_loss_index=0)
    outputs = dict(
        zip(
            [n.name for n in graph.graph.output_node().args[0]],
            graph(*module.parameters(), *module.buffers(), x),
        )
    )
    module(x)[0].backward()
    backward = signature.backward_signature
    assert sorted(backward.gradients_to_parameters.values()) == ["linear.bias", "linear.weight"]
    for name, parameter in backward.gradients_to_parameters.items():
        torch.testing.assert_close(outputs[name], module.get_parameter(parameter).grad)
    assert backward.loss_output == signature.user_outputs[0]


class _Of(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function, self.weight = function, nn.Parameter(torch.ones(2))

    def forward(self, *args):
        return self.function(self.weight, *args)


REFUSED = {
    "metadata mutation": (lambda w, x: x.t_() * 1, {"trace_joint": False}),
    "that was not the scalar loss": (lambda w, x: (w.sum(), w * 2), {"output_loss_index": 0}),
    "does not require gradients": (lambda w, x: (x.sum(),), {"output_loss_index": 0}),
    "to be a scalar": (lambda w, x: (w * 2,), {"output_loss_index": 0}),
    "You must specify": (lambda w, x: w.sum(), {}),
    "pre_dispatch is not supported": (lambda w, x: w.sum(), {"pre_dispatch": True}),
}


@pytest.mark.parametrize("words", REFUSED)
def test_refusals(words):
    function, options = REFUSED[words]
    with pytest.raises(RuntimeError, match=words):
        aot_export_module(_Of(function), [torch.ones(2, 2)], **{"trace_joint": True, **options})


def test_an_argument_given_twice_may_not_be_written_to():
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="duplicated inputs that are mutated"):
        aot_export_module(_Of(lambda w, x, y: x.mul_(2) + y), [x, x], trace_joint=False)
