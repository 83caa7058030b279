"""Programs of PyTorch whose archives C++ runs: text, numbers, containers, objects, layers of all kinds."""

# ruff: noqa: UP030, UP031, UP032

import enum
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


class Everything(nn.Module):
    """What tests/cpp/tutorials/script_values.cpp asks of a module."""

    names: list[str]

    def __init__(self):
        super().__init__()
        self.scale, self.names, self.linear = 1.5, ["a", "b"], nn.Linear(3, 2)
        self.register_buffer("offset", torch.ones(2))

    @torch.jit.export
    def scaled(self, x, by: float = 1.0):
        return x * self.scale * by

    @torch.jit.export
    def refuses(self, x):
        if x.numel() > 0:
            raise ValueError("not today")
        return x

    def forward(self, inputs: dict[str, torch.Tensor], counts: list[int]):
        return {"y": self.linear(inputs["x"]) + self.offset}, sum(counts)


class Texts(nn.Module):
    def forward(self, n: int, x: float, s: str):
        d = {"b": 1, "a": 2}
        d["z"] = n
        del d["a"]
        l = [3, 1, 2]
        l.sort()
        l.reverse()
        l += [n]
        l[0] = 9
        l.insert(1, 7)
        p = l.pop()
        k = [v for v in d.values()]
        ws = s.split(",")
        t = "-".join(ws).upper().replace("B", "xx")
        m = max(n, 2) + min(n, 2) + sum(l) + abs(-n)
        q = [
            str(x),
            "{} {} {}".format(x, n, [1.5]),
            "%d %s" % (n, s),
            str(l),
            str(True),
            str((1, "y")),
            hex(255),
            "abc"[1],
            "abc"[::-1],
            "abc"[1:],
            s.strip(),
            s.title(),
            "7".zfill(3),
            "a b".split()[1],
        ]
        nums = [n / 2, float(n // 2), float(-n % 3), n**2, float(n), x % 0.7, round(x), x // 1.0]
        ints = [
            int(x),
            n << 2,
            n >> 1,
            n & 3,
            n | 8,
            n ^ 1,
            len(s),
            ord("a"),
            s.find("b"),
            s.count(","),
            l.index(9),
            l.count(9),
        ]
        b = [
            n > 2 and x > 1.0,
            n == 3 or False,
            not b_(n),
            "a" in s,
            "q" not in d,
            3 in l,
            s.startswith("a"),
            s.endswith("q"),
            "12".isdigit(),
            n is None,
        ]
        z = list(d.items())
        e = sorted(["c", "a", "b"])
        for i, c in enumerate("xy"):
            e.append(c + str(i))
        for u, v in zip([1, 2], ["p", "q"]):
            e.append(v + str(u))
        r = [i for i in range(10, 0, -3)]
        g = d.get("nope", 5), d.setdefault("new", 6), d.pop("b")
        return q, nums, ints, b, z, e, r, g, d, l, p, k, t, m, int("12") + int(float("2.5"))


def b_(n: int) -> bool:
    return n % 2 == 0


class Indexing(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[0] = 1.0
        y[:, 1] += 2
        y[..., 0] = y[..., 1]
        y[y > 1.5] = 0
        v = x[..., 0, None]
        m = x[x > 0]
        i = torch.tensor([0, 2])
        z = x[i, 1:]
        w = x[:, i]
        with torch.no_grad():
            n = x * 2
        return (
            y,
            v,
            m,
            z,
            w,
            n,
            x[-1],
            x[1:3, ::2],
            x.shape,
            x.size(0),
            x.dtype == torch.float32,
            x.device.type,
            x.t()[0],
            x.T,
        )


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.n = start
        self.seen: list[str] = []

    def add(self, k: int) -> int:
        self.n += k
        self.seen.append(str(k))
        return self.n


class Objects(nn.Module):
    table: dict[str, list[int]]
    names: list[str]
    nothing: int | None
    pairs: list[tuple[int, str]]

    def __init__(self):
        super().__init__()
        self.color = Color.BLUE
        self.table: dict[str, list[int]] = {"a": [1, 2], "b": []}
        self.pairs: list[tuple[int, str]] = [(1, "x")]
        self.nothing: int | None = None
        self.register_buffer("b", torch.arange(3.0))
        self.register_parameter("p", None)
        self.shape = (2, 3)
        self.flags = [True, False]
        self.rates = [0.5]
        self.names: list[str] = []

    def pick(self, c: Color):
        if c == Color.RED:
            return "red", c.value
        return c.name, c.value

    def forward(self, x):
        c = Counter(3)
        c.add(4)
        c.n += 1
        p = Pair(x, 5)
        f = torch.jit.fork(torch.relu, x)
        a, n = p
        g = torch.jit.wait(f)
        r = self.pick(self.color)
        q = self.pick(Color.RED)
        if self.nothing is None:
            t = 1
        else:
            t = self.nothing
        return (
            p.first + a,
            p.second + n,
            c.n,
            c.seen,
            g,
            r,
            q,
            self.table["a"],
            self.pairs[0][1],
            t,
            self.b * 2,
            self.shape[1],
            isinstance(x, torch.Tensor),
            self.flags,
            self.rates,
        )


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2 = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.gn, self.inorm = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True)
        self.out = nn.Conv2d(8, 1, 1)
        self.drop = nn.Dropout2d(0.5)

    def forward(self, x):
        a = F.leaky_relu(self.gn(self.d1(x)), 0.1)
        b = F.elu(self.d2(a))
        u = self.drop(self.inorm(self.up(b)))
        y = self.out(torch.cat([a, u], 1))
        y = F.interpolate(y, scale_factor=2.0, mode="bilinear", align_corners=False)
        y = F.interpolate(y, size=[8, 8], mode="nearest")
        y = F.pad(y, [1, 1, 2, 2], mode="reflect")
        return (
            torch.sigmoid(y),
            F.avg_pool2d(y, 2),
            F.adaptive_max_pool2d(y, 2),
            F.max_pool2d(y, 3, 2, 1),
            F.pixel_shuffle(b, 2),
            F.unfold(y, [2, 2]),
            F.grid_sample(y, torch.zeros(1, 2, 2, 2), align_corners=True),
        )


class MobileBlock(nn.Module):
    def __init__(self, expand=4):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(8, 32, 1, bias=False),
            nn.BatchNorm2d(32),
            nn.Hardswish(),
            nn.Conv2d(32, 32, 3, 1, 1, groups=32, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU6(),
        )
        self.se = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(32, 8, 1), nn.SiLU(), nn.Conv2d(8, 32, 1), nn.Hardsigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(32, 8, 1, bias=False), nn.BatchNorm2d(8))

    def forward(self, x):
        y = self.layers(x)
        return x + self.project(y * self.se(y))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(17, 16), nn.Parameter(torch.randn(8, 16))
        self.ln, self.qkv, self.proj = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))
        self.head = nn.Linear(16, 17, bias=False)
        self.rms = nn.RMSNorm(16)

    def forward(self, ids):
        b, t = ids.shape
        x = self.tok(ids) + self.pos[:t]
        q, k, v = self.qkv(self.ln(x)).chunk(3, dim=-1)
        q, k, v = [part.view(b, t, 2, 8).transpose(1, 2) for part in (q, k, v)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(b, t, 16))
        x = x + self.mlp(self.rms(x))
        logits = self.head(x)
        return (
            logits,
            F.cross_entropy(logits.view(-1, 17), ids.view(-1)),
            logits.argmax(-1),
            logits.topk(3)[1],
        )


