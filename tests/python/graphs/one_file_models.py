"""Models that the tests of one-file models export: images, text with a cache, translation."""

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.conv1, self.norm1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.norm2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.norm3 = nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.relu(self.norm1(self.conv1(x)))
        y = self.relu(self.norm2(self.conv2(y)))
        return self.relu(self.norm3(self.conv3(y)) + self.shortcut(x))


class ResNet(nn.Module):
    """ResNet-50 with `width` 64 and `depths` (3, 4, 6, 3)."""

    def __init__(self, width=64, depths=(3, 4, 6, 3), classes=1000):
        super().__init__()
        layers = [
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, 2, 1),
        ]
        inputs = width
        for stage, depth in enumerate(depths):
            for block in range(depth):
                layers.append(Bottleneck(inputs, width << stage, 2 if stage and not block else 1))
                inputs = (width << stage) * 4
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(inputs, classes)

    def forward(self, images):
        return self.classifier(F.adaptive_avg_pool2d(self.features(images), 1).flatten(1))


def with_statistics(model, *example):
    """The model in eval mode, its normalisations with statistics of some data."""
    model.train()
    with torch.no_grad():
        model(*example)
    return model.eval()


class CachedAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x, past):
        batch, length, width = x.shape
        q, k, v = self.project(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(batch, length, width)), torch.stack([k, v])


class GPT(nn.Module):
    """One step of decoding: the next token's logits, and the cache one token longer."""

    def __init__(self, words=61, width=32, heads=4, layers=2, longest=64):
        super().__init__()
        self.layers, self.heads, self.width = layers, heads, width
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.blocks = nn.ModuleList(
            nn.ModuleDict(
                {
                    "norm1": nn.LayerNorm(width),
                    "attention": CachedAttention(width, heads),
                    "norm2": nn.LayerNorm(width),
                    "mlp": nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)),
                }
            )
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def empty_cache(self, batch, length=1):
        return torch.zeros(self.layers, 2, batch, self.heads, length, self.width // self.heads)

    def forward(self, token, cache):
        past = cache.shape[4]
        x = self.words(token) + self.places.weight[past : past + 1]
        made = []
        for i, block in enumerate(self.blocks):
            y, kept = block["attention"](block["norm1"](x), cache[i])
            x = x + y
            x = x + block["mlp"](block["norm2"](x))
            made.append(kept)
        return {"logits": self.head(self.norm(x))[:, -1], "cache": torch.stack(made)}


class Translator(nn.Module):
    """An encoder that reads both ways, and a decoder that attends to it, like GNMT."""

    def __init__(self, words=50, width=16):
        super().__init__()
        self.source, self.target = nn.Embedding(words, width), nn.Embedding(words, width)
        self.encoder = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.deeper = nn.LSTM(2 * width, width, 2, batch_first=True)
        self.decoder = nn.LSTM(width, width, batch_first=True)
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.mixed = nn.LSTM(2 * width, width, batch_first=True)
        self.out = nn.Linear(width, words)

    def forward(self, source, target):
        memory, _ = self.deeper(self.encoder(self.source(source))[0])
        x, _ = self.decoder(self.target(target))
        scores = torch.tanh(self.query(x).unsqueeze(2) + self.key(memory).unsqueeze(1))
        context = self.score(scores).squeeze(-1).softmax(-1) @ memory
        return self.out(x + self.mixed(torch.cat([x, context], -1))[0])
