"""Devices and dtypes of which this build knows the names alone, and forms of calls from older programs."""

import pickle
from types import SimpleNamespace

import pytest

import rushlight as torch


@pytest.mark.parametrize("name", ["mps", "xpu", "xla:1", "hpu", "privateuseone:3"])
def test_devices_can_be_named_and_compared(name):
    device = torch.device(name)
    kind, _, index = name.partition(":")
    assert (device.type, device.index) == (kind, int(index) if index else None) and str(device) == name
    assert device == torch.device(name) and device not in (torch.device("cpu"), torch.device("vulkan"))
    assert pickle.loads(pickle.dumps(device)) == device and len({device, torch.device(name)}) == 1


@pytest.mark.parametrize(
    "use",
    [
        lambda d: torch.ones(2, device=d),
        lambda d: torch.ones(2).to(d),
        lambda d: torch.nn.Linear(1, 1).to(d),
        lambda d: torch.tensor([1], device=d),
        lambda d: torch.empty_like(torch.ones(1), device=d),
        lambda d: torch.Generator(d),
        lambda d: torch.UntypedStorage(3, device=d),
    ],
)
def test_nothing_can_be_on_them(use):
    for device in (torch.device("mps"), torch.device("xpu", 1)):
        with pytest.raises(RuntimeError, match="Rushlight is not built for"):
            use(device)


NAMED = "quint8 qint8 qint32 quint4x2 bits8 bits16 uint4 int4 int7 float4_e2m1fn_x2".split()


@pytest.mark.parametrize("name", NAMED)
def test_dtypes_can_be_named(name):
    dtype = getattr(torch, name)
    assert isinstance(dtype, torch.dtype) and repr(dtype) == f"torch.{name}" and dtype.itemsize in (1, 2, 4)
    assert dtype == getattr(torch, name) and dtype not in (torch.int8, torch.uint8)
    for use in (
        lambda: torch.ones(2, dtype=dtype),
        lambda: torch.ones(2).to(dtype),
        lambda: torch.promote_types(dtype, torch.int8),
        lambda: torch.set_default_dtype(dtype),
        lambda: torch.finfo(dtype),
        lambda: torch.frombuffer(b"abcd", dtype=dtype),
        lambda: torch.ones(2).sum(dtype=dtype),
        lambda: dtype.to_complex(),
    ):
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            use()


@pytest.mark.parametrize("name", NAMED)
def test_dtypes_have_pytorchs_facts(name):
    oracle = pytest.importorskip("torch")
    ours, theirs = getattr(torch, name), getattr(oracle, name)
    assert (ours.itemsize, ours.is_floating_point, ours.is_complex) == (
        theirs.itemsize,
        theirs.is_floating_point,
        theirs.is_complex,
    )


OLDER = """
    x.add(2,y)  x.add_(2,y)  x.sub(2,y)  x.sub_(2,y)  t.add(x,2,y)  x.addcmul(2,y,y)  x.addcdiv_(-2,y,y)
    x.addmm(2,y,y)  x.addmm(2,3,y,y)  x.addmm_(2,3,y,y)  x[0].addmv(2,y,y[0])  x[0].addmv(2,3,y,y[0])
    x.addr(2,3,y[0],y[1])  x.addbmm(2,3,y[None],y[None])  x[None].baddbmm(2,y[None],y[None])
""".split()


@pytest.mark.parametrize("call", OLDER)
@pytest.mark.filterwarnings("ignore:This overload of")
def test_factors_may_stand_first(call):
    oracle = pytest.importorskip("torch")
    results = []
    for lib in (torch, oracle):
        x, y = lib.arange(4.0).reshape(2, 2), lib.arange(1.0, 5).reshape(2, 2)
        results.append(eval(call, {"t": lib, "x": x, "y": y}).tolist())
    assert results[0] == results[1]


def test_older_forms_warn_and_have_gradients():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        x.add(3, y).sum().backward()
    assert y.grad.tolist() == [3, 3]


def test_operators_of_triton_run_what_they_run_without_it():
    @torch.library.triton_op("known::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    assert twice(torch.ones(2)).tolist() == [2, 2] and torch.ops.known.twice(torch.ones(1)) == 2
    with pytest.raises(RuntimeError, match="triton.jit"):
        torch.library.wrap_triton(None)
    kernel = SimpleNamespace(run=lambda: None)
    assert torch.library.wrap_triton(kernel) is kernel


def test_names_of_the_compiler_and_of_quantizers():
    import rushlight._dynamo as dynamo

    model = torch.nn.Linear(2, 2)
    assert torch._dynamo.disable(model) is model and isinstance(torch.compile(model), dynamo.OptimizedModule)
    with dynamo.config.patch(verbose=True):
        assert dynamo.config.verbose
    assert not dynamo.config.verbose
    with pytest.raises(AttributeError):
        dynamo.config.patch(colour=1)
    add = torch.nn.quantized.FloatFunctional()
    add.activation_post_process.register_forward_hook(lambda module, args, output: output * 10)
    assert add.add_relu(torch.tensor([-3.0, 1.0]), torch.ones(2)).tolist() == [0.0, 20.0]
    with pytest.raises(RuntimeError, match="not registered"):
        torch.classes.some.Thing  # noqa: B018
    assert torch.thread_safe_generator() is None
    assert issubclass(torch.AcceleratorError, RuntimeError)


def test_the_module_names_itself():
    assert torch.torch is torch and torch.torch.special.gammainc is torch.special.gammainc


@pytest.mark.parametrize("name", NAMED)
def test_bits_are_stored_and_moved(name):
    dtype = getattr(torch, name)
    if name.startswith("q"):  # these need a scale
        with pytest.raises(RuntimeError, match="needs a scale"):
            torch.empty(2, dtype=dtype)
        return
    plain = torch.arange(6, dtype=torch.int16 if dtype.itemsize == 2 else torch.int8).view(2, 3)
    bits = plain.view(dtype)
    assert bits.dtype == dtype and torch.empty_like(bits).dtype == dtype
    moved = torch.cat([bits.t().contiguous(), bits.t()])[1:, 0]
    assert moved.dtype == dtype and torch.equal(moved.view(plain.dtype), torch.cat([plain[0], plain[0]])[1:])
    with pytest.raises(NotImplementedError, match="not implemented for"):
        bits + bits
