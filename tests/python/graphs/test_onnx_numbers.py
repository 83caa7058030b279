"""Complex numbers, Fourier transforms, special functions, counting and writing by index as ONNX files, run by
onnxruntime beside us."""

import math

import pytest

import rushlight as torch
from rushlight import nn

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import rushlight.onnx  # noqa: E402

torch.manual_seed(0)
X = torch.randn(2, 4, 8)
INTS = torch.tensor([0, 2, 1])
WINDOW = torch.hann_window(4)


class Function(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.register_buffer("turns", torch.polar(torch.ones(4, 4), torch.arange(16.0).reshape(4, 4)))

    def forward(self, *args):
        return self.function(self, *args)


def export(function, *args, **options):
    return torch.onnx.export(Function(function).eval(), args, verify=True, **options)


def rotary(s, x):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * s.turns).flatten(-2)


COMPLEX = {
    "rotary positions": rotary,
    "half spectrum": lambda s, x: torch.fft.rfft(x).abs(),
    "half spectrum and back": lambda s, x: torch.fft.irfft(torch.fft.rfft(x) * 2),
    "odd size and back": lambda s, x: torch.fft.irfft(torch.fft.rfft(x[..., :7]), 7),
    "a spectrum that is cut": lambda s, x: torch.fft.irfft(torch.fft.rfft(x), 5, norm="ortho"),
    "two dimensions": lambda s, x: torch.view_as_real(torch.fft.fft2(x, norm="ortho")),
    "and back": lambda s, x: torch.fft.ifft(torch.fft.fft(x)).real,
    "forward divided": lambda s, x: torch.fft.ifft(torch.fft.fft(x, norm="forward"), norm="forward").real,
    "all dimensions": lambda s, x: torch.fft.fftn(x).imag,
    "half of two": lambda s, x: torch.fft.irfft2(torch.fft.rfft2(x)),
    "short-time": lambda s, x: torch.stft(x[0], 4, 2, window=WINDOW, return_complex=True).abs(),
    "short-time and back": lambda s, x: torch.istft(
        torch.stft(x[0], 4, 2, window=WINDOW, return_complex=True), 4, 2, window=WINDOW
    ),
    "symmetric": lambda s, x: torch.fft.hfft(torch.fft.fft(x)),
    "angles": lambda s, x: (torch.angle(torch.fft.fft(x)[..., 1:4]), torch.angle(x)),
    "quotient": lambda s, x: torch.view_as_real(torch.complex(x, x * 2).conj() / torch.complex(x, x + 1)),
    "of different shapes": lambda s, x: torch.view_as_real(torch.complex(x, x[0, 0]) / 2),
    "matrix product": lambda s, x: (torch.complex(x, x) @ torch.complex(x, -x).mT).real,
    "real matrix": lambda s, x: torch.view_as_real(torch.complex(x, x + 1) @ (x.mT + 0j)),
    "sums": lambda s, x: (torch.fft.fft(x).sum(1).abs(), torch.fft.fft(x).mean((0, 2)).imag),
    "sums of products": lambda s, x: (
        torch.einsum("bij,bkj->bik", torch.complex(x, x), torch.complex(x, -x)).imag
    ),
    "exponential and logarithm": lambda s, x: torch.view_as_real(torch.log(torch.exp(1j * x) * 2)),
    "joined and taken": lambda s, x: torch.view_as_real(torch.cat([torch.complex(x, x), x + 0j])[INTS]),
    "with numbers": lambda s, x: ((torch.complex(x, x) + 2 - 1j) * (1 + 2j)).abs(),
    "chosen": lambda s, x: torch.view_as_real(torch.where(x > 0, torch.complex(x, x), torch.zeros(()))),
    "masked": lambda s, x: torch.view_as_real(torch.complex(x, x).masked_fill(x > 0, 3.0)),
    "reciprocal": lambda s, x: torch.complex(x, x + 1).reciprocal().imag,
    "polar": lambda s, x: torch.polar(x.abs(), x).mean((0, 1)).imag,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name):
    export(COMPLEX[name], X)


