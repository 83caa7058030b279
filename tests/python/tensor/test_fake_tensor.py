"""FakeTensorMode: programs on shapes, with devices that need not exist."""

import copy

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._subclasses import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedOperatorException,
)


@pytest.fixture
def mode():
    return FakeTensorMode()


def test_factories_and_operators_give_fakes_on_the_pretended_device(mode):
    with mode:
        x = torch.empty(2, 3, device="cuda")
        y = (x + 1) @ torch.ones(3, 4, device="cuda")
        z = torch.rand(3)
    assert isinstance(y, FakeTensor) and y.shape == (2, 4) and y.device == torch.device("cuda:0")
    assert z.device.type == "cpu" and isinstance(z * 2, FakeTensor)


def test_from_tensor_remembers(mode):
    real = torch.randn(3, 4, requires_grad=True)
    fake = mode.from_tensor(real)
    assert mode.from_tensor(real) is fake and fake.requires_grad and fake.shape == (3, 4)
    assert mode.from_tensor(real.detach().t()).stride() == (1, 4)


def test_views_and_writes_alias(mode):
    x = mode.from_tensor(torch.zeros(4, 4))
    view = x[1:]
    assert view.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert x.add_(1) is x and x._version == 1 and view._version == 1
    assert x.t_() is x and mode.from_tensor(torch.zeros(2, 3)).t_().shape == (3, 2)


def test_a_model_runs_forward_and_backward():
    with FakeTensorMode():
        net = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10)
        )
        loss = nn.functional.cross_entropy(net(torch.randn(4, 3, 8, 8)), torch.zeros(4, dtype=torch.long))
        loss.backward()
    assert all(isinstance(p, FakeTensor) and isinstance(p, nn.Parameter) for p in net.parameters())
    assert all(p.grad.shape == p.shape for p in net.parameters())


def test_devices_follow_the_operands(mode):
    with mode:
        cuda, number = torch.ones(3, device="cuda"), torch.tensor(2.0)
        assert (cuda * number).device.type == "cuda"
        assert cuda.cpu().device.type == "cpu" and torch.ones(2).to("cuda").device.type == "cuda"
        with pytest.raises(RuntimeError, match="two different devices"):
            cuda + torch.ones(3)


def test_values_are_refused_unless_constant(mode):
    with mode:
        x = torch.rand(3)
        assert torch.tensor(3).item() == 3
        for read in (lambda: x[0].item(), lambda: bool(x[0] > 0), lambda: float(x[0])):
            with pytest.raises(DataDependentOutputException):
                read()
        for count in (lambda: x.nonzero(), lambda: x[x > 0], lambda: x.unique()):
            with pytest.raises(DynamicOutputShapeException):
                count()


def test_real_tensors_do_not_mix_unless_allowed(mode):
    real = torch.ones(3)
    with mode:
        fake = torch.ones(3)
        with pytest.raises(AssertionError, match="convert all Tensors to FakeTensors"):
            fake + real
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(torch.ones(3) + real, FakeTensor)
    with pytest.raises(AssertionError, match="Mixing fake modes"):
        fake + FakeTensorMode().from_tensor(real)


def test_outside_the_mode_fakes_bring_it_along(mode):
    fake = mode.from_tensor(torch.ones(2, 2))
    assert isinstance(torch.cat([fake, fake]).softmax(-1), FakeTensor)
    assert isinstance(torch.ones(2) + 1, torch.Tensor) and type(torch.ones(2)) is torch.Tensor


def test_text_and_copies(mode):
    fake = mode.from_tensor(torch.ones(2, 3))
    assert repr(fake) == "FakeTensor(..., size=(2, 3))"
    copied = copy.deepcopy(fake)
    assert isinstance(copied, FakeTensor) and copied is not fake and copied.shape == fake.shape
    with pytest.raises(RuntimeError):
        fake.numpy()


def test_printing_in_fake_mode():
    real = torch.zeros(2)
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(real)
        assert str(real) == "tensor([0., 0.])"
        assert repr(fake) == "FakeTensor(..., size=(2,))"
        assert "device='meta'" in repr(torch.empty(2, device="meta"))
        assert real.untyped_storage().tolist() == [0] * 8
        assert str(real._typed_storage()).splitlines()[:2] == [" 0.0", " 0.0"]
        assert str(fake._typed_storage()).startswith("...\n")


def test_known_numbers_follow_what_is_computed_and_written(mode):
    with mode:
        x = torch.tensor([4.0])
        y = x[:]
        assert y.item() == 4 and (x * 2 + y).item() == 12
        y.add_(1)
        assert x.item() == y.item() == 5
        assert torch.div(4, 4, rounding_mode="trunc").item() == 1
        y.add_(torch.rand(1))
        for unknown in (x, y, x + 1):
            with pytest.raises(DataDependentOutputException):
                unknown.item()
        wide = torch.tensor([1])
        wide.expand(4)[0] = 2
        with pytest.raises(DataDependentOutputException):
            wide.item()
        grown = torch.tensor([1])
        grown.resize_(2)
        assert grown.shape == (2,) and grown.constant is None


def test_real_tensors_beside_fake_ones():
    from rushlight._functorch import config

    with config.patch(fake_tensor_propagate_real_tensors=True), FakeTensorMode() as mode:
        x = mode.from_tensor(torch.tensor([1.0, 0.0, 3.0]))
        found = (x * 2).nonzero()
        assert found.shape == (2, 1) and found.real_tensor.tolist() == [[0], [2]]
        assert (x * 2).sum().item() == 8.0
        x.add_(1)
        assert x.real_tensor.tolist() == [2.0, 1.0, 4.0]
        with torch.inference_mode():  # whose results have no versions
            assert ((x + x) * 2).real_tensor.tolist() == [8.0, 4.0, 16.0]


