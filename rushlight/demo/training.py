"""The demo's network and its training loop: ordinary PyTorch code."""

import math
import sys
import time
from dataclasses import dataclass, field

import rushlight as torch
from rushlight import nn
from rushlight.utils.data import DataLoader


class DigitNet(nn.Module):
    """Two convolutions at full size, two at half size, one hidden layer."""

    def __init__(self, width=32, hidden=128):
        super().__init__()
        self.features = nn.Sequential(
            *self.block(1, width), *self.block(width, width), nn.MaxPool2d(2), *self.block(width, 2 * width)
        )
        self.classifier = nn.Sequential(
            nn.Flatten(),
            nn.Linear(2 * width * 4 * 4, hidden),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(hidden, 10),
        )

    @staticmethod
    def block(channels, width):
        return nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()

    def forward(self, images):
        return self.classifier(self.features(images))


@dataclass
class History:
    """One entry an epoch."""

    train_loss: list = field(default_factory=list)
    held_out_loss: list = field(default_factory=list)
    train_accuracy: list = field(default_factory=list)
    held_out_accuracy: list = field(default_factory=list)


def predict(model, dataset, batch_size=512):
    """Logits and labels of a whole dataset, in its order."""
    model.eval()
    with torch.no_grad():
        batches = [(model(images), labels) for images, labels in DataLoader(dataset, batch_size=batch_size)]
    return torch.cat([logits for logits, _ in batches]), torch.cat([labels for _, labels in batches])


def accuracy(logits, labels):
    return (logits.argmax(1) == labels).float().mean().item()


class Progress:
    """A bar on a terminal, one line an epoch elsewhere."""

    width = 30

    def __init__(self, epochs, batches):
        self.epochs, self.batches = epochs, batches
        self.live = sys.stdout.isatty()
        self.start = time.perf_counter()
        self.note = ""

    def step(self, epoch, batch):
        if not self.live:
            return
        done = (epoch * self.batches + batch) / (self.epochs * self.batches)
        bar = "#" * round(done * self.width)
        print(f"\r[{bar:.<{self.width}}] {done:4.0%}  {self.note}", end="", flush=True)

    def epoch(self, epoch, loss, held_out):
        seconds = time.perf_counter() - self.start
        self.note = (
            f"epoch {epoch + 1}/{self.epochs}  loss {loss:.4f}  held-out {held_out:.2%}  {seconds:.1f} s"
        )
        if self.live:
            self.step(epoch, self.batches)
        else:
            print(self.note, flush=True)

    def close(self):
        if self.live:
            print()


def train(model, train_set, held_out_set, *, epochs, batch_size, learning_rate):
    """Train with AdamW under a cosine learning rate; returns the history."""
    loader = DataLoader(train_set, batch_size=batch_size, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.01)
    criterion = nn.CrossEntropyLoss()
    history, progress = History(), Progress(epochs, len(loader))
    for epoch in range(epochs):
        model.train()
        total_loss, correct = 0.0, 0
        for batch, (images, labels) in enumerate(loader):
            done = (epoch + batch / len(loader)) / epochs
            for group in optimizer.param_groups:
                group["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * done))
            logits = model(images)
            loss = criterion(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total_loss += loss.item() * len(labels)
            correct += (logits.argmax(1) == labels).sum().item()
            progress.step(epoch, batch + 1)
        logits, labels = predict(model, held_out_set)
        history.train_loss.append(total_loss / len(train_set))
        history.train_accuracy.append(correct / len(train_set))
        history.held_out_loss.append(criterion(logits, labels).item())
        history.held_out_accuracy.append(accuracy(logits, labels))
        progress.epoch(epoch, history.train_loss[-1], history.held_out_accuracy[-1])
    progress.close()
    return history
