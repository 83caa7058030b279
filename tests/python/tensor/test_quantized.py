"""Quantised tensors: integers, and what they stand for, as PyTorch has them."""

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import rushlight

oracle = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")
BOTH = (rushlight, oracle)
NAMES = ("quint8", "qint8", "qint32")
inf, nan = np.inf, np.nan
RNG = np.random.default_rng(0)
IMAGE = RNG.standard_normal((2, 3, 4, 4)).astype(np.float32)
MASK = RNG.random((2, 3, 4, 4)) > 0.5


def per_tensor(library, values=IMAGE, scale=0.1, zero=30, dtype="quint8"):
    return library.quantize_per_tensor(library.tensor(values), scale, zero, getattr(library, dtype))


def per_channel(library, values=IMAGE, axis=1, dtype="qint8", zeros=(1, -2, 3)):
    scales = library.tensor([0.1, 0.2, 0.3])
    return library.quantize_per_channel(
        library.tensor(values), scales, library.tensor(zeros), axis, getattr(library, dtype)
    )


def seen(value):
    """What a result is, for comparison across libraries."""
    if isinstance(value, (tuple, list)):
        return [seen(v) for v in value]
    if not hasattr(value, "is_quantized"):
        return value
    if not value.is_quantized:
        return str(value.dtype), tuple(value.shape), value.tolist()
    facts = [str(value.dtype), tuple(value.shape), value.stride(), str(value.qscheme())]
    if value.qscheme() == type(value).__module__ and None:
        return facts
    if "tensor" in str(value.qscheme()):
        facts += [np.float32(value.q_scale()), value.q_zero_point()]
    else:
        facts += [value.q_per_channel_axis(), seen(value.q_per_channel_scales())]
        facts += [seen(value.q_per_channel_zero_points())]
    return [*facts, value.int_repr().tolist()]


def agree(call, make):
    ours, theirs = (seen(call(library, make(library))) for library in BOTH)
    assert ours == theirs


# --- rounding


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("scale", [1.0, 0.1, 0.037, 1e-3, 7.3])
def test_rounding_is_pytorchs(dtype, scale):
    steps = np.arange(-300, 300)
    halves = (steps + 0.5) * np.float32(scale)
    for x in (halves, np.nextafter(halves, inf), np.nextafter(halves, -inf), RNG.standard_normal(1000) * 40):
        x = x.astype(np.float32)
        for zero in (0, 3, -7, 100):
            if dtype == "quint8" and zero < 0:
                continue
            settings = (x, scale, zero, dtype)
            agree(lambda L, q: [q, q.dequantize()], lambda L, s=settings: per_tensor(L, *s))

            def channel(L, x=x, zero=zero):
                return L.quantize_per_channel(
                    L.tensor(x)[None], L.tensor([scale]), L.tensor([zero]), 0, getattr(L, dtype)
                )

            agree(lambda L, q: [q, q.dequantize()], channel)


@pytest.mark.parametrize("dtype", NAMES)
def test_what_no_integer_holds(dtype):
    x = np.array([inf, -inf, 1e30, -1e30, 1e10, 9e18, -1e19, 300, -300], np.float32)
    agree(lambda library, q: q, lambda library: per_tensor(library, x, 1.0, 3, dtype))
    # NaN becomes the highest integer, as in PyTorch's vector loops; its others give 0.
    found = per_tensor(rushlight, np.array([nan] * 8, np.float32), 1.0, 3, "quint8")
    assert found.int_repr().tolist() == [255] * 8


def test_overflow_does_not_wrap():
    """PyTorch subtracts zero points in 32 bits."""
    q = rushlight._make_per_tensor_quantized_tensor(
        rushlight.tensor([-(2**31), 2**31 - 1], dtype=rushlight.int32), 1.0, 3
    )
    assert q.dequantize().tolist() == [-(2.0**31), 2.0**31]


