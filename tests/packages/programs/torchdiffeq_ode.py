"""torchdiffeq: solvers against exact solutions, gradients by the adjoint method, events, a learned field."""

import math

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint, odeint_event

torch.manual_seed(0)
times = torch.linspace(0, 1, 5, dtype=torch.float64)
start = torch.tensor([1.0, 0.0], dtype=torch.float64)


class Rotation(nn.Module):
    def __init__(self):
        super().__init__()
        self.speed = nn.Parameter(torch.tensor(2.0, dtype=torch.float64))

    def forward(self, t, y):
        return self.speed * torch.stack([-y[..., 1], y[..., 0]], -1)


field = Rotation()
exact = torch.stack([torch.cos(2 * times), torch.sin(2 * times)], -1)
for method in ("dopri5", "bosh3", "adaptive_heun"):
    assert torch.allclose(
        odeint(field, start, times, method=method, rtol=1e-7, atol=1e-9), exact, atol=1e-5
    ), method
for method in ("euler", "midpoint", "rk4", "heun3"):
    error = (odeint(field, start, times, method=method, options={"step_size": 1e-2}) - exact).abs().max()
    assert error < (0.05 if method == "euler" else 1e-3), (method, error)

# x(1) = cos(speed), so its derivative by speed is -sin(speed), by both ways of differentiating.
for solve in (odeint, odeint_adjoint):
    field.zero_grad()
    solve(field, start, times, rtol=1e-8, atol=1e-10)[-1, 0].backward()
    assert abs(field.speed.grad.item() + math.sin(2.0)) < 1e-6, (solve, field.speed.grad)

time, state = odeint_event(field, start, times[0], event_fn=lambda t, y: y[0], atol=1e-9, rtol=1e-8)
assert abs(time.item() - math.pi / 4) < 1e-6 and abs(state[-1, 1].item() - 1) < 1e-6


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.layers(y)


learned = Network()
optimizer = torch.optim.Adam(learned.parameters(), lr=0.02)
target = exact.float()
losses = []
for _ in range(40):
    optimizer.zero_grad()
    loss = (odeint_adjoint(learned, start.float(), times.float(), method="rk4") - target).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.05 * losses[0], losses
