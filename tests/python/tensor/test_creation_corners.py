"""Corners of creation, layouts and reductions over segments, compared with PyTorch."""

import numpy as np
import pytest

import rushlight

torch = pytest.importorskip("torch")
LIBRARIES = (rushlight, torch)


@pytest.mark.parametrize("make", ["arange", "linspace", "logspace", "range"])
@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_ranges_keep_the_shape_of_out(make):
    results = []
    for lib in LIBRARIES:
        whole = lib.zeros(2, 3)
        args = {"arange": (0, 4), "range": (0, 3)}.get(make, (0, 3, 4))
        getattr(lib, make)(*args, out=whole.narrow(1, 1, 2))
        results.append(whole.tolist())
    assert results[0] == results[1]


def test_numbers_beyond_64_bits():
    for lib in LIBRARIES:
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            lib.tensor(2**63)
        assert lib.tensor([2**70, 0], dtype=lib.bool).tolist() == [True, False]
        assert lib.tensor([2**70], dtype=lib.float64).item() == 2.0**70


@pytest.mark.parametrize("lib", LIBRARIES)
def test_sizes_beyond_64_bits(lib):
    x, size = lib.ones(3), 10**30
    for call in (
        lib.zeros, lib.ones, lib.empty, lib.rand, x.new_zeros, x.view, x.expand, lib.Tensor, lib.LongTensor,
    ):  # fmt: skip
        with pytest.raises(TypeError, match='failed to unpack the object at pos 1 with error "Overflow'):
            call(size)
    with pytest.raises(TypeError, match='at pos 2 with error "type must be tuple of ints,but got str'):
        lib.IntTensor(2, "a")
    for call in x.sum, x.unsqueeze:
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            call(size)


def test_tensors_and_storages_as_data():
    for lib in LIBRARIES:
        assert lib.tensor([[lib.tensor([1]), 2]]).tolist() == [[1, 2]]
        storage = lib.ones(2).untyped_storage()
        assert lib.tensor(storage, dtype=lib.float32).tolist() == [1.0, 1.0]


def test_asarray_of_memory():
    for lib in LIBRARIES:
        source = np.ones(3, dtype=np.complex64)
        assert lib.asarray(memoryview(source), dtype=lib.complex64).tolist() == [1, 1, 1]
        raw = bytearray(b"\1\2\3\4")
        shared = lib.asarray(raw, dtype=lib.uint8)
        shared[0] = 9
        assert raw[0] == 9 and lib.asarray(raw).dtype is lib.float32
        capsule = lib.utils.dlpack.to_dlpack(lib.ones(3))
        assert lib.asarray(capsule).tolist() == [1.0] * 3


def test_comparing_with_arrays():
    for lib in LIBRARIES:
        tensor, array = lib.ones(2, 3), np.ones((2, 3), dtype=np.float32)
        assert isinstance(tensor == array, lib.Tensor) and bool((tensor == array).all())
        assert isinstance(array == tensor, lib.Tensor) and bool((array == tensor).all())


def test_layouts_follow_strides():
    for lib in LIBRARIES:
        F, last = lib.nn.functional, lib.channels_last
        x = lib.rand(2, 4, 8, 8).to(memory_format=last)
        part, single = x[:, :, ::2, 1:5], x[0][None]
        pooled, at = F.max_pool2d(x, 2, return_indices=True)
        for y in (
            F.interpolate(part, scale_factor=2),
            F.avg_pool2d(part, 2),
            F.adaptive_max_pool2d(part, 2),
            F.conv2d(part, lib.rand(3, 4, 2, 2)),
            F.group_norm(x, 2),
            F.pixel_unshuffle(x, 2),
            F.max_unpool2d(pooled, at, 2),
        ):
            assert y.is_contiguous(memory_format=last)
        assert F.interpolate(single, scale_factor=2).is_contiguous()


SEGMENTS = [
    (reduce, (7, 3), {"lengths": [2, 0, 4, 1]}, axis)
    for reduce in ("sum", "mean", "max", "min", "prod")
    for axis in (0,)
]
SEGMENTS += [
    (reduce, (2, 4, 3), {"lengths": [[1, 3, 0], [2, 1, 1]]}, 1) for reduce in ("sum", "mean", "max", "prod")
]
SEGMENTS += [("max", (5,), {"offsets": [0, 2, 2, 5]}, 0)]


