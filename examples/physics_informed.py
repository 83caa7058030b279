"""A physics-informed network (Raissi, Perdikaris and Karniadakis 2019) for a damped oscillator.

u'' + 2 d u' + w^2 u = 0 with u(0) = 1 and u'(0) = 0 is known in closed form, so the error can be drawn.
"""

import math

from common import arguments, figure

import rushlight as torch
from rushlight import nn

DAMPING, FREQUENCY = 1.0, 6.0


def exact(t):
    wave = math.sqrt(FREQUENCY**2 - DAMPING**2)
    return (-DAMPING * t).exp() * ((wave * t).cos() + DAMPING / wave * (wave * t).sin())


def derivative(y, x):
    return torch.autograd.grad(y.sum(), x, create_graph=True)[0]


def loss_of(model, points):
    t = points.requires_grad_()
    u = model(t)
    speed = derivative(u, t)
    rest = derivative(speed, t) + 2 * DAMPING * speed + FREQUENCY**2 * u
    start = torch.zeros(1, 1, requires_grad=True)
    at_start = model(start)
    return (
        1e-3 * (rest**2).mean() + (at_start - 1).pow(2).sum() + 0.1 * derivative(at_start, start).pow(2).sum()
    )


def main():
    given = arguments(__doc__, steps=4000)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, given.steps)
    for step in range(1, given.steps + 1):
        loss = loss_of(model, torch.rand(64, 1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 1000 == 0 or step == given.steps:
            print(f"step {step}: loss {loss.item():.2e}")
    t = torch.linspace(0, 1, 200).unsqueeze(1)
    with torch.no_grad():
        found = model(t)
    print(f"largest error {(found - exact(t)).abs().max():.4f}")
    made, axes = figure()
    axes.plot(t.flatten().tolist(), exact(t).flatten().tolist(), label="exact", linewidth=4, alpha=0.4)
    axes.plot(t.flatten().tolist(), found.flatten().tolist(), label="network", linestyle="--")
    axes.set(xlabel="t", ylabel="u")
    axes.legend()
    made.savefig(given.out / "physics_informed.png")


if __name__ == "__main__":
    main()
