"""Autocast, the profiler, graphs, checkpoints of activations."""

from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import fx, nn
from rushlight.profiler import ProfilerActivity, profile, record_function
from rushlight.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.relu(self.a(x)))


def main() -> None:
    net, x = Net(), torch.randn(3, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = net(x)
    assert half.dtype is torch.bfloat16
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded, record_function("all"):
        net(x).sum().backward()
    assert "linear" in recorded.key_averages().table(sort_by="cpu_time_total")
    traced = fx.symbolic_trace(net)
    assert torch.allclose(traced(x), net(x)) and "relu" in traced.code
    again = checkpoint(net, x, use_reentrant=False)
    assert torch.equal(again, net(x))
    compiled = torch.compile(net)
    assert compiled(x).shape == (3, 2)
    if TYPE_CHECKING:
        assert_type(half, torch.Tensor)
        assert_type(compiled, Net)


if __name__ == "__main__":
    main()
