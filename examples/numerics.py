"""Numerical work without any network: least squares, the heat equation, a Kalman filter."""

from common import arguments, figure

import rushlight as torch

torch.set_default_dtype(torch.float64)


def fit(axes):
    """A polynomial through noisy points, by QR."""
    x = torch.linspace(-1, 1, 50)
    y = 1 - 2 * x + 3 * x**3 + 0.2 * torch.randn(50)
    powers = torch.vander(x, 4, increasing=True)
    found = torch.linalg.lstsq(powers, y.unsqueeze(1)).solution.squeeze(1)
    print("least squares:", [round(c, 2) for c in found.tolist()], "(true: 1, -2, 0, 3)")
    axes.scatter(x.tolist(), y.tolist(), s=6)
    axes.plot(x.tolist(), (powers @ found).tolist(), color="black")
    axes.set_title("least squares")


def heat(axes, steps):
    """The heat equation on a square, explicitly in time; its ends are kept cold."""
    u = torch.zeros(64, 64)
    u[20:44, 20:44] = 1
    for _ in range(steps):
        inner = u[1:-1, 1:-1]
        around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        u[1:-1, 1:-1] = inner + 0.2 * (around - 4 * inner)
    print(f"heat: {u.sum() / 24**2:.1%} is left after {steps} steps")
    axes.imshow(u.tolist(), cmap="inferno", vmin=0, vmax=1)
    axes.set_title("heat")


def track(axes):
    """Position and speed of a car from noisy positions (Kalman 1960)."""
    move = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    see = torch.tensor([[1.0, 0.0]])
    shake, blur = 0.01 * torch.eye(2), torch.tensor([[4.0]])
    true = torch.stack([torch.arange(50.0) * 0.8, torch.full((50,), 0.8)], 1)
    seen = true[:, :1] + 2 * torch.randn(50, 1)
    state, spread = torch.zeros(2, 1), 10 * torch.eye(2)
    path = []
    for place in seen:
        state, spread = move @ state, move @ spread @ move.T + shake
        gain = torch.linalg.solve(see @ spread @ see.T + blur, see @ spread).T
        state = state + gain @ (place.unsqueeze(1) - see @ state)
        spread = spread - gain @ see @ spread
        path.append(state[0, 0])
    path = torch.stack(path)
    before, after = ((p - true[:, 0]).square().mean().sqrt() for p in (seen[:, 0], path))
    print(f"Kalman filter: error {before:.2f} before, {after:.2f} after")
    axes.scatter(range(50), seen[:, 0].tolist(), s=6)
    axes.plot(path.tolist(), color="black")
    axes.set_title("Kalman filter")


def main():
    given = arguments(__doc__, steps=500)
    torch.manual_seed(0)
    made, (left, middle, right) = figure(12, 4, 3)
    fit(left)
    heat(middle, given.steps)
    track(right)
    made.savefig(given.out / "numerics.png")


if __name__ == "__main__":
    main()
