"""Scripts and traces of all kinds, whose archives PyTorch and C++ read."""

# ruff: noqa: UP006, UP007, UP031, UP035, UP045

import enum
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor, nn

SMALL = torch.linspace(-1, 1, 6).view(2, 3)
IMAGES = torch.linspace(-1, 1, 384).view(2, 3, 8, 8)
WORDS = torch.linspace(-1, 1, 40).view(5, 2, 4)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        layers = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        self.features = nn.Sequential(*layers, nn.Dropout(0.0))
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 2)

    def forward(self, x):
        return F.log_softmax(self.head(torch.flatten(self.pool(self.features(x)), 1)), dim=1)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.act = nn.Parameter(torch.ones(4, 3, 3, 3) * 0.1), F.gelu

    def forward(self, x):
        y = F.conv2d(x, self.weight, None, stride=2, padding=1)
        y = F.max_pool2d(F.relu(y, inplace=True), 2)
        y = F.interpolate(y, scale_factor=2.0, mode="nearest")
        y = F.pad(y, (1, 1), "constant", 0.5)
        y = self.act(y) + F.leaky_relu(y, 0.1) + F.softplus(y) + F.silu(y)
        y = F.layer_norm(F.dropout(y, 0.5, self.training), [y.shape[-1]])
        found = F.avg_pool2d(y, 2).mean(dim=[2, 3]), F.normalize(y), F.softmax(y, dim=1)
        return found, F.mse_loss(y, y * 2), F.one_hot(torch.tensor([0, 2]), 3), torch.zeros(2, 3)


class Control(nn.Module):
    def forward(self, x, n: int):
        if n > 3:
            return x * 2
        k = 0
        while k < n:
            k += 1
            if k == 2:
                continue
            if k > 5:
                break
            x = x + k
        for i in range(n):
            for j in range(i):
                if j == 1:
                    return x - i
                x = x * 1.5
        if 0 < k < 3 and x.dim() == 2 or k == 100:
            x = -x
        return x


class Lists(nn.Module):
    names: List[str]
    table: Dict[str, int]
    empty: List[int]
    maybe: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.names, self.table, self.empty, self.maybe = ["a", "b"], {"x": 1, "y": 2}, [], None
        self.pair = (1, 2.5)
        self.register_buffer("steps", torch.arange(3.0))

    def forward(self, x):
        out: List[Tensor] = []
        for i, name in enumerate(self.names):
            out.append(x * (i + len(name)))
        out.insert(0, x)
        for a, b in zip(out, [1, 2, 3]):
            x = x + a * b
        d = {k: v * 2 for k, v in self.table.items()}
        d["z"] = 5
        last = out.pop()
        s = ",".join(sorted(d.keys())) + "%d" % len(out)
        e = self.empty + [1, 2]
        e[0] += 3
        del e[1]
        t = torch.jit.annotate(List[int], [])
        t.extend([k for k in e])
        m = self.maybe
        x = x + m if m is not None else x - self.steps
        more = s.upper().split(","), "z" not in d, max(e), f"{x.dim()} {s}"
        return x, s, d, last, t, self.pair[1] + self.pair[0], more, torch.stack(out)


class Point(NamedTuple):
    x: Tensor
    y: int = 3


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Total:
    def __init__(self, value: int):
        self.value = value
        self.items: List[int] = []

    def add(self, k: int = 2) -> int:
        self.value += k
        self.items.append(k)
        return self.value

    @property
    def double(self) -> int:
        return self.value * 2

    @staticmethod
    def helper(a: int) -> int:
        return a + 100

    def __add__(self, other: int) -> int:
        return self.value + other


class Classes(nn.Module):
    def __init__(self):
        super().__init__()
        self.color, self.total = Color.BLUE, Total(7)

    def forward(self, x):
        p, short = Point(x, y=7), Point(x)
        a = Total(3)
        a.add()
        a.add(k=4)
        c = Color.RED
        if self.color == Color.BLUE:
            c = Color.BLUE
        numbers = a.value + a.double + Total.helper(1), a.items, a + 5, short.y
        return p, numbers, c.value, c.name, len(self.total.items)


def scaled(x, k: int = 3):
    return x * k


