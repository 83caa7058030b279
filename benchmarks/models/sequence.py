"""Language: a translator like GNMT, GPT, BERT, a character LSTM."""

import torch
import torch.nn.functional as F
from torch import nn

from . import adam, supervised


def token_loss(targets):
    return lambda out: F.cross_entropy(out.flatten(0, 1).float(), targets.flatten())


class Encoder(nn.Module):
    """A first layer that reads both ways, then layers with residual connections."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.first = nn.LSTM(width, width, bidirectional=True, batch_first=True)
        self.second = nn.LSTM(2 * width, width, batch_first=True)
        self.rest = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers - 2))
        self.dropout = nn.Dropout(0.2)

    def forward(self, words):
        x, _ = self.first(self.dropout(self.embedding(words)))
        x, _ = self.second(self.dropout(x))
        for layer in self.rest:
            x = x + layer(self.dropout(x))[0]
        return x


class Attention(nn.Module):
    """Scores from the sum of query and key (Bahdanau)."""

    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)

    def forward(self, queries, memory):
        mixed = self.query(queries).unsqueeze(2) + self.key(memory).unsqueeze(1)
        weights = self.score(torch.tanh(mixed)).squeeze(-1).softmax(-1)
        return weights @ memory


class Decoder(nn.Module):
    """What the first layer attends to is an input of all others."""

    def __init__(self, words, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.first = nn.LSTM(width, width, batch_first=True)
        self.attention = Attention(width)
        self.rest = nn.ModuleList(nn.LSTM(2 * width, width, batch_first=True) for _ in range(layers - 1))
        self.dropout = nn.Dropout(0.2)
        self.out = nn.Linear(width, words)

    def forward(self, words, memory):
        x, _ = self.first(self.dropout(self.embedding(words)))
        context = self.attention(x, memory)
        for index, layer in enumerate(self.rest):
            y, _ = layer(torch.cat([self.dropout(x), context], -1))
            x = x + y if index else y
        return self.out(x)


class Translator(nn.Module):
    def __init__(self, words, width, layers):
        super().__init__()
        self.encoder, self.decoder = Encoder(words, width, layers), Decoder(words, width, layers)

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source))


def gnmt(sizes, precision):
    words, batch, length = sizes(8000, 50), sizes(8, 2), sizes(20, 4)
    model = Translator(words, sizes(512, 8), 4)
    source, target, expected = (torch.randint(0, words, (batch, length)) for _ in range(3))
    return supervised(model, adam(model), (source, target), token_loss(expected), precision)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.project(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Norm first, as GPT-2 has it."""

    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), SelfAttention(width, heads, causal=True)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words, positions, width, heads, layers):
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.out.weight = self.word.weight

    def forward(self, words):
        positions = torch.arange(words.shape[1], device=words.device)
        return self.out(self.norm(self.blocks(self.word(words) + self.position(positions))))


def gpt(sizes, precision):
    words, length = sizes(8192, 50), sizes(128, 8)
    model = GPT(words, length, sizes(384, 16), sizes(6, 2), sizes(6, 2))
    text, following = (torch.randint(0, words, (4, length)) for _ in range(2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    return supervised(model, optimizer, (text,), token_loss(following), precision)


class BERT(nn.Module):
    """Built of the library's own encoder layers; predicts hidden words."""

    def __init__(self, words, positions, width, heads, layers):
        super().__init__()
        self.word, self.position = nn.Embedding(words, width), nn.Embedding(positions, width)
        self.segment, self.norm = nn.Embedding(2, width), nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.predict = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, words)
        )

    def forward(self, words, segments, padding):
        positions = torch.arange(words.shape[1], device=words.device)
        x = self.norm(self.word(words) + self.position(positions) + self.segment(segments))
        return self.predict(self.encoder(x, src_key_padding_mask=padding))


def bert(sizes, precision):
    words, batch, length = sizes(8192, 50), sizes(4, 2), sizes(128, 8)
    model = BERT(words, length, sizes(384, 16), sizes(6, 2), sizes(4, 2))
    text, hidden = (torch.randint(0, words, (batch, length)) for _ in range(2))
    segments = (torch.arange(length) >= length // 2).long().expand(batch, length)
    padding = torch.arange(length).expand(batch, length) >= length - torch.arange(batch)[:, None]
    return supervised(model, adam(model), (text, segments, padding), token_loss(hidden), precision)


class CharacterLSTM(nn.Module):
    def __init__(self, characters, width, layers):
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, characters)

    def forward(self, text):
        return self.out(self.lstm(self.embedding(text))[0])


def lstm(sizes, precision):
    model = CharacterLSTM(96, sizes(128, 8), 2)
    text, following = (torch.randint(0, 96, (16, sizes(64, 4))) for _ in range(2))
    return supervised(model, adam(model), (text,), token_loss(following), precision)


class UnrolledLSTM(nn.Module):
    """The recurrence as a loop of the program's: many small operations."""

    def __init__(self, characters, width):
        super().__init__()
        self.embedding, self.cell = nn.Embedding(characters, width), nn.LSTMCell(width, width)
        self.out = nn.Linear(width, characters)

    def forward(self, text):
        state, outputs = None, []
        for x in self.embedding(text).unbind(1):
            state = self.cell(x, state)
            outputs.append(self.out(state[0]))
        return torch.stack(outputs, 1)


def unrolled_lstm(sizes, precision):
    model = UnrolledLSTM(96, sizes(128, 8))
    text, following = (torch.randint(0, 96, (16, sizes(32, 4))) for _ in range(2))
    return supervised(model, adam(model), (text,), token_loss(following), precision)
