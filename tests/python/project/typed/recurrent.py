"""Recurrent layers and cells, with tensors and with packed sequences."""

from typing import TYPE_CHECKING

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Tagger(nn.Module):
    def __init__(self, words: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 8)
        self.lstm = nn.LSTM(8, 12, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(24, 6, batch_first=True)
        self.out = nn.Linear(6, tags)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        packed = pack_padded_sequence(self.embedding(words), lengths, batch_first=True, enforce_sorted=False)
        encoded, (h, c) = self.lstm(packed)
        states, last = self.gru(encoded)
        if TYPE_CHECKING:
            assert_type(encoded, PackedSequence)
            assert_type(c, torch.Tensor)
        padded, _ = pad_packed_sequence(states, batch_first=True)
        return self.out(padded), last + h.sum() * 0


def main() -> None:
    scores, last = Tagger(20, 3)(torch.randint(20, (4, 5)), torch.tensor([5, 3, 2, 4]))
    assert scores.shape == (4, 5, 3) and last.shape == (1, 4, 6)
    h, c = nn.LSTMCell(3, 4)(torch.zeros(2, 3))
    hidden = nn.GRUCell(3, 4)(torch.zeros(2, 3), h)
    assert hidden.shape == c.shape
    if TYPE_CHECKING:
        assert_type(scores, torch.Tensor)
        assert_type(hidden, torch.Tensor)


if __name__ == "__main__":
    main()
