"""torch.fft beyond the operator rows: refusals, symmetry, layouts, threads, many shapes."""

import threading

import numpy as np
import pytest

import rushlight as rl


def noise(*shape, complex=True, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal(shape)
    return x + 1j * generator.standard_normal(shape) if complex else x


@pytest.mark.parametrize("length", [1, 2, 3, 8, 31, 37, 97, 360, 1009, 4096, 10007])
def test_lengths(length):
    x = noise(3, length)
    for forward, inverse in ((rl.fft.fft, np.fft.fft), (rl.fft.ifft, np.fft.ifft)):
        np.testing.assert_allclose(
            forward(rl.from_numpy(x)).numpy(), inverse(x), rtol=0, atol=1e-10 * length**0.5
        )
    real = x.real.copy()
    half = rl.fft.rfft(rl.from_numpy(real))
    np.testing.assert_allclose(half.numpy(), np.fft.rfft(real), rtol=0, atol=1e-10 * length**0.5)
    np.testing.assert_allclose(rl.fft.irfft(half, length).numpy(), real, rtol=0, atol=1e-12)


def test_input_survives_every_transform():
    for name in ("fft", "ifft", "irfft", "hfft", "irfftn", "hfftn", "ifftn"):
        x = rl.from_numpy(noise(6, 5))
        before = x.clone()
        getattr(rl.fft, name)(x)
        assert rl.equal(x, before), name


@pytest.mark.parametrize(
    "view",
    [
        lambda t: t[::-1],
        lambda t: t[:, ::-2],
        lambda t: t.T,
        lambda t: t[0].expand(3, -1),
        lambda t: t[::2, 1:],
    ],
)
def test_views(view):
    x = noise(6, 8)
    v = view(rl.from_numpy(x))
    np.testing.assert_allclose(rl.fft.fft2(v).numpy(), np.fft.fft2(v.numpy()), atol=1e-12)
    np.testing.assert_allclose(rl.fft.irfftn(v).numpy(), np.fft.irfftn(v.numpy()), atol=1e-12)


@pytest.mark.parametrize(
    "shape, dim", [((4, 5, 6, 7), (0, 2)), ((4, 5, 6, 7), (3, 1)), ((2, 3, 2, 3, 4), (1,))]
)
def test_batches_around_the_dimensions(shape, dim):
    x = noise(*shape)
    np.testing.assert_allclose(
        rl.fft.fftn(rl.from_numpy(x), dim=dim).numpy(), np.fft.fftn(x, axes=dim), atol=1e-11
    )
    np.testing.assert_allclose(
        rl.fft.rfftn(rl.from_numpy(x.real.copy()), dim=dim).numpy(),
        np.fft.rfftn(x.real, axes=dim),
        atol=1e-11,
    )


def test_parts_that_a_real_signal_cannot_have_do_not_count():
    x = noise(5)
    clean = x.copy()
    clean[0], clean[-1] = clean[0].real, clean[-1].real
    assert rl.fft.irfft(rl.from_numpy(x)).allclose(rl.fft.irfft(rl.from_numpy(clean)))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: rl.fft.fft(x, 0), "Invalid number of data points \\(0\\) specified"),
        (lambda x: rl.fft.fft(x, norm="unitary"), 'Invalid normalization mode: "unitary"'),
        (lambda x: rl.fft.rfft(x.to(rl.complex64)), "rfft expects a real input tensor, but got ComplexFloat"),
        (lambda x: rl.fft.irfft(x[:, :1]), "Invalid number of data points \\(0\\) specified"),
        (lambda x: rl.fft.fftn(x, dim=(0, -2)), "FFT dims must be unique"),
        (
            lambda x: rl.fft.fftn(x, s=(1, 2, 3)),
            "Got shape with 3 values but input tensor only has 2 dimensions",
        ),
        (lambda x: rl.fft.fftn(x, s=(1,), dim=(0, 1)), "dim and shape arguments must have the same length"),
        (lambda x: rl.fft.rfftn(x, dim=()), "rfftn must transform at least one axis"),
        (lambda x: rl.fft.fft(x.half()), "Unsupported dtype Half"),
        (lambda x: rl.fft.fft(x, out=rl.empty(2, 4)), "fft expects a complex output tensor, but got Float"),
        (lambda x: rl.fft.irfft(x, out=rl.empty(0, dtype=rl.complex64)), "expects a floating point output"),
        (lambda x: rl._fft_c2r(x.to(rl.complex64), [1], 0, 99), "99 real points need 50 complex ones"),
        (lambda x: rl._fft_c2c(x.to(rl.complex64), [1], 5, True), "Unsupported normalization type 5"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(rl.zeros(2, 4))


def test_dimension_out_of_range():
    with pytest.raises(IndexError, match="expected to be in range"):
        rl.fft.fft(rl.zeros(2, 4), dim=2)
    with pytest.raises(IndexError):
        rl.fft.fft(rl.tensor(1.0))


def test_frequencies():
    for n in (0, 1, 2, 5, 8):
        if n:
            np.testing.assert_allclose(
                rl.fft.fftfreq(n, 0.5, dtype=rl.float64).numpy(), np.fft.fftfreq(n, 0.5)
            )
            np.testing.assert_allclose(
                rl.fft.rfftfreq(n, 0.5, dtype=rl.float64).numpy(), np.fft.rfftfreq(n, 0.5)
            )
        assert rl.fft.fftfreq(n).shape == (n,)
    out = rl.empty(0, dtype=rl.float64)
    assert rl.fft.fftfreq(4, out=out) is out and out.tolist() == [0.0, 0.25, -0.5, -0.25]
    assert rl.fft.rfftfreq(4, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="fftfreq requires a floating point or complex dtype"):
        rl.fft.fftfreq(4, dtype=rl.int64)


def test_meta():
    assert rl.fft.rfft2(rl.empty(3, 8, 9, device="meta")).shape == (3, 8, 5)
    assert rl.fft.irfft(rl.empty(3, 5, device="meta")).shape == (3, 8)


def test_one_plan_serves_many_threads():
    x = noise(64, 60)
    expected = np.fft.fft2(x)
    wrong = []

    def work():
        for _ in range(20):
            if not np.allclose(rl.fft.fft2(rl.from_numpy(x)).numpy(), expected):
                wrong.append(True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_many_shapes_one_after_the_other():
    """More shapes than plans are kept, twice."""
    for _ in range(2):
        for n in range(2, 150):
            x = noise(n)
            np.testing.assert_allclose(rl.fft.fft(rl.from_numpy(x)).numpy(), np.fft.fft(x), atol=1e-11)


def test_no_transforms_at_all():
    """A batch of none, which PyTorch refuses for real transforms."""
    assert rl.fft.fft(rl.zeros(0, 5)).shape == (0, 5)
    assert rl.fft.rfft(rl.zeros(0, 5)).shape == (0, 3)
    assert rl.fft.irfft(rl.zeros(0, 5)).shape == (0, 8)


@pytest.mark.parametrize("name", ["fft", "ifft", "fft2", "ifftn", "irfft", "irfft2", "hfft", "hfftn"])
def test_half_precision_is_refused(name):
    for dtype in (rl.complex32, rl.float16, rl.bfloat16, rl.float8_e5m2):
        with pytest.raises(RuntimeError, match="Unsupported dtype"):
            getattr(rl.fft, name)(rl.ones(4, 4).to(dtype))
    for primitive, rest in ((rl._fft_c2c, True), (rl._fft_c2r, 4)):
        with pytest.raises(RuntimeError, match="Unsupported dtype ComplexHalf"):
            primitive(rl.ones(4, 4, dtype=rl.complex32), [1], 0, rest)
