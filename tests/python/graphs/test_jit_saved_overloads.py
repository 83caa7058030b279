"""Functions and methods of several signatures keep them in a file."""

import io

import pytest

import rushlight as torch
from rushlight import Tensor


@torch.jit._overload
def doubled(x: int) -> int: ...


@torch.jit._overload
def doubled(x: Tensor) -> Tensor: ...  # noqa: F811


def doubled(x):  # noqa: F811
    return x + x


class Many(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    @torch.jit._overload_method
    def more(self, x: int) -> int: ...

    @torch.jit._overload_method
    def more(self, x: Tensor) -> Tensor: ...  # noqa: F811

    def more(self, x):  # noqa: F811
        return x + self.k

    def forward(self, x: Tensor, n: int):
        return self.more(x), self.more(n), doubled(x), doubled(n)


def test_signatures_are_those_of_before():
    module, buffer = torch.jit.script(Many()), io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    again = torch.jit.load(buffer)
    x = torch.tensor([1.0, 2.0])
    for found in (module(x, 4), again(x, 4)):
        more, number, twice, twice_number = found
        assert more.tolist() == [4.0, 5.0] and number == 7
        assert twice.tolist() == [2.0, 4.0] and twice_number == 8
    with pytest.raises(RuntimeError):
        again(x, "four")
