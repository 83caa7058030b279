"""A dataset of one's own, a loader, an optimizer with a schedule, a training loop."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F
from rushlight.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Squares(Dataset):
    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tensor([index / 32.0])
        return x, x * x


class Net(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, width), nn.Tanh())
        self.head = nn.Linear(width, 1)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return self.head(self.body(x)) * scale


def main() -> None:
    net = Net()
    loader = DataLoader(Squares(), batch_size=8, shuffle=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    loss = torch.zeros(())
    for _ in range(2):
        net.train()
        for x, y in loader:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x, scale=1.0), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        schedule.step()
    net.eval()
    with torch.no_grad():
        out = net(torch.ones(2, 1))
    assert out.shape == (2, 1) and loss.item() >= 0
    if TYPE_CHECKING:
        assert_type(out, torch.Tensor)
        assert_type(net.head.weight, nn.Parameter)
        assert_type(net.state_dict(), dict[str, Any])
        assert_type(net.to("cpu"), Net)
        function: Callable[[torch.Tensor], torch.Tensor] = net
        assert_type(function(torch.ones(2, 1)), torch.Tensor)
        net("text")  # type: ignore
        net(torch.ones(1), scales=1)  # type: ignore


if __name__ == "__main__":
    main()
