"""stft, istft and the windows: against PyTorch where it is installed, and back again."""

import itertools
import warnings

import numpy as np
import pytest

import rushlight as rl


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def noise(*shape):
    return np.random.default_rng(3).standard_normal(shape)


def result_of(call, *args):
    try:
        return call(*args).numpy()
    except RuntimeError:
        return RuntimeError


def same(mine, theirs):
    if theirs is RuntimeError or mine is RuntimeError:
        return mine is theirs
    return mine.shape == theirs.shape and np.allclose(mine, theirs, atol=1e-10)


def forward_and_back(T, x, sizes, window, center, normalized, onesided):
    """The results of stft and of istft in its forms."""
    x, window = (None if a is None else T.from_numpy(a) for a in (x, window))
    common = (*sizes, window, center)
    rest = (normalized, onesided)
    yield result_of(lambda: T.stft(x, *common, "constant", *rest, return_complex=True))
    spectra = T.stft(x, *common, "reflect", *rest, return_complex=True)
    for length, as_complex in itertools.product((None, 60), (False, True)):
        yield result_of(lambda *last: T.istft(spectra, *common, *rest, *last), length, as_complex)


@pytest.mark.parametrize("sizes", [(8, None, None), (9, 3, 7), (8, 2, 4)])
@pytest.mark.parametrize("shape", [(40,), (2, 37)])
def test_as_pytorch(sizes, shape):
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # its threads spin, which on a busy machine costs seconds a call
    real = np.hanning((sizes[2] or sizes[0]) + 2)[1:-1]
    windows = (None, real.copy(), real * (1 + 0.5j))
    for case in itertools.product(windows, [True, False], [False, True], [None, False]):
        mine, theirs = (list(forward_and_back(T, noise(*shape), sizes, *case)) for T in (rl, torch))
        assert all(map(same, mine, theirs)), case


def test_there_and_back():
    x = rl.from_numpy(noise(3, 64))
    window = rl.hann_window(16, dtype=rl.float64)
    spectra = rl.stft(x, 16, 4, window=window, return_complex=True)
    assert rl.istft(spectra, 16, 4, window=window, length=64).allclose(x)
    assert x.stft(16, 4, window=window, return_complex=True).equal(spectra)
    assert spectra.istft(16, 4, window=window, length=64).allclose(x)
    real = rl.stft(x, 16, 4, window=window, return_complex=False)
    assert real.equal(rl.view_as_real(spectra))


def test_aligned_to_the_window():
    """The first frame's window starts with the signal."""
    x, window = rl.arange(1.0, 21.0), rl.ones(4)
    aligned = rl.stft(x, 8, 2, 4, window, center=False, return_complex=True, align_to_window=True)
    assert aligned.shape == (5, 9) and aligned[0, 0].real.item() == pytest.approx(1 + 2 + 3 + 4)
    # More points than the window has, to either side, do not run past the signal's end.
    assert rl.stft(x, 9, 2, 6, center=False, return_complex=True, align_to_window=True).shape == (5, 8)


