"""gpytorch: a sparse variational classifier, trained in batches on a moving boundary."""

import gpytorch
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
inputs = torch.rand(200, 1)
labels = (inputs[:, 0] > 0.4).float()


class Classifier(gpytorch.models.ApproximateGP):
    def __init__(self):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(12)
        strategy = gpytorch.variational.VariationalStrategy(
            self, torch.linspace(0, 1, 12)[:, None], distribution, learn_inducing_locations=True
        )
        super().__init__(strategy)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


model, likelihood = Classifier(), gpytorch.likelihoods.BernoulliLikelihood()
bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(labels))
optimizer = torch.optim.Adam([*model.parameters(), *likelihood.parameters()], lr=0.05)
batches = DataLoader(TensorDataset(inputs, labels), batch_size=50, shuffle=True)
losses = []
for _ in range(25):
    for x, y in batches:
        optimizer.zero_grad()
        loss = -bound(model(x), y)
        loss.backward()
        optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.6 * losses[0], losses
model.eval()
likelihood.eval()
with torch.no_grad():
    chance = likelihood(model(torch.tensor([[0.1], [0.9]]))).mean
assert chance[0] < 0.3 and chance[1] > 0.7, chance
copy = Classifier()
copy.load_state_dict(model.state_dict())
copy.eval()
with torch.no_grad():
    assert torch.allclose(likelihood(copy(torch.tensor([[0.1], [0.9]]))).mean, chance, atol=1e-5)