def test_channels_last_and_strided_inputs():
    image = rushlight.tensor(IMAGE)
    for x in (image.to(memory_format=rushlight.channels_last), image[:, :, ::2], image.transpose(0, 3)):
        scales, zeros = rushlight.rand(x.shape[1]) + 0.1, rushlight.arange(x.shape[1])
        q = rushlight.quantize_per_channel(x, scales, zeros, 1, rushlight.quint8)
        plain = rushlight.quantize_per_channel(x.contiguous(), scales, zeros, 1, rushlight.quint8)
        assert rushlight.equal(q.int_repr(), plain.int_repr())
        assert rushlight.equal(q.dequantize(), plain.dequantize())
    assert per_tensor(rushlight).contiguous(memory_format=rushlight.channels_last).stride() == (48, 1, 12, 3)


# --- operators

VIEWS = {
    "view": lambda L, q: q.view(6, 16),
    "reshape": lambda L, q: q.reshape(-1),
    "permute": lambda L, q: q.permute(1, 0, 2, 3),
    "transpose": lambda L, q: q.transpose(0, 1),
    "slice": lambda L, q: q[:, 1:],
    "select": lambda L, q: q[0],
    "unsqueeze": lambda L, q: q.unsqueeze(0),
    "squeeze": lambda L, q: q[:1].squeeze(0),
    "expand": lambda L, q: q[:1].expand(5, 3, 4, 4),
    "flatten": lambda L, q: q.flatten(1),
    "split": lambda L, q: q.split(1),
    "chunk": lambda L, q: q.chunk(2),
    "unbind": lambda L, q: q.unbind(0),
    "t": lambda L, q: q[0, 0].t(),
    "mT": lambda L, q: q.mT,
    "unfold": lambda L, q: q.unfold(2, 2, 1),
    "as_strided": lambda L, q: q.as_strided((2, 2), (1, 1)),
    "movedim": lambda L, q: q.movedim(0, 1),
    "detach": lambda L, q: q.detach(),
    "data": lambda L, q: q.data,
}
MOVES = {
    "contiguous": lambda L, q: q.transpose(2, 3).contiguous(),
    "clone": lambda L, q: q.clone(),
    "channels_last": lambda L, q: q.to(memory_format=L.channels_last),
    "index": lambda L, q: q[L.tensor([1, 0])],
    "mask": lambda L, q: q[L.tensor(MASK)],
    "flip": lambda L, q: q.flip(0),
    "index_select": lambda L, q: q.index_select(0, L.tensor([1])),
    "repeat": lambda L, q: q.repeat(2, 1, 1, 1),
    "cat": lambda L, q: L.cat([q, q]),
    "cat of two": lambda L, q: L.cat([q, L.quantize_per_tensor(q.dequantize(), 0.3, 20, L.quint8)]),
    "stack": lambda L, q: L.stack([q, q]),
    "max": lambda L, q: q.max(),
    "max.dim": lambda L, q: q.max(1),
    "min": lambda L, q: q.min(),
    "sort": lambda L, q: q.sort(stable=True),
    "topk": lambda L, q: q.topk(1),
    "max_pool2d": lambda L, q: L.nn.functional.max_pool2d(q, 2),
    "nearest": lambda L, q: L.nn.functional.interpolate(q, scale_factor=2),
    "pad": lambda L, q: L.nn.functional.pad(q, (1, 1)),
    "reflect": lambda L, q: L.nn.functional.pad(q, (1, 1, 1, 1), mode="reflect"),
    "channel_shuffle": lambda L, q: L.channel_shuffle(q, 3),
    "copy.deepcopy": lambda L, q: copy.deepcopy(q),
    "pickle": lambda L, q: pickle.loads(pickle.dumps(q)),
    "share_memory_": lambda L, q: q.clone().share_memory_(),
}
WRITES = {
    "fill_": lambda L, q: q.clone().fill_(0.5),
    "copy_": lambda L, q: L.quantize_per_tensor(L.zeros(2, 3, 4, 4), 0.3, 5, q.dtype).copy_(q),
    "copy_ of numbers": lambda L, q: q.clone().copy_(L.ones(2, 3, 4, 4) * 0.33),
    "setitem": lambda L, q: _written(q, 0, 0.5),
    "setitem of integers": lambda L, q: _written(q, 0, q[1]),
    "setitem by mask": lambda L, q: _written(q, L.tensor(MASK), 0.5),
    "setitem by index": lambda L, q: _written(q, L.tensor([1]), 0.5),
    "masked_fill": lambda L, q: q.masked_fill(L.tensor(MASK), 0.5),
    "masked_fill_": lambda L, q: q.clone().masked_fill_(L.tensor(MASK), 0.5),
    "ones_like": lambda L, q: L.ones_like(q),
    "full_like": lambda L, q: L.full_like(q, 0.5),
    "resize_": lambda L, q: q.clone().resize_(3, 4),
    "unsqueeze_": lambda L, q: q.clone().unsqueeze_(0),
    "t_": lambda L, q: q[0, 0].clone().t_(),
    "relu_": lambda L, q: q.clone().relu_(),
    "set_": lambda L, q: q.clone().set_(q.untyped_storage(), 0, (4,), (1,)),
}
NUMBERS = {
    "eq": lambda L, q: q == q,
    "ne": lambda L, q: q != q,
    "lt": lambda L, q: q < 0.3,
    "le": lambda L, q: q <= 0.1,
    "gt": lambda L, q: q > q,
    "ge": lambda L, q: q >= 0.0,
    "equal": lambda L, q: q.equal(q.clone()),
    "item": lambda L, q: q[0, 1, 2, 3].item(),
    "float": lambda L, q: float(q[0, 0, 0, 0]),
    "dequantize": lambda L, q: q.dequantize(),
    "dequantize several": lambda L, q: L.dequantize([q, q[0]]),
    "int_repr": lambda L, q: q.int_repr(),
    "facts": lambda L, q: [q.is_quantized, q.is_floating_point(), q.element_size(), q.type(), len(q)],
    "bytes": lambda L, q: q.untyped_storage().nbytes(),
}
FUNCTIONS = {
    "relu": lambda L, q: q.relu(),
    "relu6": lambda L, q: L.nn.functional.relu6(q),
    "clamp": lambda L, q: q.clamp(0.2, 0.7),
    "hardtanh": lambda L, q: L.nn.functional.hardtanh(q),
    "leaky_relu": lambda L, q: L.nn.functional.leaky_relu(q),
    "sigmoid": lambda L, q: q.sigmoid(),
    "tanh": lambda L, q: q.tanh(),
    "hardsigmoid": lambda L, q: L.nn.functional.hardsigmoid(q),
    "gelu": lambda L, q: L.nn.functional.gelu(q),
    "avg_pool2d": lambda L, q: L.nn.functional.avg_pool2d(q, 2),
    "adaptive_avg_pool2d": lambda L, q: L.nn.functional.adaptive_avg_pool2d(q, 1),
    "mean": lambda L, q: q.mean((2, 3)),
    "mean of all": lambda L, q: q.mean(),
    "bilinear": lambda L, q: L.nn.functional.interpolate(q, scale_factor=2, mode="bilinear"),
}
# By channel PyTorch refuses what moves channels, and reads scales of others after some views.
SAME_BY_CHANNEL = {
    "view of rows": lambda L, q: q.view(2, 3, 16),
    "slice": lambda L, q: q[1:],
    "select": lambda L, q: q[0],
    "one channel": lambda L, q: q.select(1, 1),
    "unsqueeze": lambda L, q: q.unsqueeze(0),
    "squeeze": lambda L, q: q[:1].squeeze(0),
    "flatten": lambda L, q: q.flatten(2),
    **{name: VIEWS[name] for name in ("split", "chunk", "unbind", "detach", "data")},
    **{name: MOVES[name] for name in ("clone", "channels_last", "copy.deepcopy", "pickle", "share_memory_")},
    **{name: WRITES[name] for name in ("fill_", "copy_ of numbers", "setitem", "ones_like", "full_like")},
    **NUMBERS,
}


