"""A deep convolutional GAN (Radford, Metz and Chintala 2016) that draws digits."""

from common import arguments, draw_images

import rushlight as torch
from rushlight import nn
from rushlight.demo import digits

LATENT = 16


def make_generator(width=32):
    return nn.Sequential(
        nn.ConvTranspose2d(LATENT, 2 * width, 2, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.ConvTranspose2d(width, 1, 4, 2, 1),
        nn.Sigmoid(),
    )


def make_discriminator(width=32):
    return nn.Sequential(
        nn.Conv2d(1, width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(width, 2 * width, 4, 2, 1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(2 * width * 2 * 2, 1),
    )


def main():
    given = arguments(__doc__, steps=4000)
    torch.manual_seed(0)
    images = digits.load().tensors[0]
    generator, discriminator = make_generator(), make_discriminator()
    optimizers = [
        torch.optim.Adam(m.parameters(), lr=lr, betas=(0.5, 0.999))
        for m, lr in ((generator, 1e-3), (discriminator, 5e-4))
    ]
    loss_of = nn.BCEWithLogitsLoss()
    real, fake = torch.full((64, 1), 0.9), torch.zeros(64, 1)
    for step in range(1, given.steps + 1):
        drawn = generator(torch.randn(64, LATENT, 1, 1))
        shown = images[torch.randint(len(images), (64,))]
        judged = loss_of(discriminator(shown), real) + loss_of(discriminator(drawn.detach()), fake)
        optimizers[1].zero_grad()
        judged.backward()
        optimizers[1].step()

        fooled = loss_of(discriminator(drawn), torch.ones(64, 1))
        optimizers[0].zero_grad()
        fooled.backward()
        optimizers[0].step()
        if step % 500 == 0 or step == given.steps:
            print(f"step {step}: discriminator {judged.item():.3f}, generator {fooled.item():.3f}")
    generator.eval()
    with torch.no_grad():
        draw_images(generator(torch.randn(50, LATENT, 1, 1)), given.out / "dcgan.png")


if __name__ == "__main__":
    main()
