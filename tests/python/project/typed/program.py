"""A program as users write it, for a type checker: test_typing.py checks and runs it.

A `type: ignore` here marks a mistake that the checker must see; one that it does not see fails the check.
"""

from collections.abc import Sequence

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


def normalise(x: torch.Tensor, dims: Sequence[int] = (0,)) -> torch.Tensor:
    centred = x - x.mean(dims, keepdim=True)
    return centred / centred.std(0, keepdim=True).clamp(min=1e-5)


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(4, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(F.relu(self.hidden(x)))


def operators() -> None:
    x: torch.Tensor = torch.zeros(2, 3, dtype=torch.float32, requires_grad=True)
    total: torch.Tensor = torch.add(x, 1).add(1, alpha=2).sum(dim=0, keepdim=True)
    assert total.shape == (1, 3)
    top = torch.topk(torch.arange(6.0), k=2)
    values: torch.Tensor = top.values
    assert values.tolist() == [5.0, 4.0] and x.view(3, 2).size(1) == 2
    whole: int = x.numel() + x.dim()
    same: bool = torch.equal(x, x.clone())
    parts: tuple[torch.Tensor, ...] = x.chunk(2)
    kind: torch.dtype = x.dtype
    place: torch.device = torch.device("cpu")
    assert whole == 8 and same and len(parts) == 2 and kind == torch.float32 and place == x.device
    assert (2 * x + 1 > 0).all() and (x @ x.mT).shape == torch.Size([2, 2])
    with torch.no_grad():
        x.add_(1).mul_(2)
    assert torch.einsum("ij->i", x).tolist() == [6.0, 6.0]
    assert torch.linalg.det(torch.eye(2)).item() == 1 and torch.special.expit(torch.zeros(1)).item() == 0.5


def mistakes() -> None:
    x = torch.ones(2)
    torch.add(x, "1")  # type: ignore[arg-type]
    x.add(1, alfa=2)  # type: ignore[call-arg]
    torch.no_such_operator(x)  # type: ignore[attr-defined]
    x.no_such_method()  # type: ignore[attr-defined]
    F.relu(x, inplace="yes")  # type: ignore[arg-type]
    torch.linalg.det(1.5)  # type: ignore[arg-type]
    print(torch.topk(x, 1).vals)  # type: ignore[attr-defined]
    text: str = torch.exp(x)  # type: ignore[assignment]
    torch.special.expit(text)  # type: ignore[arg-type]


def main() -> None:
    torch.manual_seed(0)
    net = Net(width=8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = normalise(torch.randn(16, 4)), torch.randint(3, (16,))
    for _ in range(3):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
    operators()


if __name__ == "__main__":
    main()