def _written(q, at, value):
    q = q.clone()
    q[at] = value
    return q


@pytest.mark.parametrize("name", [*VIEWS, *MOVES, *WRITES, *NUMBERS, *FUNCTIONS])
def test_operators_with_one_scale(name):
    agree({**VIEWS, **MOVES, **WRITES, **NUMBERS, **FUNCTIONS}[name], per_tensor)


@pytest.mark.parametrize("name", SAME_BY_CHANNEL)
def test_operators_with_a_scale_for_each_channel(name):
    agree(SAME_BY_CHANNEL[name], per_channel)


@pytest.mark.parametrize("name", ["permute", "transpose", "movedim", "slice", "mT"])
@pytest.mark.parametrize("zeros", [(1, -2, 3), (1.5, -2.0, 3.25)])
def test_views_take_their_scales_along(name, zeros):
    """PyTorch refuses these, or goes on with scales of other channels."""
    for axis in (0, 1, 2):
        x = np.moveaxis(IMAGE, 1, axis)
        q = per_channel(rushlight, np.ascontiguousarray(x), axis, zeros=zeros)
        numbers = q.dequantize()
        assert rushlight.equal(VIEWS[name](rushlight, q).dequantize(), VIEWS[name](rushlight, numbers))


def test_a_view_across_channels_is_refused():
    q = per_channel(rushlight)
    for call in (lambda: q.view(6, 16), lambda: q.flatten(), lambda: q.flatten(1), lambda: q.view(-1)):
        with pytest.raises(RuntimeError, match="Setting strides is possible only on uniformly quantized"):
            call()


