"""Programs as people serve them: what makes them, example inputs, which sizes change, and further sizes."""

import math
from dataclasses import dataclass
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import nn
from rushlight.export import Dim

PROGRAMS: dict = {}


@dataclass
class Program:
    make: Any
    inputs: Any  # a function of the sizes
    shapes: Any  # makes dynamic_shapes
    sizes: list  # the example's, then further ones


def program(inputs, shapes, *sizes):
    def keep(cls):
        PROGRAMS[cls.__name__] = Program(cls, inputs, shapes, list(sizes))
        return cls

    return keep


def _rows(*tail):
    return lambda b, t: (torch.randn(b, t, *tail),)


def _batch_and_length(least=None):
    return lambda: ({0: Dim("b"), 1: Dim("t", min=least)},)


def _images(channels):
    return lambda b, h, w: (torch.randn(b, channels, h, w),)


def _batch_and_sides(least=None):
    return lambda: ({0: Dim("b"), 2: Dim("h", min=least), 3: Dim("w", min=least)},)


_SEQUENCES = (2, 5), (1, 1), (1, 7), (4, 1), (3, 9)


# --- attention ----------------------------------------------------------------------------------------


@program(_rows(8), _batch_and_length(), *_SEQUENCES)
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        return self.layer(x, x, x, need_weights=False)[0]


@program(
    lambda b, t: (torch.randn(b, t, 8), torch.arange(t).expand(b, t) >= torch.arange(b)[:, None] % t + 1),
    lambda: ({0: Dim.AUTO, 1: Dim.AUTO},) * 2,
    *_SEQUENCES,
)
class MaskedAttention(Attention):
    def forward(self, x, mask):
        return self.layer(x, x, x, key_padding_mask=mask)


@program(_rows(8), _batch_and_length(), *_SEQUENCES)
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x, mask=nn.Transformer.generate_square_subsequent_mask(x.size(1)))


@program(_rows(8), _batch_and_length(), *_SEQUENCES)
class CausalAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return y.transpose(1, 2).reshape(b, t, c)


@program(_rows(8), _batch_and_length(), *_SEQUENCES)
class Einsum(nn.Module):
    def forward(self, x):
        return torch.einsum("bij,bjc->bic", torch.einsum("bic,bjc->bij", x, x).softmax(-1), x)


