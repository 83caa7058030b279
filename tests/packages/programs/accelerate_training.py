"""accelerate: losses from a seed, accumulation, states on disk, empty and dispatched models."""

import os

import torch
from accelerate import (
    Accelerator,
    cpu_offload,
    infer_auto_device_map,
    init_empty_weights,
    load_checkpoint_and_dispatch,
)
from accelerate.utils import DistributedType, set_seed


def network():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))


def train(**options):
    accelerator = Accelerator(cpu=True, **options)
    set_seed(5)
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    x = torch.randn(32, 4)
    examples = torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(examples, 8, shuffle=True)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for _ in range(2):
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                with accelerator.autocast():
                    loss = torch.nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(accelerator.gather(loss.detach()).item())
    return accelerator, model, losses


def check(losses, recorded, tolerance=1e-3):
    for one, other in zip(losses, recorded, strict=True):
        assert abs(one - other) < tolerance * other, (losses, recorded)


# Recorded on PyTorch 2.13.
accelerator, model, losses = train()
check(losses, [5.8384, 6.8989, 4.0899, 1.8282, 7.6187, 2.602, 3.4482, 2.1845])
assert accelerator.distributed_type == DistributedType.NO and accelerator.num_processes == 1

accelerator.save_state("state")
assert {"model.safetensors", "optimizer.bin", "random_states_0.pkl"} <= set(os.listdir("state"))
before, numbers = [p.detach().clone() for p in model.parameters()], torch.rand(3)
with torch.no_grad():
    model[0].weight.zero_()
accelerator.load_state("state")
assert all(torch.equal(p, q) for p, q in zip(model.parameters(), before))
assert torch.equal(torch.rand(3), numbers)

_, _, losses = train(gradient_accumulation_steps=2)
check(losses, [5.8384, 7.3775, 4.0911, 1.9042, 6.5988, 2.4071, 3.2556, 1.9874])

accelerator.save_model(model, "model")
with init_empty_weights():
    empty = network()
assert empty[0].weight.is_meta
filled = load_checkpoint_and_dispatch(empty, "model/model.safetensors", device_map={"": "cpu"})
x = torch.ones(1, 4)
expected = accelerator.unwrap_model(model)(x)
assert torch.equal(filled(x), expected)
assert torch.equal(cpu_offload(filled, execution_device="cpu")(x), expected)
assert infer_auto_device_map(torch.nn.Linear(3, 3)) == {"": "cpu"}