@pytest.mark.parametrize("initial", [None, 0.5])
@pytest.mark.parametrize(("reduce", "shape", "where", "axis"), SEGMENTS)
def test_segment_reduce(reduce, shape, where, axis, initial):
    values = np.random.default_rng(0).standard_normal(shape)
    outcomes = []
    for lib in LIBRARIES:
        data = lib.tensor(values, requires_grad=True)
        given = {name: lib.tensor(value) for name, value in where.items()}
        result = lib.segment_reduce(data, reduce, axis=axis, initial=initial, **given)
        lib.nan_to_num(result, posinf=0, neginf=0).sum().backward()
        outcomes.append((result.detach().numpy(), data.grad.numpy()))
    for ours, theirs in zip(*outcomes):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    "values",
    [[1, 2, 3, 4], [0, 2, 0, 4], [5, 0, 3, 4], [float("nan"), 2, 0, 4], [float("nan"), float("nan"), 1, 2]],
)
def test_gradients_of_products_of_segments(values):
    grads = []
    for lib in (torch, rushlight):
        data = lib.tensor([7.0, *values], requires_grad=True)
        lib.segment_reduce(data, "prod", lengths=lib.tensor([1, 4]), initial=2).sum().backward()
        grads.append(data.grad.tolist())
    assert repr(grads[0]) == repr(grads[1])


def test_segment_reduce_checks():
    data = rushlight.ones(3, 2)
    for kwargs, text in [
        ({"lengths": [1, 1]}, "to sum to data.size"),
        ({"lengths": [-1, 4]}, "lengths contains negative value"),
        ({}, "Either lengths or offsets must be defined"),
        ({"lengths": [3], "axis": 1}, "Expected axis to be the last dimension of lengths"),
    ]:
        given = {k: rushlight.tensor(v) if k == "lengths" else v for k, v in kwargs.items()}
        with pytest.raises(RuntimeError, match=text):
            rushlight.segment_reduce(data, "sum", **given)


def test_complex_powers_of_negative_numbers():
    grads = []
    for lib in LIBRARIES:
        exponent = lib.tensor([1 + 2j, 0.5 - 1j], requires_grad=True)
        lib.pow(lib.tensor([-1.5, 2.0]), exponent).sum().abs().backward()
        grads.append(exponent.grad.numpy())
    np.testing.assert_allclose(grads[0], grads[1], rtol=1e-5)


def test_unsafe_splits_may_be_written():
    for split in (rushlight.unsafe_split, rushlight.unsafe_chunk):
        x = rushlight.ones(4, requires_grad=True)
        first, second = split(x * 2, 2)
        first.mul_(3)
        (first.sum() + second.sum()).backward()
        assert x.grad.tolist() == [6.0, 6.0, 2.0, 2.0]


def test_pooling_checks():
    F = rushlight.nn.functional
    for call, error, text in [
        (lambda: F.max_pool2d(rushlight.zeros(1, 0, 4, 4), 2), RuntimeError, "Expected 3D or 4D"),
        (lambda: F.adaptive_max_pool2d(rushlight.zeros(1, 1, 4, 4).int(), 2), NotImplementedError, "'Int'"),
        (lambda: F.avg_pool2d(rushlight.zeros(1, 1, 4, 4), 2, 0), RuntimeError, "stride should not be zero"),
        (
            lambda: F.fractional_max_pool2d(
                rushlight.rand(4, 1, 9, 9), 2, output_size=2, _random_samples=rushlight.rand(2, 1, 2)
            ),
            RuntimeError,
            "no less then input batch size",
        ),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert F.adaptive_avg_pool1d(rushlight.zeros(0, 10), 2).shape == (0, 2)
    assert F.fractional_max_pool2d(rushlight.rand(1, 1, 4, 4), 2, output_size=0).shape == (1, 1, 0, 0)


class Exporter:
    """An array of some other library: nothing but DLPack."""

    def __init__(self, data):
        self.data = data

    def __dlpack__(self, **options):
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.data.__dlpack_device__()


def test_arrays_of_other_libraries_come_by_dlpack():
    data = rushlight.arange(4.0)
    array = Exporter(data)
    assert rushlight.tensor(array).tolist() == rushlight.as_tensor(array).tolist() == data.tolist()
    assert rushlight.as_tensor(array).data_ptr() == rushlight.asarray(array).data_ptr() == data.data_ptr()
    assert rushlight.tensor(array).data_ptr() != data.data_ptr()
    assert rushlight.tensor(array, dtype=rushlight.int64).dtype == rushlight.int64


def test_one_step_of_logspace_is_the_first_power():
    for dtype in ("bfloat16", "float16", "float32"):
        ours, theirs = (m.logspace(4.3, 9.0, 1, dtype=getattr(m, dtype)).tolist() for m in (rushlight, torch))
        assert ours == theirs
