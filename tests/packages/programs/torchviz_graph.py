"""torchviz: the graph that automatic differentiation recorded, as dot source."""

import torch
from torch import nn
from torchviz import make_dot, make_dot_from_trace

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.randn(1, 8)
loss = network(x).mean()
source = make_dot(loss, params=dict(network.named_parameters()), show_attrs=True, show_saved=True).source
for name in ("MeanBackward0", "AddmmBackward0", "TanhBackward0", "AccumulateGrad", "TBackward0"):
    assert name in source, name
for name, parameter in network.named_parameters():
    assert f"{name}\n ({', '.join(map(str, parameter.shape))})" in source, name
assert source.startswith("digraph {") and source.count("->") > 10
assert "_saved_result" in source or "result" in source


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return 2 * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


leaf = torch.ones(2, requires_grad=True)
source = make_dot(Double.apply(leaf).sum(), params={"leaf": leaf}, show_saved=True).source
assert "DoubleBackward" in source and "leaf\n (2)" in source
assert callable(make_dot_from_trace)
