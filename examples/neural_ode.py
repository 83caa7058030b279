"""A neural differential equation (Chen et al. 2018): the field behind a spiral, learned from its path."""

from common import arguments, figure

import rushlight as torch
from rushlight import nn

TRUTH = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def spiral(y):
    return y**3 @ TRUTH


def solve(field, start, times):
    """The path by the classical Runge-Kutta method, a step for each time."""
    path = [start]
    for h in times.diff():
        y = path[-1]
        a = field(y)
        b = field(y + h / 2 * a)
        c = field(y + h / 2 * b)
        d = field(y + h * c)
        path.append(y + h / 6 * (a + 2 * b + 2 * c + d))
    return torch.stack(path)


class Field(nn.Module):
    def __init__(self, hidden=50):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, y):
        return self.net(y**3)


def main():
    given = arguments(__doc__, steps=3000)
    torch.manual_seed(0)
    times = torch.linspace(0, 10, 200)
    with torch.no_grad():
        truth = solve(spiral, torch.tensor([[2.0, 0.0]]), times)
    field = Field()
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)
    for step in range(1, given.steps + 1):
        starts = torch.randint(len(times) - 10, (20,))
        found = solve(field, truth[starts, 0], times[:10])
        wanted = truth[starts + torch.arange(10).unsqueeze(1), 0]
        loss = (found - wanted).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 500 == 0 or step == given.steps:
            print(f"step {step}: loss {loss.item():.4f}")
    with torch.no_grad():
        found = solve(field, truth[0], times)
    print(f"mean distance of the paths {(found - truth).norm(dim=-1).mean().item():.3f}")
    made, axes = figure(5, 5)
    axes.plot(*truth[:, 0].T.tolist(), label="truth", linewidth=4, alpha=0.4)
    axes.plot(*found[:, 0].T.tolist(), label="learned", linestyle="--")
    axes.legend()
    made.savefig(given.out / "neural_ode.png")


if __name__ == "__main__":
    main()