@program(_rows(8), lambda: ({0: Dim("b"), 1: Dim("t", max=64)},), (2, 5), (1, 1), (4, 1), (3, 64))
class TablesOfPositions(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(64, 8)
        self.register_buffer("mask", torch.ones(64, 64, dtype=torch.bool).tril())

    def forward(self, x):
        t = x.size(1)
        x = x + self.positions(torch.arange(t))
        return (x @ x.mT).masked_fill(~self.mask[:t, :t], -1e9).softmax(-1) @ x


@program(
    lambda t, u: (torch.randn(2, t, 8), torch.randn(2, u, 8)),
    lambda: ({1: Dim.DYNAMIC}, {1: Dim.DYNAMIC}),
    (5, 5), (1, 7), (7, 1), (3, 9),
)  # fmt: skip
class CrossAttention(nn.Module):
    def forward(self, x, y):
        return (x @ y.mT).softmax(-1) @ y


# --- sequences ----------------------------------------------------------------------------------------


@program(_rows(6), _batch_and_length(), *_SEQUENCES)
class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(6, 4, batch_first=True, bidirectional=True)

    def forward(self, x):
        return self.layer(x)[0][:, -1]


@program(_rows(6), _batch_and_length(), *_SEQUENCES)
class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(6, 4, batch_first=True)

    def forward(self, x):
        return self.layer(x, torch.zeros(1, x.size(0), 4))


@program(
    lambda b, t: (torch.arange(b * t).view(b, t) % 9, torch.arange(b) % t + 1),
    lambda: ({0: Dim("b"), 1: Dim("t")}, {0: Dim("b")}),
    *_SEQUENCES,
)
class PooledEmbeddings(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, ids, lengths):
        inside = (torch.arange(ids.shape[1])[None] < lengths[:, None])[..., None]
        x = self.table(ids)
        return x.masked_fill(~inside, 0).sum(1) / lengths[:, None], x.masked_fill(~inside, -math.inf).amax(1)


@program(
    lambda b, t: (torch.randn(b, 3, t), torch.arange(b) % t + 1),
    lambda: ({0: Dim("b"), 2: Dim("t", min=4)}, {0: Dim("b")}),
    (2, 16), (1, 7), (3, 31), (1, 4),
)  # fmt: skip
class StridedConvolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Conv1d(n, 4, 3, stride=2, padding=1) for n in (3, 4))

    def forward(self, x, lengths):
        y = self.b(F.relu(self.a(x)))
        inside = torch.arange(y.size(2))[None] < ((lengths + 3) // 4)[:, None]
        return y * inside[:, None], y.transpose(1, 2).reshape(-1, 4), torch.zeros(y.size(2), y.size(0))


# --- arithmetic of sizes ------------------------------------------------------------------------------


@program(_rows(), _batch_and_length(2), (2, 6), (1, 2), (1, 7), (4, 3), (3, 9))
class Halves(nn.Module):
    def forward(self, x):
        n = x.size(1)
        pairs = x[:, : n // 2 * 2].reshape(x.size(0), n // 2, 2)
        a, b = x.chunk(2, 1)
        return x[:, : n // 2] * 2, x[:, n // 2 :] + 1, pairs.sum(2), a.mean(1) + b.mean(1)


@program(_rows(), _batch_and_length(1), (2, 6), (1, 8), (4, 3), (3, 9), (1, 1))
class PaddedToMultiple(nn.Module):
    def forward(self, x):
        b, n = x.shape
        y = F.pad(x, (0, -n % 4))
        return y.view(b, -1, 4).sum(-1), y.view(b, (n + 3) // 4, 4).mean(-1)[:, :n]


@program(_rows(), _batch_and_length(1), (2, 8), (1, 2), (1, 7), (4, 3), (3, 9), (1, 1))
class PaddedWhereNeeded(nn.Module):
    def forward(self, x):
        b, n = x.shape
        pad = (4 - n % 4) % 4
        y = F.pad(x, (0, pad)) if pad > 0 else x
        y = (y.view(b, -1, 4) * 2).flatten(1)
        return y[:, :n] if pad > 0 else y


@program(_rows(), _batch_and_length(1), (2, 6), (1, 8), (4, 3), (3, 9), (1, 1), (1, 20))
class Extremes(nn.Module):
    def forward(self, x):
        n = x.size(1)
        return F.pad(x, (0, max(n, 8) - n)), x[:, : min(n, 5)].sum(1), x.topk(min(5, n), 1).values


@program(_images(1), _batch_and_sides(), (2, 4, 5), (1, 7, 3), (2, 6, 6), (1, 1, 9))
class PaddedToSquare(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        side = max(h, w)
        return F.pad(x, (0, side - w, 0, side - h))


@program(_rows(), _batch_and_length(1), (2, 6), (1, 8), (4, 3), (1, 1), (1, 20))
class Remainders(nn.Module):
    def forward(self, x):
        n = x.size(1)
        return x.roll(n % 3, 1), torch.fft.fftshift(x, 1), torch.full((2,), n % 4), x + torch.arange(n) % 4


@program(lambda n: (torch.randn(3, n),), lambda: ({1: Dim("n", min=3)},), (9,), (3,), (7,), (20,))
class Thirds(nn.Module):
    def forward(self, x):
        n = x.size(1)
        a, b, c = x.split([n // 3, n // 3, n - 2 * (n // 3)], 1)
        return a.sum(1) + b.sum(1), c


@program(lambda b, n: (torch.randn(b, n, n),), lambda: ({0: Dim("b"), 1: Dim("n"), 2: Dim("n")},),
         (2, 6), (1, 1), (4, 2))  # fmt: skip
class Squares(nn.Module):
    def forward(self, x):
        n = x.size(1)
        return x.view(x.size(0), n * n) + 1, torch.arange(n**2), torch.arange(n * (n + 1) // 2)


# --- images -------------------------------------------------------------------------------------------


@program(_images(1), _batch_and_sides(2), (2, 15, 17), (1, 16, 16), (1, 2, 3))
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in ((1, 4), (4, 8)))
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 1, 1)

    def forward(self, x):
        a = F.relu(self.down[0](x))
        u = self.up(F.relu(self.down[1](F.max_pool2d(a, 2))))
        dy, dx = a.size(2) - u.size(2), a.size(3) - u.size(3)
        u = F.pad(u, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.out(torch.cat([a, u], 1)), F.interpolate(u, size=x.shape[2:])


@program(lambda b, h, w: (torch.randn(b, h, w, 3),), lambda: ({0: Dim("b"), 1: Dim("h"), 2: Dim("w")},),
         (2, 7, 9), (1, 8, 8), (1, 1, 1), (3, 12, 5))  # fmt: skip
class Windows(nn.Module):
    def forward(self, x):
        (b, h, w, c), m = x.shape, 4
        x = F.pad(x, (0, 0, 0, (m - w % m) % m, 0, (m - h % m) % m))
        tall, wide = x.shape[1:3]
        y = x.view(b, tall // m, m, wide // m, m, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, m * m, c)
        y = (y - y.mean(1, keepdim=True)).view(b, tall // m, wide // m, m, m, c)
        return y.permute(0, 1, 3, 2, 4, 5).reshape(b, tall, wide, c)[:, :h, :w].contiguous()


@program(_images(3), _batch_and_sides(4), (2, 16, 20), (1, 4, 4), (1, 33, 18))
class Patches(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, stride=4)
        self.positions, self.first = nn.Parameter(torch.randn(1, 8, 4, 4)), nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        y = self.patches(x)
        y = y + F.interpolate(self.positions, size=y.shape[-2:], mode="bicubic")
        return torch.cat([self.first.expand(x.size(0), -1, -1), y.flatten(2).transpose(1, 2)], 1)


@program(lambda b: (torch.randn(b, 1, 8, 8),), lambda: ({0: Dim("b", min=1)},), (4,), (1,), (9,))
class Classifier(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
        )


@program(
    lambda b: (torch.randn(b, 4), torch.randn(b, 4)), lambda: ({0: Dim("b", min=1)},) * 2, (2,), (1,), (30,)
)
class Distances(nn.Module):
    def forward(self, x, y):
        return F.cosine_similarity(x, y), torch.cdist(x, y)