def test_transforms_of_other_opsets_and_types():
    for options in ({"opset_version": 18}, {"opset_version": 20}):
        export(COMPLEX["half spectrum and back"], X, **options)
    export(COMPLEX["two dimensions"], X.double())


def test_a_batch_of_rotary_positions_may_change():
    sizes = {"args": ({0: torch.export.Dim("batch")},)}
    program = export(rotary, X, dynamic_shapes=sizes)
    x = torch.randn(5, 4, 8)
    torch.testing.assert_close(program(x)[0], Function(rotary)(x))


def test_complex_results_are_refused():
    with pytest.raises(NotImplementedError, match="view_as_real"):
        export(lambda s, x: torch.fft.fft(x), X)
    with pytest.raises(NotImplementedError, match="sqrt.* of complex numbers"):
        export(lambda s, x: torch.fft.fft(x).sqrt().real, X)


NUMBERS = torch.cat([torch.linspace(-30, 30, 601), torch.tensor([0, -0.0, 1, 2, 1e-10, 100, 1e4, math.inf])])
NUMBERS = torch.cat([NUMBERS, torch.tensor([-math.inf, math.nan])])
SHARES = torch.cat([torch.linspace(0, 1, 301), torch.logspace(-30, -1, 50), torch.tensor([2, math.nan])])
SPECIAL = {
    "i0": (torch.i0, NUMBERS),
    "i0e": (torch.special.i0e, NUMBERS),
    "i1": (torch.special.i1, NUMBERS),
    "i1e": (torch.special.i1e, NUMBERS),
    "erfinv": (torch.erfinv, SHARES * 2 - 1),
    "ndtri": (torch.special.ndtri, SHARES),
    "erfcx": (torch.special.erfcx, NUMBERS),
    "log_ndtr": (torch.special.log_ndtr, NUMBERS),
    "lgamma": (torch.lgamma, NUMBERS),
    "digamma": (torch.digamma, NUMBERS),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name, dtype):
    function, numbers = SPECIAL[name]
    x = numbers.to(dtype)
    program = torch.onnx.export(Function(lambda s, x: function(x)), (x,))
    bounds = {"rtol": 2e-5, "atol": 2e-6} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-11}
    torch.testing.assert_close(program(x)[0], function(x), equal_nan=True, **bounds)


def test_special_functions_of_integers():
    export(lambda s, i: torch.lgamma(i + 1), INTS)


PLACES = torch.tensor([[[0], [2], [1]]]).expand(2, 3, 8)
INDEXED = {
    "masked_scatter": lambda s, x, i: x.masked_scatter(x > 0, x.flatten().flip(0)),
    "masked_scatter of rows": lambda s, x, i: x.masked_scatter(x[0, :, :1] > 0, x),
    "masked_select": lambda s, x, i: x.masked_select(x[0] > 0).sum(),
    "bincount": lambda s, x, i: (torch.bincount(i), torch.bincount(i, minlength=5)),
    "weighted bincount": lambda s, x, i: torch.bincount(i, x[0, 0, :3]),
    "histc": lambda s, x, i: (torch.histc(x, 5, -1, 1), torch.histc(x, 7), torch.histc(x * 0, 4)),
    "as_strided": lambda s, x, i: x.as_strided((3, 4), (2, 3), 1),
    "repeat_interleave": lambda s, x, i: torch.repeat_interleave(x, torch.arange(4), dim=1),
    "put": lambda s, x, i: (x.put(i - 1, x[0, 0, :3]), x.put(i * 0, x[0, 0, :3], accumulate=True)),
    "added to rows": lambda s, x, i: x.index_add(1, i, x[:, :3]),
    "copied to rows": lambda s, x, i: x.index_copy(2, i, x[..., 2:5]),
    "put in rows": lambda s, x, i: x.index_put((None, i), x[:, :3] * 2),
    "put in columns": lambda s, x, i: x.index_put((None, i, i), x[:, 0, :3], accumulate=True),
    "put apart": lambda s, x, i: x.index_put((i - 1, None, i), torch.ones(4)),
    "filled by a mask": lambda s, x, i: x.index_put((x > 0,), torch.tensor(5.0)),
    "diagonals": lambda s, x, i: (
        x.diagonal_scatter(x[:, :, 0] * 2, 0, 1, 2),
        x.diagonal_scatter(x[:, 0, :4], 3, -2, -1),
        x.diagonal_scatter(x[:, 0, :2], -2, 1, 2),
        x.mT.diagonal_scatter(x[:, :, 0], 0, -1, 1),
    ),
    "reduced by index": lambda s, x, i: tuple(
        x.scatter_reduce(1, PLACES, x[:, :3], reduce, include_self=included)
        for reduce in ("sum", "prod", "mean", "amax", "amin")
        for included in (True, False)
    ),
}


