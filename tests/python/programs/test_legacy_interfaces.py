"""Rarer interfaces: swapped tensors, typed storages, lists of tensors, checks of arguments."""

import gc
import subprocess
import sys
import weakref

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils import swap_tensors


@pytest.fixture
def swapping():
    torch.__future__.set_swap_module_params_on_conversion(True)
    yield
    torch.__future__.set_swap_module_params_on_conversion(False)


def test_swap_tensors():
    a, b = torch.zeros(2), nn.Parameter(torch.ones(3, 3))
    a.mark = "a"
    first, second = id(a), id(b)
    swap_tensors(a, b)
    assert (id(a), id(b)) == (first, second)
    assert a.shape == (3, 3) and type(a) is nn.Parameter and b.mark == "a" and not hasattr(a, "mark")
    assert id(a.detach().fill_(5).sum()) and a.sum() == 45 and id(b.fill_(1)) == second


def test_swap_tensors_refuses_shared_ones():
    a, b = torch.zeros(2), torch.ones(2)
    reference = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        swap_tensors(a, b)
    del reference
    held = torch.ones(2, requires_grad=True)
    product = held * held
    with pytest.raises(RuntimeError, match="Expected use_count of t2 to be 1 or 2"):
        swap_tensors(torch.zeros(2), held)
    assert product.requires_grad


def test_modules_swap_their_parameters(swapping):
    module = nn.Linear(2, 3)
    before = {name: id(p) for name, p in module.named_parameters()}
    module(torch.ones(1, 2)).sum().backward()
    module.double()
    assert {name: id(p) for name, p in module.named_parameters()} == before
    assert module.weight.dtype is torch.float64 and module.weight.grad.dtype is torch.float64
    other = nn.Linear(2, 3).double()
    kept = other.weight
    assert other.load_state_dict(module.state_dict()) and other.weight is kept
    assert torch.equal(kept, module.weight) and kept.requires_grad


def test_typed_storages():
    assert torch.FloatStorage.from_buffer(bytearray([0x40, 0x10, 0, 0]), "big").tolist() == [2.25]
    assert torch.ShortStorage.from_buffer(bytearray([1, 2, 3, 4]), "big").tolist() == [258, 772]
    assert torch.BoolStorage.from_buffer(b"\0\4").tolist() == [False, True]
    with pytest.raises(ValueError, match="invalid byte_order"):
        torch.FloatStorage.from_buffer(bytearray(4), "middle")
    storage = torch.ones(10).storage()
    assert storage.type() == "torch.FloatStorage" and storage.resizable()
    assert storage.type("torch.IntStorage").tolist() == [1] * 10
    assert storage.__sizeof__() - torch.ones(0).storage().__sizeof__() == 40


