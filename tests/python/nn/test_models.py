"""Small relatives of well-known models train to PyTorch's losses from equal seeds."""

import pytest

import rushlight

torch = pytest.importorskip("torch", reason="PyTorch is the oracle of these losses")


def mlp(t):
    nn = t.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
    return model, (t.randn(8, 16),), t.randint(0, 10, (8,))


def convolutional(t):
    nn = t.nn
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2, padding=2),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d((2, 2)),
        nn.Flatten(),
        nn.Dropout(),
        nn.Linear(64, 10),
    )
    return model, (t.randn(4, 3, 33, 33),), t.randint(0, 10, (4,))


def residual(t):
    nn = t.nn

    class Block(nn.Module):
        def __init__(self, channels, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, 2 * channels, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(2 * channels)
            self.conv2 = nn.Conv2d(2 * channels, 2 * channels, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(2 * channels)
            self.down = nn.Conv2d(channels, 2 * channels, 1, stride, bias=False)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            y = self.relu(self.bn1(self.conv1(x)))
            return self.relu(self.bn2(self.conv2(y)) + self.down(x))

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        Block(8, 2),
        Block(16, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    return model, (t.randn(8, 3, 32, 32),), t.randint(0, 10, (8,))


def recurrent(t):
    nn = t.nn

    class CharLSTM(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.cell, self.out = nn.Embedding(20, 8), nn.LSTMCell(8, 16), nn.Linear(16, 20)

        def forward(self, x):
            h = c = t.zeros(x.shape[0], 16)
            outputs = []
            for step in range(x.shape[1]):
                h, c = self.cell(self.embed(x[:, step]), (h, c))
                outputs.append(self.out(h))
            return t.stack(outputs, 1).reshape(-1, 20)

    return CharLSTM(), (t.randint(0, 20, (4, 12)),), t.randint(0, 20, (48,))


def factors(t):
    nn = t.nn

    class Factors(nn.Module):
        def __init__(self):
            super().__init__()
            self.users, self.items = nn.Embedding(50, 8), nn.Embedding(30, 8)
            self.mlp = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 10))

        def forward(self, u, i):
            return self.mlp(t.cat([self.users(u) * self.items(i), self.users(u)], 1))

    return Factors(), (t.randint(0, 50, (16,)), t.randint(0, 30, (16,))), t.randint(0, 10, (16,))


def transformer(t):
    nn, functional = t.nn, t.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(16), nn.LayerNorm(16)
            self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = (
                h.view(batch, length, 2, 8).transpose(1, 2) for h in self.qkv(self.norm1(x)).split(width, 2)
            )
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(a.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.positions = nn.Embedding(40, 16), nn.Embedding(12, 16)
            self.blocks = nn.ModuleList([Block() for _ in range(2)])
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 40, bias=False)

        def forward(self, ids):
            x = self.tokens(ids) + self.positions(t.arange(ids.shape[1]))
            for block in self.blocks:
                x = block(x)
            return self.head(self.norm(x)).view(-1, 40)

    return GPT(), (t.randint(0, 40, (2, 12)),), t.randint(0, 40, (24,))


def train(t, build, optimizer, steps=20):
    t.manual_seed(0)
    model, inputs, target = build(t)
    step = optimizer(t, model.parameters())
    losses = []
    for _ in range(steps):
        step.zero_grad()
        loss = t.nn.functional.cross_entropy(model(*inputs), target)
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses


OPTIMIZERS = {
    "sgd": lambda t, p: t.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "adam": lambda t, p: t.optim.Adam(p, lr=1e-3),
    "adamw": lambda t, p: t.optim.AdamW(p, lr=1e-3),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("build", [mlp, convolutional, residual, recurrent, factors, transformer])
def test_losses_equal_the_oracles(build, optimizer):
    ours = train(rushlight, build, OPTIMIZERS[optimizer])
    theirs = train(torch, build, OPTIMIZERS[optimizer])
    # Sums in another order move some value across a kink of ReLU in the end: only the first steps are tight.
    assert ours[:4] == pytest.approx(theirs[:4], rel=2e-4, abs=2e-5)
    assert ours == pytest.approx(theirs, rel=2e-2, abs=2e-5)
    assert ours[-1] < ours[0]


@pytest.fixture
def double_precision():
    for library in (rushlight, torch):
        library.set_default_dtype(library.float64)
    yield
    for library in (rushlight, torch):
        library.set_default_dtype(library.float32)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("build", [mlp, convolutional, residual, recurrent, factors, transformer])
def test_losses_equal_the_oracles_in_double_precision(build, optimizer, double_precision):
    ours = train(rushlight, build, OPTIMIZERS[optimizer])
    assert ours == pytest.approx(train(torch, build, OPTIMIZERS[optimizer]), rel=1e-9)