def test_copies_that_are_fake_and_back():
    from rushlight._subclasses.fake_tensor import FakeCopyMode
    from rushlight._subclasses.fake_utils import try_convert_fake_to_real

    mode = FakeTensorMode()
    layer = torch.nn.BatchNorm2d(3)
    with FakeCopyMode(mode):
        copied = copy.deepcopy(layer)
    assert isinstance(copied.weight, torch.nn.Parameter) and isinstance(copied.running_mean, FakeTensor)
    x = torch.arange(6.0)
    (real,) = try_convert_fake_to_real([mode.from_tensor(x)[1:3]])
    assert type(real) is torch.Tensor and real.tolist() == [1.0, 2.0]


def test_a_mode_with_shapes_gives_samples_of_what_depends_on_data():
    from rushlight.fx.experimental.symbolic_shapes import ShapeEnv

    with FakeTensorMode(shape_env=ShapeEnv()):
        x = torch.rand(5)
        assert len(x.tolist()) == 5 and x.nonzero().shape[1] == 1


def test_meta_is_refused_when_asked():
    from rushlight._functorch import config

    with config.patch(fake_tensor_allow_meta=False), FakeTensorMode():
        with pytest.raises(AssertionError, match="must not be meta"):
            torch.rand(4, device="meta")


def test_meta_tensors_on_a_device_are_remembered():
    mode = FakeTensorMode()
    x = torch.rand(2, 2, device="meta")
    fake = mode.fake_tensor_converter.from_meta_and_device(mode, x, "cpu")
    assert fake.device.type == "cpu" and fake.shape == x.shape
    assert mode.fake_tensor_converter.from_meta_and_device(mode, x, "cpu") is fake
    with pytest.raises(AssertionError, match="expected a meta tensor"):
        mode.fake_tensor_converter.from_meta_and_device(mode, torch.rand(2), "cpu")


def test_fakes_of_tensors_on_one_storage_share_one(mode):
    x = torch.rand(2, 2, 2)
    first, part, other = mode.from_tensor(x), mode.from_tensor(x[0]), mode.from_tensor(x.clone())
    assert torch._C._storage_id(first) == torch._C._storage_id(part) != torch._C._storage_id(other)


def test_what_tells_tensors_apart():
    from rushlight._prims_common import compare_tensor_meta
    from rushlight._subclasses.fake_tensor import MetadataMismatchError

    x = torch.rand(2, 3)
    fake = FakeTensorMode().from_tensor(x)
    compare_tensor_meta(x, fake, check_strides=True)
    for other, what in (
        (torch.rand(3, 2), "Shapes"),
        (x.double(), "Dtypes"),
        (x.to("meta"), "Devices"),
        (torch.rand(3, 2).T, "Stride mismatch"),
        (torch.rand(7)[1:].view(2, 3), "Storage offset mismatch"),
        (torch._neg_view(x), "Neg mismatch"),
    ):
        with pytest.raises(MetadataMismatchError, match=what):
            compare_tensor_meta(fake, other, check_strides=True)


def test_captures_that_programs_announce():
    from rushlight._guards import TracingContext, detect_fake_mode, tracing

    mode = FakeTensorMode()
    with tracing(TracingContext(mode)) as context:
        assert TracingContext.get() is context and detect_fake_mode(None) is mode
    assert TracingContext.try_get() is None
    with pytest.raises(RuntimeError, match="ongoing trace"):
        TracingContext.get()


def test_keys_of_tensors():
    names = {key.name for key in torch._C._dispatch_keys(torch.rand(2))}
    assert names == {"CPU", "AutocastCPU", "ADInplaceOrView", "AutogradCPU"}
    conjugate = torch._C._dispatch_keys(torch.rand(2, dtype=torch.complex64).conj())
    assert conjugate.has(torch._C.DispatchKey.Conjugate)
    with torch.inference_mode():
        assert "Autograd" not in torch._C._dispatch_key_set(torch.rand(2))
    x = torch.rand(4)
    assert torch._C._storage_id(x) == torch._C._storage_id(x[1:]) != torch._C._storage_id(x.clone())


def test_legacy_constructors_make_fakes():
    with FakeTensorMode():
        made = [
            torch.Tensor([1, 2, 3]),
            torch.Tensor(2, 3),
            torch.Tensor(torch.ones(2)),
            torch.LongTensor([4]),
            torch.ones(2).new([5.0, 6.0]),
            torch.ones(2).new(7),
        ]
    assert [(type(t), tuple(t.shape), t.dtype) for t in made] == [
        (FakeTensor, (3,), torch.float32),
        (FakeTensor, (2, 3), torch.float32),
        (FakeTensor, (2,), torch.float32),
        (FakeTensor, (1,), torch.int64),
        (FakeTensor, (2,), torch.float32),
        (FakeTensor, (7,), torch.float32),
    ]


def test_an_operator_without_a_fake_function_is_named_with_its_overload():
    with torch.library._scoped_library("fakes_test", "FRAGMENT") as library:
        library.define("plain(Tensor x) -> Tensor")
        library.impl("plain", lambda x: x.cos(), "CPU")
        told = r"^fakes_test\.plain\.default: attempted"
        with FakeTensorMode(), pytest.raises(UnsupportedOperatorException, match=told):
            torch.ops.fakes_test.plain(torch.ones(2))
