"""What CUDA's libraries compute, and recurrent layers; test_cuda.py runs them on the emulated device, where
the library's own host code runs and the CPU stands for cuBLASLt and cuFFT."""

import sys

import pytest
from device_layers import compare, computed_there

import rushlight as torch
from rushlight.nn.utils.rnn import pack_padded_sequence


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_recurrent_layers(kind, packed, dtype):
    computed_there("_thnn_fused_lstm_cell", "_thnn_fused_lstm_cell_backward")
    computed_there("_thnn_fused_gru_cell", "_thnn_fused_gru_cell_backward")
    options = {"num_layers": 2, "bidirectional": True, "batch_first": True, "dtype": dtype}
    here = getattr(torch.nn, kind)(5, 7, **options)
    there = getattr(torch.nn, kind)(5, 7, **options)
    there.load_state_dict(here.state_dict())
    there.cuda()
    x = torch.randn(3, 6, 5, dtype=dtype)

    def run(model, x):
        x = x.clone().requires_grad_()
        given = pack_padded_sequence(x, [6, 4, 2], batch_first=True) if packed else x
        output, state = model(given)
        output = output.data if packed else output
        state = state if isinstance(state, tuple) else (state,)
        (output.square().sum() + sum(s.sin().sum() for s in state)).backward()
        return [output, *state, x.grad, *(p.grad for p in model.parameters())]

    for got, wanted in zip(run(there, x.cuda()), run(here, x), strict=True):
        assert got.is_cuda
        torch.testing.assert_close(got.cpu(), wanted, atol=1e-5, rtol=1e-4)


# Narrow layers, which are one launch, in both widths; a launch a step, for few rows, and for some dozens in
# float; and two, for many.
@pytest.mark.parametrize(
    "batch, hidden",
    [(1, 5), (16, 64), (17, 70), (3, 128), (5, 130), (33, 132), (257, 9), (33, 136), (70, 200), (128, 256)],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_lstm_sizes(batch, hidden, dtype):
    here, there = (torch.nn.LSTM(3, hidden, dtype=dtype) for _ in range(2))
    there.load_state_dict(here.state_dict())
    there.cuda()
    x, h, c = torch.randn(4, batch, 3), torch.randn(1, batch, hidden), torch.randn(1, batch, hidden)
    results = []
    for model in (here, there):
        device = next(model.parameters()).device
        given = [t.to(device, dtype).detach().requires_grad_() for t in (x, h, c)]
        output, (last, cell) = model(given[0], (given[1], given[2]))
        (output.square().sum() + last.sin().sum() + cell.cos().sum()).backward()
        leaves = [*given, *model.parameters()]
        results.append([t.detach().double().cpu() for t in (output, last, cell, *(p.grad for p in leaves))])
        with torch.no_grad():  # nothing is kept
            torch.testing.assert_close(model(given[0], (given[1], given[2]))[0], output)
    tolerance = 0.1 if dtype == torch.bfloat16 else 1e-4
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, atol=tolerance * wanted.abs().max().item(), rtol=tolerance)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_steps_lie_one_after_the_other(kind):  # as PyTorch's do: dropout after it draws in this order
    layer = getattr(torch.nn, kind)(3, 5, batch_first=True, bidirectional=True).cuda()
    assert layer(torch.ones(2, 4, 3, device="cuda"))[0].stride() == (10, 20, 1)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_of_halves(kind):
    here = getattr(torch.nn, kind)(6, 8).half()
    x = torch.randn(4, 6).half()
    wanted = here(x)
    got = here.cuda()(x.cuda())
    for a, b in zip(got, wanted, strict=True):
        torch.testing.assert_close(a.cpu(), b, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("inner", [4, 5])  # the emulated cuBLASLt refuses odd ones
def test_products_with_a_bias(inner):
    x, weight, bias = torch.randn(2, 3, inner), torch.randn(6, inner), torch.randn(6)
    for dtype in (torch.float32, torch.float64):
        operands = [t.to(dtype) for t in (x, weight, bias)]
        compare(torch.nn.functional.linear, *operands, atol=1e-5, rtol=1e-5)
        rows = operands[0].flatten(0, 1)
        compare(lambda b, x, w: torch.addmm(b, x, w.t()), operands[2], rows, operands[1])
        compare(lambda b, x, w: torch.addmm(b, x, w.t(), alpha=2), operands[2], rows, operands[1])
    with torch.no_grad():
        there = torch._addmm_activation(*(t.cuda() for t in (bias, x[0], weight.t())), use_gelu=True)
        wanted = torch.nn.functional.gelu(torch.addmm(bias, x[0], weight.t()), approximate="tanh")
        torch.testing.assert_close(there.cpu(), wanted, atol=1e-5, rtol=1e-5)


TRANSFORMS = ["fft", "ifft", "rfft", "ihfft", "fft2", "fftn", "rfft2", "rfftn"]
FROM_HALVES = ["irfft", "hfft", "irfft2", "irfftn"]
LAYOUTS = [lambda t: t, lambda t: t.transpose(0, 3), lambda t: t[:, ::2]]


@pytest.mark.parametrize("name", TRANSFORMS + FROM_HALVES)
def test_fourier_transforms(name):
    computed_there("_fft_c2c", "_fft_r2c", "_fft_c2r")
    f = getattr(torch.fft, name)
    x = torch.randn(3, 4, 5, 6, dtype=torch.float64)
    if name in FROM_HALVES:
        x = torch.complex(x, torch.randn_like(x))
    close = {"atol": 1e-9, "rtol": 1e-9}
    for layout in LAYOUTS:
        compare(lambda t, v=layout: torch.view_as_real(r) if (r := f(v(t))).is_complex() else r, x, **close)
    compare(lambda t: f(t, norm="ortho").abs(), x, **close)
    if name.endswith("n"):  # more axes than cuFFT takes at once
        compare(lambda t: f(t[None].expand(2, -1, -1, -1, -1)).abs(), x, **close)


def test_short_time_transforms():
    x, window = torch.randn(2, 400, dtype=torch.float64), torch.hann_window(64, dtype=torch.float64)

    def there_and_back(t):
        w = window.to(t.device)
        spectrum = torch.stft(t, 64, window=w, return_complex=True)
        return torch.istft(spectrum * 2, 64, window=w)

    compare(there_and_back, x, atol=1e-9, rtol=1e-9)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