class Functions(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    @torch.jit.export
    def extra(self, x):
        return self.linear(x) + 1

    @torch.jit.ignore
    def in_python(self, x):
        return x

    @torch.jit.unused
    def not_there(self, x):
        return x

    def inner(self, x, scale: float = 2.0):
        return scaled(x) * scale

    def forward(self, x):
        first = torch.jit.fork(self.inner, x, scale=3.0)
        second = torch.jit.fork(scaled, x)
        with torch.no_grad():
            y = self.linear(x)
        results = torch.jit.wait(first), torch.jit.wait(second)
        return results, y, self.inner(x), math.sqrt(2.0) + math.pi


class Raises(nn.Module):
    def forward(self, x, n: int):
        assert n > -5, "n is small"
        if n > 3:
            raise ValueError(f"bad {n}")
        elif n == 2:
            r = x
        else:
            raise RuntimeError("other")
        return r


class Constants(nn.Module):
    n: torch.jit.Final[int]
    __constants__ = ["mode"]

    def __init__(self):
        super().__init__()
        self.n, self.mode, self.place, self.none = 3, "mode", torch.device("cpu"), None

    def forward(self, x):
        y = torch.zeros(self.n, dtype=torch.float64, device=x.device)
        if self.mode == "mode":
            y = y + 1
        if self.none is not None:
            y = y + self.none
        return y.to(torch.int32), y.dtype == torch.float64, x.to(self.place), float("inf"), 2.5e-7


class Kinds(nn.Module):
    def forward(self, x: Union[int, Tensor, List[int]], y: Any):
        if isinstance(x, int):
            r = x + 1
        elif isinstance(x, Tensor):
            r = int(x.sum())
        else:
            r = x[0]
        if torch.jit.isinstance(y, List[int]):
            r += y[0]
        return r


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Triple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 3


class ByInterface(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = Triple()

    def forward(self, x: Tensor) -> Tensor:
        return self.step.forward(x)


class Places(nn.Module):
    def forward(self, x, mask):
        read = x[0], x[:, 1], x[..., None], x[mask], x[-1, 1:], x[[0, 1]], x[None, ::2], x[..., 0]
        x = x.clone()
        x[mask] = 9.0
        x[0, 1:] *= 2
        x[1] -= torch.ones(3)
        numbers, pairs = [1, 2, 3, 4], (1, 2, 3)
        return read, x, pairs[1:], numbers[::2], numbers[-1], "hello"[1:3]


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 3, 2, bidirectional=True)
        self.gru, self.rnn = nn.GRU(4, 3, batch_first=True), nn.RNN(4, 3)
        self.cell, self.table = nn.LSTMCell(4, 3), nn.Embedding(5, 4, padding_idx=0)

    def forward(self, x, i):
        y, (h, c) = self.lstm(x)
        z, k = self.gru(x)
        return y, h, c, z, k, self.cell(x[0])[0], self.rnn(x)[0], self.table(i)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2)
        self.layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
        self.encoder = nn.TransformerEncoder(self.layer, 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, activation="gelu")

    def forward(self, x):
        y, w = self.attention(x, x, x)
        return y, w, self.layer(x), self.encoder(x), self.decoder(x, x)


class Losses(nn.Module):
    def __init__(self):
        super().__init__()
        self.entropy, self.logits, self.squares = nn.CrossEntropyLoss(), nn.BCEWithLogitsLoss(), nn.MSELoss()
        self.smooth, self.likely = nn.SmoothL1Loss(), nn.NLLLoss(reduction="sum")
        self.divergence = nn.KLDivLoss(reduction="batchmean")

    def forward(self, x, t):
        first = self.entropy(x, t), self.logits(x, torch.sigmoid(x)), self.squares(x, x + 1)
        return first, self.smooth(x, x * 2), self.likely(x, t), self.divergence(x, x.exp())


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        plain = (
            "ELU GELU SiLU Sigmoid Tanh Hardtanh Hardswish Softplus ReLU6 Mish SELU CELU Softsign LogSigmoid"
        )
        named = [getattr(nn, name)() for name in (*plain.split(), "Tanhshrink", "Hardshrink", "Identity")]
        sized = [nn.Softmax(1), nn.PReLU(3), nn.GroupNorm(1, 3), nn.LayerNorm(3), nn.BatchNorm1d(3)]
        more = [
            nn.Dropout(),
            nn.AlphaDropout(),
            nn.Threshold(0.1, 2.0),
            nn.Softmin(1),
            nn.GLU(0),
            nn.Flatten(0),
        ]
        self.small = nn.ModuleList([nn.LeakyReLU(), *named, *sized, *more, nn.RMSNorm(3)])
        self.images = nn.ModuleDict(
            {
                "a": nn.ConvTranspose2d(3, 2, 2),
                "b": nn.Upsample(scale_factor=2),
                "c": nn.AvgPool2d(2),
                "d": nn.ZeroPad2d(1),
                "e": nn.InstanceNorm2d(3, affine=True),
                "f": nn.Conv2d(3, 2, 3, padding=1, padding_mode="reflect"),
                "g": nn.AdaptiveMaxPool2d((2, 2)),
                "h": nn.Unfold(2),
                "i": nn.LocalResponseNorm(2),
                "j": nn.Upsample(size=(4, 4), mode="bilinear", align_corners=False),
                "k": nn.MaxPool2d(3, stride=2, padding=1),
                "l": nn.Softmax2d(),
                "m": nn.ChannelShuffle(3),
            }
        )
        self.pairs, self.cosine = nn.Bilinear(3, 3, 2), nn.CosineSimilarity()

    def forward(self, x, images):
        small = [layer(x) for layer in self.small]
        large = [layer(images) for layer in self.images.values()]
        for name, layer in self.images.items():
            if name == "c":
                large.append(layer(images))
        ends = self.small[0](x), self.images["c"](images), len(self.small), self.small[-3:][0](x)
        return small, large, self.pairs(x, x), self.cosine(x, x), ends