class Generate(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.emb, self.out = nn.LSTMCell(6, 6), nn.Embedding(9, 6), nn.Linear(6, 9)
        self.gru = nn.GRUCell(6, 6)
        self.rnn = nn.RNN(6, 4, batch_first=True)

    def forward(self, start: int, steps: int):
        h = torch.zeros(1, 6)
        c = torch.zeros(1, 6)
        ids: list[int] = [start]
        for _ in range(steps):
            h, c = self.cell(self.emb(torch.tensor([ids[-1]])), (h, c))
            h = self.gru(h, h)
            n = int(self.out(h).argmax(1).item())
            if n == 4:
                break
            if len(ids) > 50:
                continue
            ids.append(n)
        o, s = self.rnn(h.unsqueeze(0))
        return ids, {"h": h, "c": c}, (o, s), torch.tensor(ids).float().mean()


class MHA(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x):
        y, w = self.a(x, x, x)
        assert w is not None
        return y, w


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Transformer(8, 2, 1, 1, 16, batch_first=True, dropout=0.0)

    def forward(self, a, b):
        m = nn.Transformer.generate_square_subsequent_mask(b.size(1))
        return self.t(a, b, tgt_mask=m)


class Signal(nn.Module):
    def forward(self, x):
        f = torch.fft.rfft(x)
        s = torch.stft(x, 8, hop_length=4, window=torch.hann_window(8), return_complex=True)
        return (
            f.abs(),
            torch.fft.irfft(f, n=x.shape[-1]),
            torch.view_as_real(s),
            f.real,
            torch.linalg.norm(x),
            torch.linalg.solve(torch.eye(3) * 2, torch.ones(3, 1)),
            torch.einsum("bi,bj->ij", x, x),
            torch.cumsum(x, 1),
            torch.special.erf(x),
            x.std(),
            x.var(dim=1),
            x.norm(),
            torch.where(x > 0, x, -x),
            x.clamp(min=0.1),
            torch.clamp(x, -1, 1),
            torch.sort(x)[0],
            torch.unique(x.round()),
        )


class Detect(nn.Module):
    def forward(self, boxes, scores):
        keep = torch.jit.annotate(list[int], [])
        order = scores.argsort(descending=True)
        idx = [int(i) for i in order]
        while len(idx) > 0:
            i = idx[0]
            keep.append(i)
            rest: list[int] = []
            for j in idx[1:]:
                lt = torch.max(boxes[i, :2], boxes[j, :2])
                rb = torch.min(boxes[i, 2:], boxes[j, 2:])
                wh = (rb - lt).clamp(min=0)
                inter = wh[0] * wh[1]
                a = (boxes[i, 2] - boxes[i, 0]) * (boxes[i, 3] - boxes[i, 1])
                b = (boxes[j, 2] - boxes[j, 0]) * (boxes[j, 3] - boxes[j, 1])
                if float(inter / (a + b - inter)) <= 0.5:
                    rest.append(j)
            idx = rest
        out: dict[str, torch.Tensor] = {
            "boxes": boxes[torch.tensor(keep)],
            "scores": scores[torch.tensor(keep)],
        }
        return out


class Buffers(nn.Module):
    history: list[torch.Tensor]

    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(3))
        self.bn = nn.BatchNorm1d(3)
        self.history: list[torch.Tensor] = []

    def forward(self, x):
        self.sum += x.sum(0)
        self.history.append(self.sum.clone())
        y = self.bn(x)
        return y, self.sum, torch.stack(self.history)


