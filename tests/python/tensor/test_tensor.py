"""The Tensor object: identity, subclasses, attributes, conversions."""

import copy
import gc
import math
import pickle
import subprocess
import sys
import weakref

import pytest

import rushlight as rl


def test_one_wrapper_per_tensor():
    x = rl.ones(3, requires_grad=True)
    y = x * 2
    y.sum().backward()
    x.grad.note = "kept"
    gc.collect()
    assert x.grad.note == "kept"
    assert x.grad is x.grad


def test_attributes_survive_while_only_the_graph_holds_the_tensor():
    x = rl.ones(3, requires_grad=True)
    x.name_of_mine = "x"
    y = x * 2
    identity = id(x)
    del x
    gc.collect()
    again = y.grad_fn.next_functions[0][0].variable
    assert again.name_of_mine == "x" and id(again) == identity


def test_weak_references():
    x = rl.ones(2)
    ref = weakref.ref(x)
    assert ref() is x
    del x
    assert ref() is None


def test_cycles_through_attributes_are_collected():
    x = rl.ones(2)
    x.me = x
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_many_short_lived_wrappers():
    x = rl.ones(4)
    for _ in range(2000):
        x = x + 0
    assert x.tolist() == [1.0] * 4


class Logged(rl.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_subclass_sees_calls_and_keeps_its_type():
    Logged.calls.clear()
    x = rl.ones(3).as_subclass(Logged)
    assert type(x + 1) is Logged and type(rl.sum(x)) is Logged and type(x[0]) is Logged
    assert Logged.calls == ["add", "sum", "__getitem__"]


def test_disable_torch_function():
    Logged.calls.clear()
    x = rl.ones(3).as_subclass(Logged)
    with rl._C.DisableTorchFunctionSubclass():
        assert type(x + 1) is rl.Tensor
    assert Logged.calls == []


def test_function_mode_sees_functions_and_constructors():
    from rushlight.overrides import TorchFunctionMode

    seen = []

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    with Mode():
        rl.add(rl.ones(2), 1)
    assert seen == ["ones", "add"]


def test_device_context():
    with rl.device("meta"):
        assert rl.ones(2).is_meta and rl.empty(3).is_meta
    assert not rl.ones(2).is_meta


def test_size_is_a_tuple_that_stays_a_size():
    size = rl.ones(2, 3).shape
    assert size == (2, 3) and isinstance(size, tuple) and repr(size) == "torch.Size([2, 3])"
    assert type(size[1:]) is rl.Size and type(size + (4,)) is rl.Size and size.numel() == 6
    assert pickle.loads(pickle.dumps(size)) == size


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.view(2, 3),
        lambda x: x.view((2, 3)),
        lambda x: x.view([2, -1]),
        lambda x: x.reshape(rl.Size([2, 3])),
    ],
)
def test_sizes_as_arguments(call):
    assert call(rl.arange(6)).shape == (2, 3)


def test_numpy_spellings():
    x = rl.ones(2, 3)
    assert x.sum(axis=0, keepdims=True).shape == (1, 3)
    assert rl.sum(input=x, dim=1).shape == (2,)


def test_arithmetic_with_numbers_keeps_the_dtype():
    x = rl.ones(2, dtype=rl.int32)
    assert (x + 1).dtype is rl.int32 and (1 + x).dtype is rl.int32 and (x + 1.5).dtype is rl.float32
    assert (
        (2 - x).tolist() == [1, 1]
        and (2 / rl.tensor([4.0])).tolist() == [0.5]
        and (2 ** rl.tensor([3.0])).tolist() == [8.0]
    )


def test_inplace_operators_return_the_same_object():
    x = y = rl.ones(2)
    x += 1
    x *= 2
    assert x is y and y.tolist() == [4.0, 4.0]