def test_views_share_memory_and_versions():
    q = per_tensor(rushlight)
    version, view = q._version, q[0]
    view.fill_(0.0)
    assert q._version == version + 1
    assert float(q.dequantize()[0].abs().max()) == 0.0


# --- refusals

REFUSED = {
    "add": lambda L, q: q + q,
    "mul": lambda L, q: q * q,
    "exp": lambda L, q: q.exp(),
    "sum": lambda L, q: q.sum(),
    "abs": lambda L, q: q.abs(),
    "neg": lambda L, q: -q,
    "matmul": lambda L, q: q @ q,
    "argmax": lambda L, q: q.argmax(),
    "roll": lambda L, q: q.roll(1),
    "gather": lambda L, q: q.gather(0, L.zeros(1, 3, 4, 4, dtype=L.int64)),
    "where": lambda L, q: L.where(L.tensor(MASK), q, q),
    "zero_": lambda L, q: q.clone().zero_(),
    "zeros_like": lambda L, q: L.zeros_like(q),
    "rand_like": lambda L, q: L.rand_like(q),
    "isnan": lambda L, q: q.isnan(),
    "float": lambda L, q: q.float(),
    "half": lambda L, q: q.half(),
    "int": lambda L, q: q.int(),
    "another dtype": lambda L, q: q.to(L.qint8),
    "meta": lambda L, q: q.to("meta"),
    "requires_grad_": lambda L, q: q.requires_grad_(),
    "tolist": lambda L, q: q.tolist(),
    "copy to numbers": lambda L, q: L.zeros(2, 3, 4, 4).copy_(q),
    "convolution": lambda L, q: L.nn.functional.conv2d(q, L.randn(3, 3, 1, 1)),
    "allclose": lambda L, q: L.allclose(q, q),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name):
    for library in BOTH:
        with pytest.raises(RuntimeError):
            REFUSED[name](library, per_tensor(library))


def test_the_words_of_a_refusal():
    with pytest.raises(
        NotImplementedError, match="Could not run 'aten::exp' with arguments from the 'QuantizedCPU'"
    ):
        per_tensor(rushlight).exp()
    with pytest.raises(TypeError):
        per_tensor(rushlight).numpy()