def test_gradients():
    x = rl.from_numpy(noise(14)).requires_grad_()
    window = rl.from_numpy(np.hanning(8)[1:-1].copy()).requires_grad_()
    forward = lambda x, w: rl.view_as_real(rl.stft(x, 8, 3, 6, w, return_complex=True))
    assert rl.autograd.gradcheck(forward, (x, window))
    assert rl.autograd.gradgradcheck(forward, (x, window))
    spectra = rl.stft(x, 8, 3, 6, window, return_complex=True).detach().requires_grad_()
    assert rl.autograd.gradcheck(lambda s, w: rl.istft(s, 8, 3, 6, w), (spectra, window))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: rl.stft(x, 8), "stft requires the return_complex parameter be given for real inputs"),
        (
            lambda x: rl.stft(x.long(), 8, return_complex=True),
            "expected a tensor of floating point or complex",
        ),
        (lambda x: rl.stft(x, 8, 0, return_complex=True), "expected hop_length > 0, but got hop_length=0"),
        (
            lambda x: rl.stft(x, 30, center=False, return_complex=True),
            "expected 0 < n_fft < 20, but got n_fft=30",
        ),
        (lambda x: rl.stft(x, -4, return_complex=True), "expected 0 < n_fft"),
        (lambda x: rl.stft(x, 8, 2, 9, return_complex=True), "expected 0 < win_length <= n_fft"),
        (
            lambda x: rl.stft(x, 8, 2, 4, rl.ones(5), return_complex=True),
            "expected a 1D window tensor of size",
        ),
        (lambda x: rl.stft(x[None, None], 8, return_complex=True), "expected a 1D or 2D tensor"),
        (
            lambda x: rl.stft(x, 8, return_complex=True, align_to_window=True),
            "should only be set when center",
        ),
        (
            lambda x: rl.stft(x.to(rl.complex64), 8, onesided=True, return_complex=True),
            "Cannot have onesided output",
        ),
        (lambda x: rl.istft(x, 8), "istft requires a complex-valued input tensor"),
        (lambda x: rl.istft(rl.zeros(5, 0, dtype=rl.complex64), 8), "input tensor cannot be empty"),
        (
            lambda x: rl.istft(rl.zeros(5, 3, dtype=rl.complex64), 8, 9),
            "expected 0 < hop_length <= win_length",
        ),
        (lambda x: rl.istft(rl.zeros(6, 3, dtype=rl.complex64), 8), "expected the frequency dimension"),
        (
            lambda x: rl.istft(rl.zeros(5, 3, dtype=rl.complex64), 8, 8, window=rl.zeros(8)),
            "window overlap add min",
        ),
    ],
)
def test_refusals(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(rl.zeros(20))


SIGNAL = {
    "bartlett": {},
    "blackman": {},
    "cosine": {},
    "hamming": {},
    "hann": {},
    "nuttall": {},
    "exponential": {"tau": 3.0},
    "gaussian": {"std": 2.5},
    "kaiser": {"beta": 8.0},
    "general_cosine": {"a": [0.4, 0.3, 0.2]},
    "general_hamming": {"alpha": 0.7},
}


@pytest.mark.parametrize("name", SIGNAL)
@pytest.mark.parametrize("sym", [True, False])
def test_signal_windows_are_scipys(name, sym):
    scipy = pytest.importorskip("scipy.signal")
    for points in (1, 2, 7, 12):
        given = SIGNAL[name]
        # SciPy's nuttall has the same four terms.
        reference = getattr(scipy.windows, name)
        expected = reference(points, sym=sym, **given)
        window = getattr(rl.signal.windows, name)(points, sym=sym, dtype=rl.float64, **given)
        np.testing.assert_allclose(window.numpy(), expected, atol=1e-12)
    assert getattr(rl.signal.windows, name)(0, sym=sym, **given).shape == (0,)


def test_signal_window_refusals():
    windows = rl.signal.windows
    for call, message in [
        (lambda: windows.hann(-1), "requires non-negative window length, got M=-1"),
        (lambda: windows.hann(3, dtype=rl.int64), "expects float32 or float64 dtypes, got: torch.int64"),
        (lambda: windows.exponential(3, tau=-1), "Tau must be positive, got: -1 instead"),
        (lambda: windows.exponential(3, center=1.0), "Center must be None for symmetric windows"),
        (lambda: windows.gaussian(3, std=0), "Standard deviation must be positive"),
        (lambda: windows.kaiser(3, beta=-1), "beta must be non-negative"),
        (lambda: windows.general_cosine(3, a=[]), "Coefficients cannot be empty"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(TypeError, match="Coefficients must be a list/tuple"):
        windows.general_cosine(3, a=3)


@pytest.mark.parametrize("name", ["hann", "hamming", "bartlett", "blackman", "kaiser"])
def test_top_level_windows_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    name += "_window"
    for points, periodic, dtype in itertools.product((0, 1, 2, 9), (True, False), ("float32", "float64")):
        mine, theirs = (getattr(T, name)(points, periodic, dtype=getattr(T, dtype)) for T in (rl, torch))
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=2e-6 if dtype == "float32" else 1e-12)
        assert mine.numpy().dtype == theirs.numpy().dtype
    assert getattr(rl, name)(4, requires_grad=True).requires_grad
    assert getattr(rl, name)(4, dtype=rl.bfloat16).dtype == rl.bfloat16
    with pytest.raises(RuntimeError, match="non-negative window_length, got window_length=-2"):
        getattr(rl, name)(-2)
    with pytest.raises(RuntimeError, match="expects? floating point dtypes"):
        getattr(rl, name)(3, dtype=rl.int32)


def test_window_parameters():
    torch = pytest.importorskip("torch")
    for mine, theirs in (
        (rl.hamming_window(7, True, alpha=0.6, beta=0.3), torch.hamming_window(7, True, alpha=0.6, beta=0.3)),
        (rl.hamming_window(7, False, 0.6, 0.3), torch.hamming_window(7, False, 0.6, 0.3)),
        (rl.kaiser_window(7, True, 3.0), torch.kaiser_window(7, True, 3.0)),
        (rl.kaiser_window(7, periodic=False, beta=3.0), torch.kaiser_window(7, periodic=False, beta=3.0)),
    ):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-6)
