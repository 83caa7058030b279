"""An image classifier: a small convolutional network on handwritten digits."""

from common import arguments, figure

import rushlight as torch
from rushlight import nn
from rushlight.demo import digits
from rushlight.utils.data import DataLoader


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )


def train(model, loader, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=steps + 1)
    step = 0
    while step < steps:
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            step += 1
            if step % 50 == 0 or step == steps:
                print(f"step {step}: loss {loss.item():.4f}")
            if step == steps:
                break


def main():
    given = arguments(__doc__, steps=300)
    torch.manual_seed(0)
    training, held_out = digits.split()
    model = make_model()
    train(model, DataLoader(training, batch_size=64, shuffle=True), given.steps)

    model.eval()
    images, labels = next(iter(DataLoader(held_out, batch_size=len(held_out))))
    with torch.no_grad():
        predicted = model(images).argmax(1)
    print(f"held-out accuracy {(predicted == labels).float().mean():.2%}")
    confusion = torch.bincount(labels * 10 + predicted, minlength=100).view(10, 10)
    made, axes = figure(5, 4.5)
    made.colorbar(axes.imshow(confusion.float().log1p().tolist(), cmap="Blues"), label="log(1 + images)")
    axes.set(xlabel="predicted", ylabel="digit", xticks=range(10), yticks=range(10))
    made.savefig(given.out / "confusion.png")
    torch.save(model.state_dict(), given.out / "digits.pt")


if __name__ == "__main__":
    main()