BAD = [
    lambda L: L.quantize_per_tensor(L.ones(3), 1.0, 256, L.quint8),
    lambda L: L.quantize_per_tensor(L.ones(3), 1.0, -1, L.quint8),
    lambda L: L.quantize_per_tensor(L.ones(3), 1.0, 200, L.qint8),
    lambda L: L.quantize_per_tensor(L.ones(3).double(), 1.0, 0, L.quint8),
    lambda L: L.quantize_per_tensor(L.ones(3), 1.0, 0, L.float32),
    lambda L: L.quantize_per_tensor(L.ones(3), 1.0, 0, L.int8),
    lambda L: L.quantize_per_tensor(L.ones(3), L.ones(2), L.ones(2), L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(3), L.zeros(3).long(), 2, L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(3), L.zeros(3).long(), -1, L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(2), L.zeros(2).long(), 1, L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(3), L.zeros(2).long(), 1, L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(1, 3), L.zeros(3).long(), 1, L.quint8),
    lambda L: L.quantize_per_channel(L.ones(2, 3), L.ones(3), L.zeros(3).long() + 300, 1, L.quint8),
    lambda L: L.quantize_per_tensor_dynamic(L.ones(3), L.qint32, False),
    lambda L: L._make_per_tensor_quantized_tensor(L.ones(3), 0.1, 0),
    lambda L: L._empty_affine_quantized([2], scale=0.1, zero_point=0, dtype=L.float32),
    lambda L: L.ones(3).q_scale(),
    lambda L: L.ones(3).int_repr(),
    lambda L: L.ones(3).qscheme(),
    lambda L: per_channel(L).q_scale(),
    lambda L: per_tensor(L).q_per_channel_scales(),
    lambda L: L.cat([per_tensor(L), L.ones(2, 3, 4, 4)]),
    lambda L: L.cat([per_channel(L), per_channel(L)]),
    lambda L: per_channel(L).relu(),
    lambda L: per_channel(L)[L.tensor([0])],
    lambda L: L.promote_types(L.quint8, L.float32),
]


@pytest.mark.parametrize("index", range(len(BAD)))
def test_bad_arguments(index):
    kinds = []
    for library in BOTH:
        with pytest.raises(RuntimeError) as caught:
            BAD[index](library)
        kinds.append(caught.type)
    assert kinds[0] is kinds[1] or NotImplementedError in kinds  # where nothing is registered, and its kin


# --- making


def test_ways_to_make_them():
    def made(L):
        x, u8 = L.tensor(IMAGE), L.tensor([1, 2, 3], dtype=L.uint8)
        dynamic = L.quantize_per_tensor_dynamic
        return [
            L.quantize_per_tensor(x, L.tensor(0.5), L.tensor(3), L.quint8),
            *L.quantize_per_tensor([x, x[0]], L.tensor([0.5, 0.1]), L.tensor([3, 4]), L.quint8),
            dynamic(x, L.quint8, False),
            dynamic(x, L.quint8, True),
            dynamic(x, L.qint8, False),
            dynamic(x, L.qint8, True),
            dynamic(x, L.float16, False),
            L._make_per_tensor_quantized_tensor(u8, 0.1, 3),
            L._make_per_tensor_quantized_tensor(u8.to(L.int8), 0.1, 3),
            L._make_per_tensor_quantized_tensor(u8.int(), 0.1, 3),
            L._make_per_channel_quantized_tensor(u8, L.ones(3) * 0.1, L.arange(3), 0),
            L._empty_affine_quantized([2, 3], scale=0.1, zero_point=3, dtype=L.quint8).fill_(0.5),
            L.dequantize(x),
        ]

    assert seen(made(rushlight)) == seen(made(oracle))
    empty = rushlight._empty_per_channel_affine_quantized(
        [2, 3], scales=rushlight.ones(3), zero_points=rushlight.zeros(3), axis=1, dtype=rushlight.qint8
    )
    assert empty.qscheme() == rushlight.per_channel_affine_float_qparams and empty.shape == (2, 3)


