"""Mixed precision: which operators cast what, regions and their nesting, gradients, the gradient scaler."""

import pickle
import warnings

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.amp import GradScaler, autocast, custom_bwd, custom_fwd

CALLS = {
    "matmul": lambda t: (t.ones(3, 3) @ t.ones(3, 3)).dtype,
    "mm": lambda t: t.mm(t.ones(3, 3), t.ones(3, 3)).dtype,
    "bmm": lambda t: t.bmm(t.ones(2, 3, 3), t.ones(2, 3, 3)).dtype,
    "addmm": lambda t: t.addmm(t.ones(3), t.ones(3, 3), t.ones(3, 3)).dtype,
    "mv": lambda t: t.mv(t.ones(3, 3), t.ones(3)).dtype,
    "linear": lambda t: t.nn.functional.linear(t.ones(2, 3), t.ones(4, 3), t.ones(4)).dtype,
    "conv2d": lambda t: t.nn.functional.conv2d(t.ones(1, 1, 5, 5), t.ones(1, 1, 3, 3)).dtype,
    "attention": lambda t: t.nn.functional.scaled_dot_product_attention(*[t.ones(1, 2, 3, 4)] * 3).dtype,
    "float64 matmul": lambda t: (t.ones(3, 3).double() @ t.ones(3, 3).double()).dtype,
    "softmax of half": lambda t: t.softmax(t.ones(3).bfloat16(), 0).dtype,
    "exp": lambda t: t.exp(t.ones(3).bfloat16()).dtype,
    "mse_loss of half": lambda t: t.nn.functional.mse_loss(*[t.ones(3).bfloat16()] * 2).dtype,
    "cross_entropy of half": lambda t: (
        t.nn.functional.cross_entropy(t.ones(2, 3).bfloat16(), t.tensor([0, 1])).dtype
    ),
    "prod of half": lambda t: t.prod(t.ones(3).bfloat16()).dtype,
    "fft of half": lambda t: t.fft.fft(t.ones(4).half()).dtype,
    "inv of half": lambda t: t.linalg.inv(t.eye(3).bfloat16()).dtype,
    "cat of both": lambda t: t.cat([t.ones(3).to(t.get_autocast_dtype("cpu")), t.ones(3)]).dtype,
    "stack of both": lambda t: t.stack([t.ones(3).to(t.get_autocast_dtype("cpu")), t.ones(3)]).dtype,
    "cat of half": lambda t: t.cat([t.ones(3).to(t.get_autocast_dtype("cpu"))] * 2).dtype,
    "add of both": lambda t: (t.ones(3).bfloat16() + t.ones(3)).dtype,
    "layer_norm": lambda t: t.nn.functional.layer_norm(t.ones(2, 3).bfloat16(), (3,)).dtype,
}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("call", CALLS)
def test_operators_cast_as_pytorch_does(call, dtype):
    oracle = pytest.importorskip("torch")
    results = []
    for module in (torch, oracle):
        with module.autocast("cpu", dtype=getattr(module, dtype)):
            results.append(str(CALLS[call](module)))
    assert results[0] == results[1]


def test_regions_nest_and_end():
    x = torch.ones(3, 3)
    assert not torch.is_autocast_enabled("cpu")
    with autocast("cpu"):
        assert torch.is_autocast_enabled("cpu")
        assert (x @ x).dtype == torch.bfloat16
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype == torch.float32
        with autocast("cpu", dtype=torch.float16):
            assert (x @ x).dtype == torch.float16
        assert (x @ x).dtype == torch.bfloat16
        with pytest.raises(ZeroDivisionError), autocast("cpu", enabled=False):
            raise ZeroDivisionError
        assert (x @ x).dtype == torch.bfloat16
        out = torch.empty(3, 3)
        assert torch.mm(x, x, out=out).dtype == torch.float32
    assert (x @ x).dtype == torch.float32

    @autocast("cpu")
    def product(a):
        return a @ a

    assert product(x).dtype == torch.bfloat16


def test_gradients_reach_float32_weights():
    oracle = pytest.importorskip("torch")
    results = []
    for module in (torch, oracle):
        module.manual_seed(0)
        model = module.nn.Sequential(module.nn.Linear(4, 8), module.nn.ReLU(), module.nn.Linear(8, 3))
        x, y = module.randn(5, 4), module.tensor([0, 1, 2, 0, 1])
        with module.autocast("cpu"):
            out = model(x)
            loss = module.nn.functional.cross_entropy(out, y)
        loss.backward()
        assert out.dtype == module.bfloat16
        assert loss.dtype == module.float32
        results.append([loss.item(), *(p.grad.dtype == module.float32 for p in model.parameters())])
        results[-1] += [v for p in model.parameters() for v in p.grad.flatten().tolist()]
    assert results[0] == pytest.approx(results[1], rel=2e-2, abs=2e-3)


def test_casts_of_weights_are_kept_and_renewed():
    layer, x = nn.Linear(3, 3), torch.ones(2, 3)
    with autocast("cpu"):
        first = layer(x)
        with torch.no_grad():
            layer.weight.zero_()
            layer.bias.fill_(2)
        assert layer(x).float().eq(2).all()  # not the cast from before the update
        with torch.no_grad():
            layer(x)
        (first.sum() + layer(x).sum()).backward()
    assert layer.weight.grad.eq(4).all()


def test_what_is_refused():
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        region = autocast("cpu", dtype=torch.int32)
    with region:
        assert not torch.is_autocast_enabled("cpu")
    with pytest.warns(UserWarning, match="CUDA is not available"):
        autocast("cuda")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        autocast("gpu")
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        autocast(torch.device("cpu"))


