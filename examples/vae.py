"""A variational autoencoder of digits (Kingma and Welling 2014) with a plane as its latent space."""

from common import arguments, draw_images, figure

import rushlight as torch
from rushlight import nn
from rushlight.demo import digits
from rushlight.distributions import Independent, Normal, kl_divergence


class VAE(nn.Module):
    def __init__(self, latent=2, hidden=256):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, 2 * latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, 64), nn.Unflatten(1, (1, 8, 8))
        )

    def encode(self, images):
        mean, log_scale = self.encoder(images).chunk(2, 1)
        return Independent(Normal(mean, log_scale.exp()), 1)

    def loss(self, images):
        """The negative evidence lower bound, for each image."""
        code = self.encode(images)
        logits = self.decoder(code.rsample())
        missed = nn.functional.binary_cross_entropy_with_logits(logits, images, reduction="none").sum(
            (1, 2, 3)
        )
        prior = Independent(Normal(torch.zeros_like(code.mean), torch.ones_like(code.mean)), 1)
        return missed + kl_divergence(code, prior)


def main():
    given = arguments(__doc__, steps=1200)
    torch.manual_seed(0)
    images, labels = digits.load().tensors
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for step in range(1, given.steps + 1):
        loss = model.loss(images[torch.randint(len(images), (128,))]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0 or step == given.steps:
            print(f"step {step}: {loss.item():.2f} nats an image")

    with torch.no_grad():
        axis = Normal(0.0, 1.0).icdf(torch.linspace(0.05, 0.95, 15))
        plane = torch.cartesian_prod(axis, axis)
        draw_images(model.decoder(plane).sigmoid(), given.out / "vae_plane.png", columns=15)
        codes = model.encode(images).mean
    made, axes = figure(5, 4.5)
    shown = axes.scatter(*codes.T.tolist(), c=labels.tolist(), s=4, cmap="tab10")
    made.colorbar(shown, label="digit")
    made.savefig(given.out / "vae_codes.png")


if __name__ == "__main__":
    main()