def test_schemes():
    for name in (
        "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric", "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    ):  # fmt: skip
        scheme = getattr(rushlight, name)
        assert repr(scheme) == repr(getattr(oracle, name)) and type(scheme) is rushlight.qscheme
        assert pickle.loads(pickle.dumps(scheme)) is scheme and copy.deepcopy(scheme) is scheme


@pytest.mark.parametrize("make", [per_tensor, per_channel])
def test_how_they_print(make):
    for part in (lambda q: q, lambda q: q[0, 0, 0], lambda q: q[:0], lambda q: q[0, 0, 0, 0]):
        assert repr(part(make(rushlight))) == repr(part(make(oracle)))


# --- files


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("weights_only", [True, False])
def test_files_both_ways(dtype, weights_only):
    def content(L):
        q = per_tensor(L, dtype=dtype)
        by_channel = per_channel(L, dtype=dtype if dtype != "quint8" else "qint8")
        floats = per_channel(L, zeros=(1.5, 2.0, 3.25))
        return {"q": q, "view": q[1:], "channel": by_channel, "floats": floats, "plain": L.ones(2)}

    for source, target in (BOTH, BOTH[::-1]):
        file = io.BytesIO()
        source.save(content(source), file)
        file.seek(0)
        found = target.load(file, weights_only=weights_only)
        assert {k: seen(v) for k, v in found.items()} == {k: seen(v) for k, v in content(source).items()}
        found["q"][1:].fill_(0.0)
        assert found["view"].dequantize().abs().max() == 0.0  # one piece of memory, as before


def test_modules_with_quantised_buffers():
    module = rushlight.nn.Module()
    module.register_buffer("weight", per_tensor(rushlight))
    other = copy.deepcopy(module)
    other.weight.fill_(0.0)
    other.load_state_dict(module.state_dict())
    assert other.weight.equal(module.weight)


def test_damaged_files():
    storage = rushlight.UntypedStorage(8)
    build = rushlight._utils._quantized_on
    affine = (rushlight.per_tensor_affine, 0.1, 3)
    for bad in (
        lambda: build(storage, rushlight.quint8, 4, (8,), (1,), affine),
        lambda: build(storage, rushlight.quint8, 0, (8,), (1,), (rushlight.per_tensor_symmetric, 0.1, 3)),
        lambda: build(
            storage,
            rushlight.quint8,
            0,
            (2, 4),
            (4, 1),
            (rushlight.per_channel_affine, rushlight.ones(3), rushlight.zeros(3), 1),
        ),
    ):
        with pytest.raises(RuntimeError):
            bad()


def test_assert_close():
    q = per_tensor(rushlight)
    rushlight.testing.assert_close(q, q.clone())
    with pytest.raises(AssertionError):
        rushlight.testing.assert_close(q, q.clone().fill_(0.0))
    with pytest.raises(AssertionError):
        rushlight.testing.assert_close(q, q.dequantize(), check_dtype=False)


def test_no_warnings_of_our_own():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert per_tensor(rushlight).relu().dequantize().min() >= 0


@pytest.mark.parametrize("name", ["eq", "ne", "lt", "le", "gt", "ge", "not_equal", "greater"])
@pytest.mark.parametrize("kind", ["tensor", "channel"])
def test_comparisons_are_not_written_into_integers(name, kind):
    x = rushlight.tensor([[1.0, 2.0]])
    if kind == "tensor":
        q = rushlight.quantize_per_tensor(x, 0.1, 3, rushlight.quint8)
    else:  # PyTorch crashes
        scales, zeros = rushlight.tensor([0.1]), rushlight.tensor([0])
        q = rushlight.quantize_per_channel(x, scales, zeros, 0, rushlight.qint8)
    for call in (lambda: getattr(q, name + "_")(q), lambda: getattr(rushlight, name)(q, q, out=q.clone())):
        with pytest.raises(RuntimeError, match="must have dtype 'torch.bool'|only works with kFloat"):
            call()


def test_scales_are_turned_round_with_their_channels():
    """PyTorch refuses to flip tensors with scales by channel; those of the other end gave other numbers."""
    q = per_channel(rushlight)
    for dims in ((1,), (0,), (-1, -3), (0, 1)):
        assert seen(q.flip(dims).dequantize()) == seen(q.dequantize().flip(dims))
    assert seen(q.rot90(1, (0, 1)).dequantize()) == seen(q.dequantize().rot90(1, (0, 1)))
    assert seen(q.flip(1).q_per_channel_zero_points()) == seen(q.q_per_channel_zero_points().flip(0))
