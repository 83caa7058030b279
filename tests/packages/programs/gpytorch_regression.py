"""gpytorch and linear_operator: exact Gaussian process regression against the closed form, then training."""

import math

import gpytorch
import linear_operator
import torch
from linear_operator.operators import DiagLinearOperator, KroneckerProductLinearOperator, to_linear_operator

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
inputs = torch.linspace(0, 1, 30)
targets = torch.sin(2 * math.pi * inputs) + 0.05 * torch.randn(30)
points = torch.linspace(0.05, 0.95, 7)


class Process(gpytorch.models.ExactGP):
    def __init__(self, likelihood):
        super().__init__(inputs, targets, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


likelihood = gpytorch.likelihoods.GaussianLikelihood()
process = Process(likelihood)
process.covar_module.base_kernel.lengthscale = 0.2
process.covar_module.outputscale = 1.5
likelihood.noise = 0.01


def covariance(a, b):
    return 1.5 * torch.exp(-0.5 * ((a[:, None] - b[None]) / 0.2) ** 2)


process.eval()
likelihood.eval()
with torch.no_grad():
    prediction = likelihood(process(points))
noisy = covariance(inputs, inputs) + 0.01 * torch.eye(30)
cross = covariance(points, inputs)
assert torch.allclose(prediction.mean, cross @ torch.linalg.solve(noisy, targets), atol=1e-6)
expected = covariance(points, points) - cross @ torch.linalg.solve(noisy, cross.T) + 0.01 * torch.eye(7)
assert torch.allclose(prediction.covariance_matrix, expected, atol=1e-5)
low, high = prediction.confidence_region()
assert bool((low < prediction.mean).all()) and bool((prediction.mean < high).all())

process.train()
likelihood.train()
likelihood_of_data = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, process)
value = likelihood_of_data(process(inputs), targets)
exact = torch.distributions.MultivariateNormal(torch.zeros(30), noisy).log_prob(targets) / 30
assert torch.allclose(value, exact, atol=1e-6), (value, exact)
optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = -likelihood_of_data(process(inputs), targets)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] and process.covar_module.base_kernel.lengthscale.requires_grad

root = torch.randn(6, 6)
matrix = root @ root.T + 6 * torch.eye(6)
right = torch.randn(6, 2)
operator = to_linear_operator(matrix)
assert torch.allclose(linear_operator.solve(operator, right), torch.linalg.solve(matrix, right))
assert torch.allclose(operator.logdet(), torch.logdet(matrix))
assert torch.allclose((operator + DiagLinearOperator(torch.ones(6))).to_dense(), matrix + torch.eye(6))
assert torch.allclose(torch.matmul(operator, right), matrix @ right)
product = KroneckerProductLinearOperator(operator, to_linear_operator(torch.eye(2) * 3))
assert torch.allclose(product.to_dense(), torch.kron(matrix, torch.eye(2) * 3))
assert torch.allclose(
    product.cholesky().to_dense(), torch.linalg.cholesky(torch.kron(matrix, torch.eye(2) * 3))
)
