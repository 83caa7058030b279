"""Pyro: variational inference with two guides, whose losses were recorded on PyTorch."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

data = 2 + torch.linspace(-1.5, 1.5, 50)


def model(x):
    mean = pyro.sample("mean", dist.Normal(0.0, 5.0))
    scale = pyro.sample("scale", dist.HalfNormal(2.0))
    with pyro.plate("data", len(x)):
        pyro.sample("x", dist.Normal(mean, scale), obs=x)


for guide_class in (AutoNormal, AutoMultivariateNormal):
    pyro.set_rng_seed(0)
    pyro.clear_param_store()
    guide = guide_class(model)
    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO(num_particles=4))
    losses = [svi.step(data) for _ in range(120)]
    assert min(losses[-20:]) < losses[0], losses
    mean = guide.median()["mean"].item()
    assert mean > 1, mean  # parameters move: they are read through the module's own __getattr__