def test_custom_functions():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            seen.append((x.dtype, torch.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu")
        def backward(ctx, g):
            seen.append(torch.is_autocast_enabled("cpu"))
            return g * 2

    x = torch.ones(2, dtype=torch.bfloat16, requires_grad=True)
    with autocast("cpu"):
        y = Double.apply(x)
    y.sum().backward()
    assert seen == [(torch.float32, False), False]
    assert y.dtype == torch.float32
    assert x.grad.tolist() == [2, 2]


def scaled_training(module, poison=None):
    module.manual_seed(0)
    model = module.nn.Linear(3, 2)
    optimizer = module.optim.SGD(model.parameters(), lr=0.1)
    scaler = module.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    trace = []
    for step in range(5):
        optimizer.zero_grad()
        loss = model(module.ones(4, 3)).pow(2).mean()
        if step == poison:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if step == 1:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        trace += [scaler.get_scale(), *model.weight.flatten().tolist()]
    return trace, scaler.state_dict()


@pytest.mark.parametrize("poison", [None, 2])
def test_scaler_follows_pytorch(poison):
    oracle = pytest.importorskip("torch")
    ours, theirs = scaled_training(torch, poison), scaled_training(oracle, poison)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-5)
    assert ours[1] == theirs[1]


def test_scaler_state_and_mistakes():
    scaler = GradScaler("cpu", init_scale=4.0)
    p = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p], lr=1.0)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaled = scaler.scale([p.sum(), (p.sum(),)])
    assert scaled[0].item() == 8
    assert scaled[1][0].item() == 8
    scaled[0].backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    assert p.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    scaler.update(2.0)
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 2.0
    other = GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 2.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        off = GradScaler()
    assert off.scale(p) is p
    assert off.state_dict() == {}
    with pytest.raises(ValueError, match="outputs must be a Tensor"):
        scaler.scale(3)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell"])
def test_recurrent_layers_have_pytorchs_dtypes(kind):
    theirs = pytest.importorskip("torch")
    seen = []
    for lib in (torch, theirs):
        layer = getattr(lib.nn, kind)(8, 8)
        x = lib.ones(3, 2, 8) if len(kind) < 5 else lib.ones(2, 8)
        before = lib.nn.Linear(8, 8)  # gives the layer bfloat16
        with lib.autocast("cpu", lib.bfloat16):
            result = layer(before(x))
        flat = [result] if isinstance(result, lib.Tensor) else [result[0], *result[1:]]
        tensors = [t for part in flat for t in (part if isinstance(part, tuple) else (part,))]
        tensors[0].float().sum().backward()
        dtypes = [str(t.dtype).split(".")[1] for t in (*tensors, next(layer.parameters()).grad)]
        seen.append(dtypes)
    assert seen[0] == seen[1]


def test_the_former_home_on_the_cpu():
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"):
        region = torch.cpu.amp.autocast()
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with pytest.warns(FutureWarning, match="torch.cpu.amp.GradScaler"):
        assert torch.cpu.amp.GradScaler(init_scale=4.0).get_scale() == 4


def test_device_strings_that_cannot_be_any():
    for read in (torch.device, torch.autocast, torch.amp.is_autocast_available):
        with pytest.raises(RuntimeError, match="Invalid device string: 'not a device'"):
            read("not a device")
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            read("foo")


def test_optimizers_that_take_the_scaler_are_told_that_they_should_not():
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            self.seen = grad_scaler

    w = torch.nn.Parameter(torch.ones(1))
    optimizer, scaler = Own([w], lr=0.1), GradScaler("cpu")
    scaler.scale(w.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.seen is scaler


def _answer(call):
    try:
        return str(call())
    except (RuntimeError, TypeError) as problem:
        return f"{type(problem).__name__}: {problem}"


def _regions_by(t, device):
    def within():
        with t.autocast(device):
            return t.mm(t.ones(2, 2), t.ones(2, 2)).dtype, t.is_autocast_enabled(device)

    calls = (
        lambda: t.amp.is_autocast_available(device),
        lambda: t.is_autocast_enabled(device),
        lambda: t.get_autocast_dtype(device),
        within,
        lambda: t.is_autocast_enabled(device),
        lambda: t.is_autocast_enabled("cpu"),
    )
    return [_answer(call) for call in calls]


@pytest.mark.parametrize(
    "device", ["cpu:0", "cpu:1", "xla", "mps", "hpu:0", "meta", "vulkan", "foo", "cpu:x", ""]
)
def test_devices_are_named_as_for_tensors(device):
    """A device with its number, devices that are not here, and what names none."""
    oracle = pytest.importorskip("torch")
    assert _regions_by(torch, device) == _regions_by(oracle, device)
    dtypes = []
    for t in (torch, oracle):
        with t.autocast("cpu", dtype=t.bfloat16), t.autocast("cpu:0", enabled=False):
            dtypes.append(str(t.mm(t.ones(2, 2), t.ones(2, 2)).dtype))
    assert dtypes == ["torch.float32"] * 2


def test_functions_cast_on_a_device_with_its_number():
    class Double(torch.autograd.Function):
        @staticmethod
        @custom_fwd(device_type="cpu:0", cast_inputs=torch.float16)
        def forward(ctx, x):
            return x * 2

        @staticmethod
        @custom_bwd(device_type="cpu:0")
        def backward(ctx, gradient):
            return gradient * 2

    with autocast("cpu"):
        y = Double.apply(torch.ones(2, requires_grad=True))
    assert y.dtype == torch.float16