def test_conversions():
    x = rl.tensor([1.5])
    assert float(x) == 1.5 and int(x) == 1 and bool(x) and x.item() == 1.5
    assert [10, 20, 30][rl.tensor(1)] == 20
    assert f"{rl.tensor(0.5):.2f}" == "0.50"
    assert x.to(rl.int64).dtype is rl.int64 and x.double().dtype is rl.float64 and x.to("cpu") is x
    assert x.type() == "torch.FloatTensor" and x.type("torch.LongTensor").dtype is rl.int64
    assert x.to("meta").type() == "torch.meta.FloatTensor"


def test_deepcopy_and_pickle():
    x = rl.ones(2, requires_grad=True)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert y is not x and y.tolist() == [1.0, 1.0] and y.requires_grad


def test_named_results():
    result = rl.topk(rl.tensor([1.0, 3.0, 2.0]), 2)
    values, indices = result
    assert result.values is values and indices.tolist() == [1, 2]
    assert type(result) is rl.return_types.topk
    found = rl.linalg.eigh(rl.eye(2))
    assert type(found) is rl.return_types.linalg_eigh and repr(found).startswith("torch.return_types.linalg_")


def test_named_results_are_found_by_name():
    """Pickles name the type; overloads share it, and its module is there without an import."""
    code = """
import pickle, sys
import rushlight as rl

x = rl.eye(3)
results = [x.max(0), x.sort(), x.sort(stable=True), rl.linalg.svd(x), x.mode(), x.kthvalue(1)]
assert "rushlight.return_types" in sys.modules
for result in results:
    kind = type(result)
    assert kind is getattr(rl.return_types, kind.__name__), kind
    assert type(pickle.loads(pickle.dumps(result))) is kind
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_version_compares_as_a_version():
    assert (
        rl.__version__ >= "2.13"
        and rl.__version__ > (2, 9)
        and rl.__version__ < "3.0.0"
        and rl.__version__.startswith("2.13.0")
    )


def test_dtype_objects():
    assert repr(rl.float32) == "torch.float32" and rl.float32.itemsize == 4 and rl.float is rl.float32
    assert rl.float16.to_complex() is not None and pickle.loads(pickle.dumps(rl.int8)) is rl.int8
    assert rl.finfo(rl.float32).eps == 2.0**-23 and rl.iinfo(rl.int16).max == 32767


def test_generator_streams_are_independent():
    a, b = rl.Generator().manual_seed(5), rl.Generator().manual_seed(5)
    state = a.get_state()
    assert a.initial_seed() == 5 and rl.equal(state, b.get_state())


def test_module_base_fast_path():
    class Twice(rl.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = rl.nn.Parameter(rl.tensor(2.0))

        def forward(self, x, *, shift=0):
            return x * self.scale + shift

    module = Twice()
    assert module(rl.ones(1), shift=1).tolist() == [3.0]
    handle = module.register_forward_hook(lambda m, args, out: out + 10)
    assert module(rl.ones(1)).tolist() == [12.0]
    handle.remove()
    module.forward = lambda x: x
    assert module(rl.ones(1)).tolist() == [1.0]
    with pytest.raises(AttributeError, match="'Twice' object has no attribute 'missing'"):
        getattr(module, "missing")  # noqa: B009
    assert copy.deepcopy(module).scale is not module.scale


def test_writing_over_shifted_operands():
    x = rl.arange(12.0).reshape(3, 4)
    shifted = x.clone()
    shifted[:, 1:].add_(shifted[:, :-1])
    assert rl.equal(shifted[:, 1:], x[:, 1:] + x[:, :-1])
    halves = x.clone()
    halves[:, :2].add_(halves[:, 2:])
    assert rl.equal(halves[:, :2], x[:, :2] + x[:, 2:])
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.flatten()[1:].add_(x.flatten()[:-1])


def test_legacy_constructor_takes_arrays():
    numpy = pytest.importorskip("numpy")
    array = numpy.arange(3, dtype=numpy.float32)
    shared = rl.Tensor(array)
    shared[0] = 9
    assert array[0] == 9 and rl.Tensor(numpy.arange(3)).tolist() == [0.0, 1.0, 2.0]
    assert rl.LongTensor(numpy.array([1.9, 2.0])).tolist() == [1, 2]
    assert rl.Tensor(numpy.array(2.5)).shape == () and rl.Tensor(numpy.array(2)).shape == (2,)
    assert rl.Tensor(numpy.zeros((2, 0))).shape == (2, 0)


def test_python_types_are_dtypes():
    for kind, dtype in ((float, rl.float64), (complex, rl.complex128), (int, rl.int64), (bool, rl.bool)):
        assert (
            rl.zeros(1, dtype=kind).dtype
            == rl.tensor([1], dtype=kind).dtype
            == rl.ones(1).to(kind).dtype
            == dtype
        )


def test_slices_of_storages_look_into_them():
    t = rl.arange(6, dtype=rl.uint8)
    part = t.untyped_storage()[2:4]
    part[0] = 9
    assert t.tolist() == [0, 1, 9, 3, 4, 5] and part.data_ptr() == t.data_ptr() + 2 and len(part) == 2
    copy_of_all = t.untyped_storage().clone()
    copy_of_all[0] = 7
    assert t[0] == 0 and len(t.untyped_storage()[4:2]) == 0
    assert rl.asarray(part, dtype=rl.uint8).tolist() == [9, 3]
    assert rl.asarray(t.untyped_storage()[4:2], dtype=rl.float32).shape == (0,)
    assert rl.asarray(t.untyped_storage()[:5], dtype=rl.int16).data_ptr() == t.data_ptr()


def test_a_power_may_be_written_on_to():
    x = rl.tensor([0.1, 0.2, 0.3], requires_grad=True)
    (x * 1).pow_(2).mul_(3).exp_().sum().backward()
    assert rl.allclose(x.grad, 6 * x.detach() * (3 * x.detach() ** 2).exp())
    base = rl.tensor([2.0, 0.0, 3.0], dtype=rl.float64, requires_grad=True)
    exponent = rl.tensor([3.0, 2.0, -1.0], dtype=rl.float64, requires_grad=True)
    rl.pow(base, exponent).mul_(2).sum().backward()
    expected = rl.tensor([16 * math.log(2), 0.0, 2 / 3 * math.log(3)], dtype=rl.float64)
    assert rl.allclose(exponent.grad, expected)


def test_finfo_reads_as_pytorchs(torch):
    for name in ("float16", "bfloat16", "float32", "float64"):
        assert repr(rl.finfo(getattr(rl, name))) == repr(torch.finfo(getattr(torch, name)))


def test_order_of_dimensions_may_be_ambiguous():
    assert rl.empty(2, 3, 5, 7).transpose(1, 2).dim_order(ambiguity_check=True) == (0, 2, 1, 3)
    with pytest.raises(RuntimeError, match="unique dim order"):
        rl.empty(1, 2, 3, 4).dim_order(ambiguity_check=True)
    formats = [rl.contiguous_format, rl.channels_last]
    assert rl.empty(1, 2, 3, 4).dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    with pytest.raises(TypeError, match="must be a bool or a list"):
        rl.empty(1).dim_order(ambiguity_check="x")


@pytest.mark.parametrize("dtype", [rl.float32, rl.bfloat16, rl.complex64])
def test_inverting_what_has_no_bits(dtype):
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        ~rl.ones(2, dtype=dtype)
    with pytest.raises(NotImplementedError):
        rl.bitwise_not(rl.ones(2, dtype=dtype))


def test_the_hash_of_a_tensor_is_its_id():
    class Own(rl.Tensor):
        pass

    for x in (rl.ones(2), rl.nn.Parameter(rl.ones(2)), rl.ones(2).as_subclass(Own)):
        assert hash(x) == id(x)
