"""Distributions, generators, initialization."""

from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import distributions as D
from rushlight import nn

if TYPE_CHECKING:
    from typing_extensions import assert_type


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, generator=generator)
    normal = D.Normal(torch.zeros(3), torch.ones(3))
    sample = normal.rsample((5,))
    density = normal.log_prob(sample).sum(-1)
    divergence = D.kl_divergence(normal, D.Normal(0.0, 2.0))
    choice = D.Categorical(logits=torch.zeros(4)).sample()
    mixture = D.MixtureSameFamily(D.Categorical(torch.ones(3)), normal)
    assert density.shape == (5,) and divergence.shape == (3,) and 0 <= choice.item() < 4
    assert mixture.sample().shape == () and normal.mean.shape == x.shape
    layer = nn.Linear(2, 2)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    torch.manual_seed(1)
    if TYPE_CHECKING:
        assert_type(sample, torch.Tensor)
        assert_type(x, torch.Tensor)


if __name__ == "__main__":
    main()
