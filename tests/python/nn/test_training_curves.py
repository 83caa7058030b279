"""Whole training runs from the same seeds: every loss is PyTorch's."""

import math

import pytest

import rushlight

torch = pytest.importorskip("torch")

STEPS = 12


def mlp(lib):
    nn = lib.nn
    model = nn.Sequential(
        nn.Linear(10, 32), nn.ReLU(), nn.BatchNorm1d(32), nn.Dropout(0.2), nn.Linear(32, 4), nn.LogSoftmax(1)
    )
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-3, nesterov=True)
    x, y = lib.randn(64, 10), lib.randint(0, 4, (64,))

    def loss():
        rows = lib.randperm(64)[:32]
        return nn.functional.nll_loss(model(x[rows]), y[rows])

    return optimizer, loss, None


def cnn(lib):
    nn = lib.nn

    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

        def forward(self, x):
            return nn.functional.relu(x + self.norm(self.conv(x)))

    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1),
        Block(8),
        nn.MaxPool2d(2),
        Block(8),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 5),
    )
    optimizer = lib.optim.AdamW(model.parameters(), lr=3e-3)
    schedule = lib.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=STEPS)
    x, y = lib.randn(16, 3, 16, 16), lib.randint(0, 5, (16,))

    def loss():
        return nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)

    return optimizer, loss, schedule


def lstm(lib):
    nn = lib.nn

    class Tagger(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(20, 8, padding_idx=0)
            self.rnn = nn.LSTM(8, 12, num_layers=2, batch_first=True, bidirectional=True)
            self.out = nn.Linear(24, 6)

        def forward(self, tokens, lengths):
            rnn = nn.utils.rnn
            packed = rnn.pack_padded_sequence(self.embed(tokens), lengths, batch_first=True)
            return self.out(rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0])

    model = Tagger()
    optimizer = lib.optim.Adam(model.parameters(), lr=1e-2, amsgrad=True)
    tokens, tags = lib.randint(1, 20, (4, 7)), lib.randint(0, 6, (4, 7))
    lengths = lib.tensor([7, 5, 4, 2])

    def loss():
        logits = model(tokens, lengths)
        keep = lib.arange(7) < lengths.unsqueeze(1)
        return nn.functional.cross_entropy(logits[keep], tags[keep])

    def after():
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)

    loss.before_step = after
    return optimizer, loss, lib.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


def gpt(lib):
    nn = lib.nn
    functional = nn.functional

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (
                part.view(b, t, self.heads, c // self.heads).transpose(1, 2)
                for part in self.qkv(self.norm1(x)).split(c, dim=2)
            )
            mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.proj(mixed.transpose(1, 2).reshape(b, t, c))
            return x + self.mlp(self.norm2(x))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.token, self.place = nn.Embedding(30, 16), nn.Embedding(10, 16)
            self.layers = nn.ModuleList(Layer(16, 2) for _ in range(2))
            self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 30, bias=False)
            self.head.weight = self.token.weight

        def forward(self, tokens):
            x = self.token(tokens) + self.place(lib.arange(tokens.size(1)))
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    model = Model()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer = lib.optim.AdamW(groups, lr=1e-2, betas=(0.9, 0.95))
    schedule = lib.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    data = lib.randint(0, 30, (8, 11))

    def loss():
        logits = model(data[:, :-1])
        return functional.cross_entropy(logits.reshape(-1, 30), data[:, 1:].reshape(-1))

    return optimizer, loss, schedule


def vae(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 6))
            self.decoder = nn.Sequential(nn.Linear(3, 16), nn.SiLU(), nn.Linear(16, 12))

        def forward(self, x):
            mean, log_variance = self.encoder(x).chunk(2, dim=1)
            code = lib.distributions.Normal(mean, (0.5 * log_variance).exp())
            return self.decoder(code.rsample()), code

    model = Model()
    optimizer = lib.optim.RMSprop(model.parameters(), lr=3e-3, momentum=0.5, centered=True)
    x = lib.rand(32, 12)

    def loss():
        logits, code = model(x)
        prior = lib.distributions.Normal(0.0, 1.0)
        divergence = lib.distributions.kl_divergence(code, prior).sum()
        return nn.functional.binary_cross_entropy_with_logits(logits, x, reduction="sum") + divergence

    return optimizer, loss, lib.optim.lr_scheduler.StepLR(optimizer, 5)


def curve(lib, build):
    lib.manual_seed(1234)
    optimizer, loss_of, schedule = build(lib)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        getattr(loss_of, "before_step", lambda: None)()
        optimizer.step()
        if schedule is not None:
            schedule.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("build", [mlp, cnn, lstm, gpt, vae])
def test_losses_are_pytorchs(build):
    ours, theirs = curve(rushlight, build), curve(torch, build)
    assert theirs[-1] < theirs[0] and all(map(math.isfinite, theirs))
    assert ours == pytest.approx(theirs, rel=2e-4)
    assert ours[0] == pytest.approx(theirs[0], rel=2e-6)
