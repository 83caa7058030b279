"""Parts of traced modules: their methods, files and copies."""

import copy
import io

import pytest

import rushlight as torch
from rushlight import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.offset = nn.Linear(4, 4), torch.tensor([1.0])
        self.register_buffer("scale", torch.tensor([2.0]))

    def forward(self, x, mask=None):
        scores = self.query(x) @ x.transpose(-1, -2) * self.scale + self.offset
        return scores.softmax(-1) @ x, (scores + mask if mask is not None else scores, None, 3)


class AttentionLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.lstm = Attention(), nn.LSTM(4, 4, batch_first=True)

    def forward(self, x, mask):
        y, (scores, _, _) = self.attention(x, mask=mask)
        x, (h, _) = self.lstm(x + y)
        return {"x": x, "scores": scores, "h": h}


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.layers = nn.Embedding(10, 4), nn.ModuleList([AttentionLayer(), AttentionLayer()])

    def forward(self, tokens):
        x = self.embedding(tokens)
        mask = torch.zeros(x.size(1), x.size(1))
        for layer in self.layers:
            x = layer(x, mask)["x"]
        return x


def test_parts_of_traced_modules_are_called_by_themselves():
    model = Encoder()
    traced = torch.jit.trace(model, torch.zeros(2, 3, dtype=torch.long))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    x, mask, tokens = torch.randn(1, 5, 4), torch.randn(5, 5), torch.tensor([[1, 2, 3, 4, 5]])
    frozen = torch.jit.freeze(torch.jit.trace(model.eval(), torch.zeros(2, 3, dtype=torch.long)))
    torch.testing.assert_close(frozen(tokens), model(tokens))
    assert not hasattr(frozen, "layers")
    for program in (traced, torch.jit.load(file), copy.deepcopy(traced)):
        torch.testing.assert_close(program(tokens), model(tokens))
        for got, wanted in zip(program.layers, model.layers, strict=True):
            torch.testing.assert_close(got(x, mask), wanted(x, mask))
            torch.testing.assert_close(got.attention(x, mask), wanted.attention(x, mask))
            torch.testing.assert_close(got.lstm(x)[0], wanted.lstm(x)[0])
    assert list(traced.state_dict()) == list(model.state_dict())


def test_a_part_that_takes_more_than_it_is_given_has_no_method():
    class Part(nn.Module):
        def forward(self, x):
            return x * self.shared[0]

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Part()

        def forward(self, x):
            self.part.shared = [x + 1]
            return self.part(x)

    traced = torch.jit.trace(Whole(), torch.ones(2))
    assert traced(torch.full((1,), 2.0)).item() == 6
    with pytest.raises(NotImplementedError):
        traced.part(torch.ones(1))
