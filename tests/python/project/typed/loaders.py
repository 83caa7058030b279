"""Datasets of a type, samplers, splits, and schedules of learning rates."""

from collections.abc import Iterator

import rushlight as torch
from rushlight import nn
from rushlight.optim import SGD, Adam, Optimizer
from rushlight.optim.lr_scheduler import CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR
from rushlight.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Sampler,
    Subset,
    random_split,
)


class Squares(Dataset[tuple[torch.Tensor, int]]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([float(index)]), index * index

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        yield from range(5)


class Even(Sampler[int]):
    def __init__(self, source: Squares) -> None:
        self.count = len(source)

    def __iter__(self) -> Iterator[int]:
        return iter(range(0, self.count, 2))

    def __len__(self) -> int:
        return (self.count + 1) // 2


squares = Squares(10)
value, label = squares[3]
loss_of_one = value * label
parts: list[Subset[tuple[torch.Tensor, int]]] = random_split(squares, [7, 3])
inside, outside = parts
first, square = inside[0]
batches = DataLoader(squares, batch_size=4, sampler=Even(squares), num_workers=0, drop_last=False)
grouped = BatchSampler(Even(squares), batch_size=2, drop_last=True)
indices: list[list[int]] = list(grouped)
assert loss_of_one.item() == 27 and len(outside) == 3 and len(batches) == 2 and indices == [[0, 2], [4, 6]]
assert [int(x) for x in DataLoader(Stream(), batch_size=None)] == [0, 1, 2, 3, 4]


def schedule(optimizer: Optimizer, epochs: int) -> LRScheduler:
    warmup = LinearLR(optimizer, start_factor=0.1, total_iters=2)
    rest = CosineAnnealingLR(optimizer, T_max=epochs - 2, eta_min=1e-5)
    return SequentialLR(optimizer, [warmup, rest], milestones=[2])


model = nn.Linear(1, 1)
optimizer = Adam([{"params": model.weight}, {"params": [model.bias], "lr": 0.1}], lr=1e-2, betas=(0.9, 0.99))
plain = SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
rates = schedule(optimizer, 6)
for _ in range(3):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y.float()[:, None])
        loss.backward()
        optimizer.step()
    rates.step()
groups: list[dict[str, object]] = [{**group} for group in optimizer.param_groups]
state = rates.state_dict()
rates.load_state_dict(state)
assert len(groups) == 2 and len(rates.get_last_lr()) == 2
