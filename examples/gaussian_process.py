"""A Gaussian process with the hyperparameters of most marginal likelihood (Rasmussen and Williams 2006)."""

import math

from common import arguments, figure

import rushlight as torch


def kernel(a, b, scale, length):
    return scale**2 * (-0.5 * ((a.unsqueeze(1) - b) / length) ** 2).exp()


def factor(x, scale, length, noise):
    return torch.linalg.cholesky(kernel(x, x, scale, length) + noise**2 * torch.eye(len(x), dtype=x.dtype))


def negative_log_likelihood(x, y, *logs):
    lower = factor(x, *(v.exp() for v in logs))
    whitened = torch.linalg.solve_triangular(lower, y.unsqueeze(1), upper=False)
    return 0.5 * (whitened**2).sum() + lower.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


def predict(x, y, new, scale, length, noise):
    """Mean and standard deviation at new places."""
    lower = factor(x, scale, length, noise)
    across = torch.linalg.solve_triangular(lower, kernel(x, new, scale, length), upper=False)
    mean = across.T @ torch.linalg.solve_triangular(lower, y.unsqueeze(1), upper=False)
    return mean.squeeze(1), (scale**2 + noise**2 - (across**2).sum(0)).sqrt()


def main():
    given = arguments(__doc__, steps=100)
    torch.manual_seed(0)
    x = torch.rand(40, dtype=torch.float64) * 10
    y = x.sin() * 1.5 + 0.2 * torch.randn_like(x)
    logs = [torch.zeros((), dtype=torch.float64, requires_grad=True) for _ in range(3)]
    optimizer = torch.optim.LBFGS(logs, max_iter=given.steps, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = negative_log_likelihood(x, y, *logs)
        loss.backward()
        return loss

    print(f"negative log likelihood {optimizer.step(closure).item():.2f} at the start")
    with torch.no_grad():
        print(f"negative log likelihood {negative_log_likelihood(x, y, *logs).item():.2f} at the end")
        scale, length, noise = (v.exp() for v in logs)
        print(f"scale {scale:.2f}, length {length:.2f}, noise {noise:.2f} (true: 0.20)")
        new = torch.linspace(-1, 11, 200, dtype=torch.float64)
        mean, deviation = predict(x, y, new, scale, length, noise)
    made, axes = figure(7)
    axes.fill_between(
        new.tolist(), (mean - 2 * deviation).tolist(), (mean + 2 * deviation).tolist(), alpha=0.2
    )
    axes.plot(new.tolist(), mean.tolist(), label="mean, with two deviations")
    axes.scatter(x.tolist(), y.tolist(), s=8, color="black", label="data")
    axes.legend()
    made.savefig(given.out / "gaussian_process.png")


if __name__ == "__main__":
    main()
