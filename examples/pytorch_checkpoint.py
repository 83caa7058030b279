"""A checkpoint in PyTorch's format: read without running code from it, changed, and written again."""

from common import arguments

import rushlight as torch
from rushlight import nn
from rushlight.demo import digits


def make_model(classes=10):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, classes))


def train(model, parameters, images, labels, steps):
    optimizer = torch.optim.Adam(parameters, lr=1e-2)
    for _ in range(steps):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return (model(images).argmax(1) == labels).float().mean().item()


def main():
    given = arguments(__doc__, steps=100)
    torch.manual_seed(0)
    images, labels = digits.load().tensors
    path = given.out / "pretrained.pt"
    model = make_model()
    print(f"ten digits: {train(model, model.parameters(), images, labels, given.steps):.1%} right")
    torch.save({"model": model.state_dict(), "classes": 10}, path)

    # Reading: nothing but tensors and plain values comes out of the file (weights_only is the default).
    checkpoint = torch.load(path)
    tuned = make_model(checkpoint["classes"])
    tuned.load_state_dict(checkpoint["model"])

    # A new last layer for odd and even; the layers below stay as they are.
    tuned.requires_grad_(False)
    tuned[-1] = nn.Linear(32, 2)
    right = train(tuned, tuned[-1].parameters(), images, labels % 2, given.steps)
    print(f"odd or even, last layer only: {right:.1%} right")
    torch.save(tuned.state_dict(), given.out / "tuned.pt")  # which PyTorch reads as well


if __name__ == "__main__":
    main()