@torch.jit.script
def function(x, n: int = 2, flag: bool = True):
    y = scaled(x, n)
    return y if flag else -y


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(3)])
        self.scale, self.offset = 2.0, 5

    @property
    def total(self) -> int:
        return self.offset + 1

    def first(self, x: Tensor, ys: List[Tensor]) -> Tuple[Tensor, int]:
        return x + ys[0], len(ys)

    def forward(self, x: Tensor, more: Optional[Dict[str, Tensor]] = None, k: float = 1.0) -> Tensor:
        ys: List[Tensor] = []
        for layer in self.layers:
            x = layer(x)
            ys.append(x)
        h, n = self.first(x, ys)
        if more is not None and "a" in more:
            h = h + more["a"]
        v = h if self.training else h * self.scale
        return v * k + n + self.total


class Own(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight, self.bias) + self.in_features


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.second = self.first

    def forward(self, x):
        return self.first(x) + self.second(x)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)

        def before(module, given: Tuple[Tensor]) -> Tuple[Tensor]:
            return (given[0] * 2,)

        def after(module, given: Tuple[Tensor], result: Tensor) -> Tensor:
            return result + given[0]

        self.inner.register_forward_pre_hook(before)
        self.inner.register_forward_hook(after)

    def forward(self, x):
        return self.inner(x)


class Traced(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide, self.narrow, self.drop = nn.Linear(3, 4), nn.Linear(4, 2), nn.Dropout(0.1)
        self.same = self.narrow

    def forward(self, x):
        y = torch.relu(self.wide(x)).view(x.size(0), -1)
        q = y.split([1, 3], 1)
        z = torch.cat([q[0][:, 0:1], torch.tanh(q[1])], dim=1) + torch.arange(4)
        z = self.drop(z) + y.mean(dim=1, keepdim=True)
        return self.narrow(z) + self.same(z), z.max(1)[0], torch.einsum("ij,kj->ik", z, z)


class TracedLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.lstm = nn.MultiheadAttention(4, 2, batch_first=True), nn.LSTM(4, 3)

    def forward(self, x):
        return self.attention(x, x, x)[0], self.lstm(x)[0]


class Nested(nn.Module):
    def forward(self, pair):
        a, (b, c) = pair
        return a + b * c, {"key": a}


class Parameters(nn.Module):
    def __init__(self):
        super().__init__()
        self.many = nn.ParameterList([nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3) * 2)])
        self.steps = 0

    def forward(self, x):
        for parameter in self.many:
            x = x + parameter
        self.steps += 1
        sizes = [x.size(0), 1]
        return x, self.steps, x.view(sizes[0], -1), x.view(-1), torch.zeros(sizes[0], sizes[1])


class Numbers(nn.Module):
    """Whole numbers stand where scripts ask for reals, or lists of them."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0)

    def forward(self, x):
        wide = F.upsample(x[None, None], scale_factor=2), F.interpolate(x[None], scale_factor=2)
        return wide, torch.norm(x, dim=1), self.drop(x), F.max_pool1d(x, 2), torch.unique(x.round())


CASES = {
    "convolutions": (lambda: Convolutions().eval(), (IMAGES,), "script"),
    "training": (Convolutions, (IMAGES,), "script"),
    "convolutions_traced": (lambda: Convolutions().eval(), (IMAGES,), "trace"),
    "frozen": (lambda: torch.jit.freeze(torch.jit.script(Convolutions().eval())), (IMAGES,), "script"),
    "functional": (lambda: Functional().eval(), (IMAGES,), "script"),
    **{f"control{n}": (Control, (SMALL, n), "script") for n in (2, 3, 9)},
    "lists": (Lists, (SMALL,), "script"),
    "classes": (Classes, (SMALL,), "script"),
    "functions": (Functions, (SMALL,), "script"),
    "raises": (Raises, (SMALL, 2), "script"),
    "constants": (Constants, (SMALL,), "script"),
    "kinds": (Kinds, (4, [1]), "script"),
    "by_interface": (ByInterface, (SMALL,), "script"),
    "places": (Places, (SMALL, SMALL > 0.5), "script"),
    "recurrent": (Recurrent, (WORDS, torch.tensor([0, 2])), "script"),
    "attention": (lambda: Attention().eval(), (WORDS,), "script"),
    "losses": (Losses, (SMALL, torch.tensor([0, 2])), "script"),
    "layers": (lambda: Layers().eval(), (SMALL, IMAGES), "script"),
    "function": (lambda: function, (SMALL,), "script"),
    "parts": (Parts, (SMALL,), "script"),
    "parameters": (Parameters, (SMALL,), "script"),
    "numbers": (Numbers, (SMALL,), "script"),
    "own": (lambda: Own(3, 2), (SMALL,), "script"),
    "shared": (Shared, (SMALL,), "script"),
    "hooked": (Hooked, (SMALL,), "script"),
    "traced": (lambda: Traced().eval(), (SMALL,), "trace"),
    "traced_layers": (lambda: TracedLayers().eval(), (WORDS.transpose(0, 1),), "trace"),
    "traced_function": (lambda: lambda x: x.sin() + scaled(x), (SMALL,), "trace"),
    "nested": (Nested, ((SMALL, [SMALL, SMALL]),), "trace"),
}
