"""The ways in which convolutions and pooling of images with a deferred layout are computed."""

import pytest

import rushlight as rl
from rushlight.nn import functional as F

DTYPES = [rl.float32, rl.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("size", "stride"),
    [((13, 11), 1), ((13, 11), 2), ((12, 10), (3, 1)), ((1, 9), (2, 2)), ((5, 9, 7), (2, 1, 3))],
)
def test_filters_of_one_pixel_are_products(dtype, bias, size, stride):
    rl.manual_seed(0)
    convolve = F.conv2d if len(size) == 2 else F.conv3d
    layout = (
        rl.contiguous_format if len(size) == 2 else rl.channels_last_3d
    )  # the layout of planes is deferred
    x = rl.randn(5, 40, *size, dtype=dtype).contiguous(memory_format=layout)
    w = rl.randn(48, 40, *[1] * len(size), dtype=dtype)
    b = rl.randn(48, dtype=dtype) if bias else None
    leaves = [x, w] + ([b] if bias else [])
    for t in leaves:
        t.requires_grad_(True)
    y = convolve(x, w, b, stride=stride)
    g = rl.randn(y.shape, dtype=dtype)
    ours = [y, *rl.autograd.grad(y, leaves, g)]
    wide = [t.detach().double().contiguous().requires_grad_(True) for t in leaves]
    z = convolve(*wide, stride=stride)
    expected = [z, *rl.autograd.grad(z, wide, g.double())]
    tolerance = 1e-5 if dtype == rl.float32 else 1e-2
    for a, e in zip(ours, expected, strict=True):
        assert a.dtype == dtype and a.shape == e.shape
        assert (a.double() - e).abs().max() <= tolerance * e.abs().max()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("channels", [3, 64, 70])
def test_greatest_pixels_and_their_places(dtype, channels):
    rl.manual_seed(0)
    x = rl.randint(-3, 3, (2, channels, 9, 8)).to(dtype)  # with ties
    x[0, 0, 4, 4], x[1, 1, 2, 2], x[1, 2] = float("nan"), float("inf"), -float("inf")
    last = x.contiguous(memory_format=rl.channels_last)
    for pool in ({"kernel_size": 3, "stride": 2, "padding": 1}, {"kernel_size": 2, "dilation": 3}):
        values, places = F.max_pool2d(last, return_indices=True, **pool)
        plain_values, plain_places = F.max_pool2d(x, return_indices=True, **pool)
        assert values.is_contiguous(memory_format=rl.channels_last)
        assert rl.equal(places, plain_places)
        assert rl.equal(values.isnan(), plain_values.isnan())
        assert rl.equal(values.nan_to_num(), plain_values.nan_to_num())


@pytest.mark.parametrize("size", [14, 15, 27])
def test_few_tiles_go_through_the_transforms_too(size):
    rl.manual_seed(0)
    x, w = rl.randn(2, 64, size, size), rl.randn(64, 64, 3, 3)
    y, wide = F.conv2d(x, w, padding=1), F.conv2d(x.double(), w.double(), padding=1)
    assert (y.double() - wide).abs().max() <= 3e-6 * wide.abs().max()


@pytest.mark.parametrize("shape", [(2, 16, 70, 61), (3, 130, 40, 30), (1, 3, 8, 7)])
def test_statistics_do_not_depend_on_the_number_of_threads(shape):
    rl.manual_seed(0)
    x = (rl.randn(shape) * 3 + 100).contiguous(memory_format=rl.channels_last).requires_grad_(True)
    g, w = rl.randn(shape), rl.randn(shape[1], requires_grad=True)
    results, threads = [], rl.get_num_threads()
    try:
        for count in (1, 2, 3):
            rl.set_num_threads(count)
            y = F.batch_norm(x, None, None, w, None, True)
            results.append([y, *rl.autograd.grad(y, [x, w], g)])
    finally:
        rl.set_num_threads(threads)
    for other in results[1:]:
        assert all(rl.equal(a, b) for a, b in zip(results[0], other, strict=True))
    mean, variance = x.double().mean((0, 2, 3)), x.double().var((0, 2, 3), unbiased=False)
    expected = (x.double() - mean[:, None, None]) * ((variance + 1e-5).rsqrt() * w.double())[:, None, None]
    assert (results[0][0].double() - expected).abs().max() < 1e-4


@pytest.mark.parametrize("dilation", [1, 3])
@pytest.mark.parametrize("padding", range(6))
@pytest.mark.parametrize("kernel", [1, 3, 4, (5, 2)])
@pytest.mark.parametrize("size", [(1, 1), (4, 7), (8, 3)])
def test_columns_of_pixels(size, kernel, padding, dilation):
    """Double precision multiplies columns of pixels, which are one piece of memory where widths agree."""
    torch = pytest.importorskip("torch")
    high, wide = (kernel, kernel) if isinstance(kernel, int) else kernel
    if any(s + 2 * padding <= dilation * (k - 1) for s, k in zip(size, (high, wide))):
        pytest.skip("the filter is larger than the image")
    rl.manual_seed(0)
    x, w = rl.randn(2, 3, *size, dtype=rl.float64), rl.randn(4, 3, high, wide, dtype=rl.float64)
    convolve = torch.nn.functional.conv2d
    wanted = convolve(*map(torch.from_numpy, (x.numpy(), w.numpy())), padding=padding, dilation=dilation)
    given = F.conv2d(x, w, padding=padding, dilation=dilation)
    assert abs(given.numpy() - wanted.numpy()).max() < 1e-12


@pytest.mark.parametrize(
    ("channels", "groups", "size", "kernel", "settings"),
    [
        ((24, 16), 2, (5, 9, 7), 3, {"padding": 1}),
        ((24, 16), 2, (6, 9, 8), (2, 3, 3), {"stride": (2, 1, 2), "padding": (0, 1, 2)}),
        ((16, 32), 1, (7, 6, 11), (3, 1, 2), {"dilation": (2, 3, 1)}),
        ((3, 32), 1, (4, 8, 9), 3, {"stride": 2, "padding": 1}),
        ((64, 40), 1, (3, 7, 7), (1, 3, 3), {"padding": (1, 0, 1)}),
    ],
)
def test_volumes_by_lines(channels, groups, size, kernel, settings):
    rl.manual_seed(0)
    into, out = channels
    kernel = (kernel,) * 3 if isinstance(kernel, int) else kernel
    x, w = rl.randn(2, into, *size), rl.randn(out, into // groups, *kernel)
    for layout in (rl.contiguous_format, rl.channels_last_3d):
        leaves = [x.contiguous(memory_format=layout).requires_grad_(), w.clone().requires_grad_()]
        y = F.conv3d(*leaves, groups=groups, **settings)
        g = rl.randn(y.shape)
        ours = [y, *rl.autograd.grad(y, leaves, g)]
        wide = [t.detach().double().contiguous().requires_grad_() for t in leaves]
        z = F.conv3d(*wide, groups=groups, **settings)
        for a, e in zip(ours, [z, *rl.autograd.grad(z, wide, g.double())], strict=True):
            assert (a.double() - e).abs().max() <= 3e-6 * e.abs().max()
