"""Programs of PyTorch that the tests of TorchScript archives script, trace and save."""

import enum
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        identity = x
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.downsample is not None:
            identity = self.downsample(x)
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)
        )
        self.layer1 = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d((1, 1)), nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(torch.flatten(self.avgpool(self.layer1(self.stem(x))), 1))


class Words(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.rnn = kind(6, 5, 2, batch_first=True, bidirectional=True)

    def forward(self, words):
        return self.rnn(self.embed(words))[0]


class Encoder(nn.Module):
    def __init__(self, norm_first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            8, 2, 16, batch_first=True, norm_first=norm_first, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x, mask: torch.Tensor | None = None):
        return self.encoder(x, src_key_padding_mask=mask)


class Pair(NamedTuple):
    first: torch.Tensor
    count: int


class Control(nn.Module):
    """Branches, loops, containers, text, numbers, and calls of functions and methods."""

    limit: int

    def __init__(self):
        super().__init__()
        self.limit, self.names, self.scales = 3, ["a", "b"], {"a": 2.0, "b": 0.5}
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def scaled(self, x, name: str, extra: float = 1.0):
        return x * self.scales[name] * extra

    def forward(self, x, bias: torch.Tensor | None = None) -> tuple[torch.Tensor, dict[str, int], list[str]]:
        self.calls += 1
        for i, layer in enumerate(self.layers):
            x = layer(x) if i % 2 == 0 else torch.tanh(layer(x))
        parts: list[torch.Tensor] = []
        k = 0
        while k < self.limit:
            if k == 1:
                k += 1
                continue
            parts.append(x[k : k + 2, ::2])
            k += 1
        x = torch.cat(parts, 0)
        if bias is not None and bias.numel() > 0:
            x = x + bias
        for name in self.names:
            x = self.scaled(x, name, extra=1.5)
        pair = Pair(x, len(parts))
        counts = {"rows": pair.count * 10, "half": x.size(0) // 2, "rest": -7 % 4}
        texts = ["{} of {}".format(k, self.limit), "abc".upper()]  # noqa: UP032
        if x.dtype == torch.float32:
            texts.append("single")
        values = [v for v in range(3)]
        y = pair.first.to(torch.float64).sum(dim=1, dtype=torch.float64)
        return F.softmax(y, dim=0, dtype=torch.float32) + float(values[2]), counts, texts


class Sizes(nn.Module):
    """What traces record of sizes: numbers that become tensors and numbers again."""

    def forward(self, x, y):
        n = x.shape[0] * x.shape[1]
        z = x.reshape(n, -1) @ y.new_ones(x.shape[2], 3)
        return z.view(x.size(0), -1, 3).permute(2, 0, 1), z.mean(), torch.arange(n) % 3, F.pad(y, (1, 2))


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Word(enum.Enum):
    YES = "yes"
    NO = "no"


@torch.jit.interface
class Answers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class Doubles(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Counted:
    def __init__(self, n: int):
        self.n = n
        self.inside = 0

    def __enter__(self):
        self.inside += 1
        return self.n

    def __exit__(self, kind: Any, error: Any, trace: Any):
        self.inside -= 1


def shifted(x, k: int):
    return x + k


class Kinds(nn.Module):
    """Enumerations, interfaces, `with` and `fork`."""

    part: Answers

    def __init__(self):
        super().__init__()
        self.part = Doubles()
        self.color = Color.BLUE
        self.word = Word.YES
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor):
        later = torch.jit.fork(shifted, x, 3)
        also = torch.jit.fork(self.part, x)
        with torch.no_grad():
            y = x * self.weight
        counted = Counted(4)
        with counted as n:
            y = y + n + counted.inside
        both = torch.jit.wait(later) + torch.jit.wait(also)
        if self.color == Color.RED:
            y = y + 100
        values = [c.value for c in [Color.RED, self.color]]
        names = self.color.name, self.word.value
        return self.part.forward(y), both, names, counted.inside, values, y.requires_grad


class Fails(nn.Module):
    def forward(self, x):
        assert x.dim() == 2, "expected a matrix"
        if x.size(0) > 5:
            raise ValueError("too many rows")
        return x


class Packed(nn.Module):
    """Sequences of several lengths, packed for a recurrent layer."""

    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        found, state = self.rnn(packed)
        padded, back = nn.utils.rnn.pad_packed_sequence(found, batch_first=True, total_length=6)
        return padded, back, state[0]


@torch.jit.interface
class OneOfMany(nn.Module):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        pass


class Chosen(nn.Module):
    """Modules of a list by their number, a property, and what is asked of tensors beside operators."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList([nn.Linear(4, 3), nn.Linear(4, 3)])
        self.scale = 2.0

    @property
    def twice(self) -> float:
        return self.scale * 2.0

    @torch.jit.export
    def weighed(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.twice

    def forward(self, x: torch.Tensor, which: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        part: OneOfMany = self.parts[which]
        asked = torch.tensor([x.element_size(), int(x.is_signed()), int(x.cpu().is_leaf)])
        shape = torch.zeros(torch.broadcast_tensors(x, torch.ones(1, 4))[0].shape)
        return part.forward(self.weighed(x)), asked.requires_grad_(False), shape


class NamedPadding(nn.Module):
    """What traces call by other names than programs."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2, 3, 3, padding="same")
        self.line = nn.Conv1d(3, 2, 3, padding="valid", dilation=2)

    def forward(self, x):
        y = F.relu6(self.conv(x), inplace=True)
        rows = nn.utils.rnn.pad_sequence([x[0, 0], x[0, 1, :2]], batch_first=True, padding_value=0.5)
        return F.adaptive_max_pool2d(y, (2, 1)), self.line(y.flatten(2)), rows


def programs():
    """name -> (module, inputs, ways of saving)"""
    x = torch.randn(4, 4)
    both = ("script", "trace")
    words = torch.randint(0, 11, (3, 4))
    padding = torch.tensor([[False, False, True], [False, True, True]])
    return {
        "resnet": (ResNet(), (torch.randn(2, 3, 32, 32),), (*both, "freeze")),
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)), (x,), both),
        "lstm": (Words(nn.LSTM), (words,), both),
        "gru": (Words(nn.GRU), (words,), both),
        "encoder": (Encoder(False), (torch.randn(2, 3, 8),), both),
        "encoder_masked": (Encoder(True), (torch.randn(2, 3, 8), padding), ("script",)),
        "packed": (Packed(), (torch.randn(3, 5, 3), torch.tensor([2, 5, 3])), ("script",)),
        "chosen": (Chosen(), (x,), ("script",)),
        "named_padding": (NamedPadding(), (torch.randn(1, 2, 4, 5),), ("trace",)),
        "control": (Control(), (x,), ("script",)),
        "control_with_bias": (Control(), (x, torch.randn(2)), ("script",)),
        "sizes": (Sizes(), (torch.randn(2, 3, 4), torch.randn(5)), both),
    }


def programs_of_python():
    """Those whose results, text and numbers among them, the tests of C++ do not read."""
    return {"kinds": (Kinds(), (torch.randn(4, 4),), ("script",))}


def save(module, inputs, way, path):
    module = module.eval()
    if way == "trace":
        made = torch.jit.trace(module, inputs, check_trace=False)
    else:
        made = torch.jit.script(module)
    if way == "freeze":
        made = torch.jit.freeze(made)
    made.save(str(path))
    return torch.jit.load(str(path))