class Creation(nn.Module):
    def forward(self, x):
        return (
            torch.zeros(2, 3),
            torch.ones_like(x),
            torch.full([2], 3),
            torch.arange(5),
            torch.arange(0, 1, 0.25),
            torch.linspace(0, 1, 3),
            torch.eye(2),
            torch.tensor([[1, 2], [3, 4]]),
            torch.tensor(2.5),
            torch.tensor([True]),
            torch.empty(0),
            x.new_zeros(2),
            torch.zeros([2], dtype=torch.int64),
            x.to(torch.float64),
            x.int(),
            x.half().float(),
            x.to("cpu"),
            x.type_as(torch.zeros(1, dtype=torch.float64)),
            torch.stack([x, x]),
            torch.cat([x, x], 1),
            x.view(-1),
            x.reshape(3, -1),
            x.permute(1, 0),
            x.unsqueeze(0),
            x.squeeze(),
            x.flatten(),
            x.repeat(2, 1),
            x.expand(3, 3),
            x.split(1),
            x.chunk(2),
            torch.meshgrid(torch.arange(2), torch.arange(3)),
            x.masked_fill(x > 0, 0.0),
            x.gather(1, torch.zeros(3, 1, dtype=torch.int64)),
            torch.nn.functional.one_hot(torch.tensor([0, 2])),
            x.sum(),
            x.mean(0),
            x.max(),
            x.max(1),
            x.min(dim=0, keepdim=True)[0],
            x.prod(),
            x.any(),
            (x > 0).all(),
            x.nonzero(),
            torch.isnan(x),
            x.numel(),
            x.dim(),
            x.is_contiguous(),
            x.stride(),
            x @ x.t(),
            torch.addmm(x, x, x),
            x.baddbmm(x.unsqueeze(0), x.unsqueeze(0)),
            torch.bmm(x.unsqueeze(0), x.unsqueeze(0)),
            -x,
            x / 2,
            2 / x,
            2 - x,
            x**2,
            2**x,
            x // 2,
            x % 2,
            x == x,
            ~(x > 0),
            (x > 0) & (x < 1),
            (x > 0) | (x < -1),
            x.abs().sqrt(),
            x.exp().log(),
            x.tril(),
            torch.triu(x),
            x.roll(1, 0),
            x.flip([0]),
        )


