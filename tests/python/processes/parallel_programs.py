"""What the ranks of test_dtensor.py and test_fsdp.py run: models that are spread in several ways."""

import rushlight as torch
from rushlight import distributed as dist
from rushlight import nn
from rushlight.distributed.tensor import DTensor, Replicate, Shard
from rushlight.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

F = nn.functional
VOCABULARY = 12


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 3 * width + 2), nn.Linear(3 * width + 2, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=10):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, x):
        x = self.embedding(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def net():
    torch.manual_seed(0)
    return Net()


def batches(steps=3, rows=8):
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(VOCABULARY, (rows, 6), generator=generator) for _ in range(steps)]


def loss_of(model, x):
    return F.cross_entropy(model(x).flatten(0, 1).float(), x.flatten())


def train(model, xs, optimizer, clip=None):
    losses = []
    for x in xs:
        optimizer.zero_grad()
        loss = loss_of(model, x)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses


def whole(state):
    return {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in state.items()}


def assert_same(mine, theirs, tolerance=1e-5):
    assert list(mine) == list(theirs), (list(mine), list(theirs))
    for key, value in mine.items():
        torch.testing.assert_close(
            value, theirs[key], rtol=tolerance, atol=tolerance, msg=lambda m, key=key: f"{key}: {m}"
        )


def join(rank, size, file):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(file, size), rank=rank, world_size=size)


def styles(rank, size, file):
    join(rank, size, file)
    mesh = dist.init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    reference = net()
    expected = train(reference, batches(), torch.optim.AdamW(reference.parameters(), lr=0.01))
    plan = {
        "embedding": RowwiseParallel(input_layouts=Replicate()),
        "blocks.*.up": ColwiseParallel(),
        "blocks.*.down": RowwiseParallel(),
        "head": ColwiseParallel(output_layouts=Replicate()),
    }
    model = parallelize_module(net(), mesh, plan)
    assert model.head.weight.placements == model.embedding.weight.placements == (Shard(0),)
    assert model.blocks[0].up.weight.to_local().shape[0] == 32 // size
    found = train(model, batches(), torch.optim.AdamW(model.parameters(), lr=0.01))
    torch.testing.assert_close(torch.tensor(found), torch.tensor(expected))
    assert_same(whole(model.state_dict()), reference.state_dict())
    _sequences(mesh)
    _prepared(mesh, rank)
    dist.destroy_process_group()


def _sequences(mesh):
    """Activations cut along the sequence between the blocks, and logits that are never gathered."""
    model = parallelize_module(
        net(),
        mesh,
        {
            "embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
            "blocks.*.norm": SequenceParallel(),
            "blocks.*": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Shard(1)),
            "blocks.*.up": ColwiseParallel(input_layouts=Shard(1)),
            "blocks.*.down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
            "head": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
        },
    )
    x = batches()[0]
    reference = net()
    expected = loss_of(reference, x)
    expected.backward()
    with loss_parallel():
        logits = model(x)
        assert logits.placements == (Shard(2),)
        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten())
        loss.backward()
    torch.testing.assert_close(loss.full_tensor(), expected)
    for p, q in zip(model.parameters(), reference.parameters()):
        torch.testing.assert_close(p.grad.full_tensor(), q.grad, rtol=1e-4, atol=1e-6)


def _prepared(mesh, rank):
    class Pair(nn.Module):
        def forward(self, a, b, c=None):
            return a * 2, b, c

    style = PrepareModuleInput(
        input_layouts=(Shard(0), None),
        desired_input_layouts=(Replicate(), None),
        input_kwarg_layouts={"c": Replicate()},
        desired_input_kwarg_layouts={"c": Shard(0)},
        use_local_output=True,
    )
    pair = parallelize_module(Pair(), mesh, style)
    size = mesh.size()
    a, b, c = pair(torch.full((1, 2), float(rank)), rank, c=torch.arange(size * 2))
    assert a.tolist() == [[2.0 * r] * 2 for r in range(size)] and b == rank
    assert c.tolist() == [2 * rank, 2 * rank + 1]
    gathered = parallelize_module(
        nn.Identity(), mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Replicate())
    )
    assert gathered(torch.ones(1)).shape == (size,)