def test_slots_of_tensor_classes():
    program = """if True:
        import gc, rushlight as torch
        class Slotted(torch.Tensor):
            __slots__ = ["other"]
            def __del__(self):
                print("gone", flush=True)
        x, y = Slotted(torch.empty(2)), Slotted(torch.empty(2))
        assert not hasattr(x, "other")
        x.other, y.other = y, x
        del x, y
        gc.collect()
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.count("gone") == 2, done.stderr
    gc.collect()


def test_list_forms():
    a, b = torch.tensor([1.0, -2.6]), torch.tensor([[3.0]])
    for result, expected in [
        (torch._foreach_max([a, b]), [a.max(), b.max()]),
        (torch._foreach_round([a, b]), [a.round(), b.round()]),
        (torch._foreach_sigmoid([a, b]), [a.sigmoid(), b.sigmoid()]),
        (torch._foreach_clone([a, b]), [a, b]),
        (torch._foreach_mul([a, b], torch.tensor(2.0)), [a * 2, b * 2]),
        (torch._foreach_add([a, b], torch.tensor(2.0), alpha=3), [a + 6, b + 6]),
        (torch._foreach_pow(2, [a, b]), [2**a, 2**b]),
        (torch._foreach_lerp([a, b], [a + 1, b + 1], [0.5, 1.0]), [a + 0.5, b + 1]),
        (
            torch._foreach_addcmul([a, b], [a, b], [a, b], torch.tensor([1.0, 2.0])),
            [a + a * a, b + 2 * b * b],
        ),
    ]:
        assert all(torch.allclose(r, e) for r, e in zip(result, expected, strict=True))
    with pytest.raises(RuntimeError, match="scalar tensor expected to be 0 dim"):
        torch._foreach_mul([a], torch.ones(1))
    with pytest.raises(RuntimeError, match="Expected packed scalar Tensor to be of dimension 1"):
        torch._foreach_addcmul([a], [a], [a], torch.ones(1, 1))


def test_python_types_as_dtypes():
    assert torch.zeros(1, dtype=float).dtype is torch.float64
    assert torch.randn(1, dtype=complex).dtype is torch.complex128
    assert torch.ones(1).to(float).dtype is torch.float64


def test_assigning_values_with_leading_ones():
    x = torch.zeros(4, 4)
    x[range(4), range(4)] = torch.arange(4.0).view(1, 1, 4)
    assert torch.equal(x.diagonal(), torch.arange(4.0))


def test_dim_order():
    x = torch.empty(2, 3, 4, 5)
    assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
    assert x.to(memory_format=torch.channels_last).dim_order() == (0, 2, 3, 1)
    narrow = torch.empty(2, 2, 1, 2)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        narrow.dim_order(ambiguity_check=True)
    formats = [torch.contiguous_format, torch.channels_last]
    assert narrow.dim_order(ambiguity_check=formats) == (0, 1, 2, 3)
    assert narrow.to(memory_format=torch.channels_last).dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        x.dim_order(ambiguity_check="no")


def test_gradcheck_is_callable_after_its_module_was_imported():
    import rushlight.autograd.gradcheck

    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    assert rushlight.autograd.gradcheck(torch.sin, (x,))


def test_argument_checks():
    for call, error, text in [
        (lambda: torch._check("x"), TypeError, "cond must be a bool"),
        (lambda: torch.ones(2).apply_(lambda v: "a"), TypeError, "must be real number, not str"),
        (lambda: torch.broadcast_shapes(1.5), RuntimeError, "Input shapes should be of type ints"),
        (lambda: torch.broadcast_shapes(-1), ValueError, "negative length"),
        (lambda: torch.unravel_index(torch.ones(1), (2,)), TypeError, "expected 'indices' to be integer"),
        (lambda: torch.unravel_index(torch.ones(1).int(), (2.0,)), TypeError, "to only contain ints"),
        (
            lambda: torch.promote_types(torch.float32, 1),
            TypeError,
            r"argument 'type2' \(position 2\) must be",
        ),
        (lambda: torch.ones(1).as_subclass(int), TypeError, "does not inherit from Tensor"),
        (lambda: torch.nonzero(torch.ones(1), out=torch.ones(1)), RuntimeError, "scalar type Long"),
        (lambda: torch.cuda.Stream(), RuntimeError, "torch.cuda.Stream requires CUDA support"),
    ]:
        with pytest.raises(error, match=text):
            call()
    assert torch.equal(torch.ones(2), torch.ones(2, dtype=torch.int32))
    assert torch.ones(1).expand(1, 1, 1).stride() == torch.ones(1)[None, None].stride()
    x = torch.tensor([2.0, 1.0])
    torch.sort(x, out=(x, torch.empty(0, dtype=torch.int64)))
    assert x.tolist() == [1.0, 2.0]
    like = torch.empty(2, 3, 4, 5).to(memory_format=torch.channels_last)
    resized = torch.empty(120).resize_as_(like, memory_format=torch.preserve_format)
    assert resized.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.filterwarnings("ignore:This overload of addc")
def test_factors_before_tensors():
    one, two = torch.ones(2), torch.full((2,), 2.0)
    for result in (
        torch.addcmul(one, 2, one, two),
        one.clone().addcmul_(2, one, two),
    ):
        assert result.tolist() == [5.0, 5.0]
    assert torch.addcdiv(one, 2, two, one).tolist() == [5.0, 5.0]


def test_diff_checks_what_it_joins():
    x = torch.rand(3, 4)
    with pytest.raises(RuntimeError, match="diff expects the shape of tensor to prepend or append to match"):
        torch.diff(x, prepend=torch.rand(2, 2))
    assert torch.diff(x, n=0, prepend=x).shape == (3, 4)


def test_storages_without_data():
    storage = torch.TypedStorage([1, 2, 3], dtype=torch.float32, device="meta")
    assert storage.device.type == "meta" and len(storage) == 3
    for read in (lambda: storage[0], storage.tolist, lambda: storage.untyped()[0]):
        with pytest.raises(NotImplementedError, match="Not available for 'meta' device type"):
            read()
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        storage.cpu()
    assert torch.UntypedStorage([1, 2, 3], device="meta").nbytes() == 3


def test_extremes_of_segments_share_their_gradient():
    nan = float("nan")
    data = torch.tensor([1.0, nan, 3.0, 4.0, 5.0, 5.0], requires_grad=True)
    result = torch.segment_reduce(data, "max", lengths=torch.tensor([1, 2, 3, 0]), initial=0)
    result.sum().backward()
    assert data.grad.tolist() == [1.0, 1.0, 0.0, 0.0, 0.5, 0.5]
    assert result.isnan().tolist() == [False, True, False, False]


class Wrapping(torch.Tensor):
    """A tensor without data that computes with the one it holds."""

    @staticmethod
    def __new__(cls, elem):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, elem.size(), dtype=elem.dtype)
        wrapper.elem = elem
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        inner = [a.elem if isinstance(a, cls) else a for a in args]
        return cls(func(*inner, **(kwargs or {})))


def test_wrappers_without_data_are_copied_and_pickled():
    import copy
    import pickle

    wrapper = Wrapping(torch.arange(3.0))
    for made in (copy.deepcopy(wrapper), pickle.loads(pickle.dumps(wrapper))):
        assert type(made) is Wrapping and made.shape == (3,)
        assert made.elem.tolist() == [0.0, 1.0, 2.0] and made.elem is not wrapper.elem


def test_lists_written_to_come_back():
    values = [torch.ones(2, dtype=torch.int16), torch.ones(3)]
    assert torch._foreach_mul_(values, [3, 2]) is values
    assert torch._foreach_neg_(values) is values and torch._foreach_zero_(values) is values
    assert torch._foreach_add(values, [1, 2])[0].dtype is torch.int16
    assert torch._foreach_add(values, [1.0, 2.0])[0].dtype is torch.float32


CONVERSIONS = {
    "double": torch.float64,
    "float": torch.float32,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "long": torch.int64,
    "int": torch.int32,
    "short": torch.int16,
    "char": torch.int8,
    "byte": torch.uint8,
    "bool": torch.bool,
    "complex_float": torch.complex64,
    "complex_double": torch.complex128,
}


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("name", CONVERSIONS)
def test_storages_convert(name):
    converted = getattr(torch.IntStorage([1, 0, 1]), name)()
    assert converted.dtype is CONVERSIONS[name] and converted.tolist() == [1, 0, 1]
    from_bytes = getattr(torch.tensor([1, 0], dtype=torch.uint8).untyped_storage(), name)()
    assert from_bytes.dtype is CONVERSIONS[name] and from_bytes.tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore:TypedStorage")
def test_set_wants_a_storage_of_its_type():
    x, ints = torch.zeros(3), torch.zeros(3, dtype=torch.int32).storage()
    for arguments in ((ints,), (ints, 0, (3,), (1,))):
        with pytest.raises(RuntimeError, match="Expected a Storage of type"):
            x.set_(*arguments)
    x.set_(ints.untyped())
    assert x.dtype is torch.float32


def test_base_classes_are_not_made_directly():
    for base in ("StorageBase", "TensorBase"):
        with pytest.raises(RuntimeError, match=f"Cannot directly construct {base}"):
            getattr(torch._C, base)()


def test_elementwise_callbacks_refuse_gradients():
    x, y = torch.zeros(2), torch.zeros(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Can't call map2_\(\) on Variable that requires grad"):
        x.map2_(x, y, lambda a, b, c: a)
    with pytest.raises(RuntimeError, match=r"Can't call map_\(\) on Variable that requires grad"):
        y.map_(x, lambda a, b: a)


def test_check_tensor_all():
    torch._check_tensor_all(torch.tensor([True, True]), lambda: "fine")
    with pytest.raises(RuntimeError, match="not all"):
        torch._check_tensor_all(torch.tensor([True, False]), lambda: "not all")
    with pytest.raises(TypeError, match="cond must be a tensor"):
        torch._check_tensor_all(True)
    with pytest.raises(TypeError, match="must have dtype torch.bool"):
        torch._check_tensor_all(torch.ones(2))


def test_seeds_beyond_64_bits():
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.manual_seed(seed)
    assert torch.Generator().manual_seed(-1).initial_seed() == 2**64 - 1


def test_tensors_name_the_class_that_their_storages_had():
    for dtype, name in ((torch.int16, "ShortStorage"), (torch.complex128, "ComplexDoubleStorage")):
        assert torch.ones(1, dtype=dtype).storage_type() is getattr(torch, name)
    assert torch.ones(1, dtype=torch.uint16).storage_type() is torch.TypedStorage