@pytest.mark.parametrize("name", INDEXED)
def test_counting_and_writing_by_index(name):
    export(INDEXED[name], X, INTS)


def test_how_often_may_change():
    sizes = {"args": (None, {0: torch.export.Dim("count")})}
    counted = lambda s, x, i: (torch.bincount(i, minlength=4), x.put(i, torch.zeros(i.shape)))
    program = export(counted, X, INTS, dynamic_shapes=sizes)
    more = torch.tensor([5, 5, 1, 0, 63])
    for got, wanted in zip(program(X, more), Function(counted)(X, more), strict=True):
        torch.testing.assert_close(got, wanted)


def test_strides_of_what_lies_otherwise_are_refused():
    with pytest.raises(NotImplementedError, match="not contiguous"):
        export(lambda s, x: x.mT.as_strided((3, 4), (2, 3)), X)


@pytest.mark.parametrize("replacement", [True, False])
def test_draws_follow_their_weights(replacement):
    weights = torch.tensor([[0.0, 1.0, 3.0], [2.0, 0.0, 0.5]]).repeat(500, 1)
    count = 4 if replacement else 2
    draw = lambda s, w: torch.multinomial(w, count, replacement)
    program = torch.onnx.export(Function(draw), (weights,))
    drawn = program(weights)[0]
    assert drawn.shape == (1000, count) and drawn.dtype == torch.int64
    assert not (drawn[::2] == 0).any() and not (drawn[1::2] == 1).any()
    # Three of four, or four of five, first draws; ten standard deviations wide.
    shares = (drawn[::2, 0] == 2).float().mean(), (drawn[1::2, 0] == 0).float().mean()
    assert 0.5 < shares[0] < 0.95 and 0.55 < shares[1] < 0.98
    if not replacement:
        assert (drawn[:, 0] != drawn[:, 1]).all()


class Unlike(nn.Module):
    """What has another shape at other sizes."""

    def forward(self, x):
        values, places = torch.unique(x.round(), return_inverse=True)
        return values[places], torch.roll(x, 3)


class WritesToInput(nn.Module):
    def forward(self, x, at, values):
        x.index_copy_(0, at, values)
        return x.sum(), x.mul_(2).mean(0)


@pytest.mark.parametrize("sizes", [(3, 4), (6, 2), (1, 1), (2, 9)])
def test_shapes_are_those_of_the_run(sizes):
    dims = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    program = torch.onnx.export(Unlike(), (torch.randn(2, 6),), dynamic_shapes=dims)
    x = torch.randn(sizes)
    for found, wanted in zip(program(x), Unlike()(x), strict=True):
        torch.testing.assert_close(found, wanted)


def test_what_is_written_to_an_input_is_no_result():
    given = torch.randn(4, 2), torch.tensor([0, 3]), torch.randn(2, 2)
    program = torch.onnx.export(WritesToInput(), given)
    wanted = WritesToInput()(given[0].clone(), *given[1:])
    for found, known in zip(program(*given), wanted, strict=True):
        torch.testing.assert_close(found, known)
