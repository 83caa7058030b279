"""`_c._type()`: scripts of one class share a type where their parts are of the same types."""

import pytest

import rushlight as torch
from rushlight import nn


class Holds(nn.Module):
    __constants__ = ["size"]

    def __init__(self, value=1, size=2, part=None):
        super().__init__()
        self.value, self.size, self.part = value, size, part or nn.Linear(2, 2)

    def forward(self, x):
        return self.part(x)


class AlsoHolds(Holds):
    pass


def kind(module):
    return torch.jit.script(module)._c._type()


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Holds(5), True), (Holds("text"), False), (Holds(size=3), False), (AlsoHolds(), False),
        (Holds(part=nn.Linear(2, 3)), False), (Holds(part=nn.Linear(2, 2, bias=False)), False),
    ],
)  # fmt: skip
def test_modules_share_a_type(other, same):
    found = kind(Holds())
    assert (found == kind(other)) is same and (found != kind(other)) is not same
    assert found.kind() == "ClassType" and found.name() == "Holds"


class Packs(nn.Module):
    @torch.jit.unused
    @torch.no_grad()
    def left_out(self, x):
        # type: (Tensor) -> int
        return next(x)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        if x.dim() == 1:
            return x, x * self.left_out(x)
        return nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)


def test_scripts_pack_sequences_in_files_too(tmp_path):
    scripted, given = torch.jit.script(Packs()), (torch.ones(2, 3), torch.tensor([2, 3]))
    scripted.save(tmp_path / "packs.pt")
    for module in (scripted, torch.jit.load(tmp_path / "packs.pt")):
        padded, lengths = module(*given)
        assert padded.tolist() == [[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]] and lengths.tolist() == [2, 3]