def programs():
    torch.manual_seed(1)
    s, t = ("script",), ("script", "trace")
    x3 = torch.randn(3, 3)
    boxes = torch.tensor([[0.0, 0, 2, 2], [0, 0, 2, 2.1], [3, 3, 4, 4]])
    return {
        "texts": (Texts(), (3, 2.0, "a,b,c"), s),
        "texts2": (Texts(), (4, 1.75, "xb"), s),
        "indexing": (Indexing(), (torch.randn(4, 5),), s),
        "objects": (Objects(), (x3,), s),
        "unet": (UNet(), (torch.randn(1, 1, 8, 8),), t),
        "mobile": (MobileBlock(), (torch.randn(1, 8, 6, 6),), ("script", "trace", "freeze")),
        "gpt": (GPT(), (torch.randint(0, 17, (2, 8)),), t),
        "generate": (Generate(), (2, 9), s),
        "mha": (MHA(), (torch.randn(2, 3, 8),), t),
        "seq2seq": (Seq2Seq(), (torch.randn(2, 3, 8), torch.randn(2, 4, 8)), t),
        "signal": (Signal(), (torch.randn(3, 32),), t),
        "detect": (Detect(), (boxes, torch.tensor([0.9, 0.8, 0.7])), s),
        "buffers": (Buffers(), (torch.randn(4, 3),), s),
        "creation": (Creation(), (x3,), s),
        "enet": (
            nn.Sequential(
                nn.Conv1d(3, 4, 3),
                nn.PReLU(),
                nn.AvgPool1d(2),
                nn.Flatten(),
                nn.Linear(4 * 3, 5),
                nn.LogSoftmax(1),
                nn.Softplus(),
                nn.Mish(),
                nn.CELU(),
                nn.SELU(),
                nn.Tanhshrink(),
                nn.Hardshrink(),
                nn.Softsign(),
            ),
            (torch.randn(2, 3, 8),),
            t,
        ),
        "conv3d": (
            nn.Sequential(
                nn.Conv3d(1, 2, 2),
                nn.BatchNorm3d(2),
                nn.MaxPool3d(2),
                nn.ConvTranspose3d(2, 1, 2),
                nn.ReplicationPad3d(1),
                nn.ConstantPad3d(1, 0.5),
                nn.AdaptiveAvgPool3d(2),
                nn.Upsample(scale_factor=2.0, mode="trilinear"),
            ),
            (torch.randn(1, 1, 5, 5, 5),),
            t,
        ),
        "embedbag": (
            nn.Sequential(nn.EmbeddingBag(7, 3, mode="mean"), nn.Linear(3, 2)),
            (torch.tensor([[1, 2], [3, 4]]),),
            t,
        ),
    }
