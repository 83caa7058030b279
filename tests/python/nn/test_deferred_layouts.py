"""Images whose channels come last in memory while they are contiguous to all who ask."""

import copy
import io
import pickle

import pytest

import rushlight as rl
from rushlight import nn
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(
    not rl.backends.mkldnn.is_available(), reason="layouts are deferred for oneDNN"
)


def materialized():
    return rl._C._materialized_layouts()


def image(*, seed=0, channels=8, size=6):
    """The result of a convolution, and the same computed by an operator that defers nothing."""
    rl.manual_seed(seed)
    x, w = rl.randn(5, 3, size, size), rl.randn(channels, 3, 3, 3)
    plain = F.unfold(x, 3, padding=1).transpose(1, 2) @ w.flatten(1).t()
    return F.conv2d(x, w, padding=1), plain.transpose(1, 2).reshape(5, channels, size, size).contiguous()


def close(a, b):
    return rl.allclose(a, b, atol=1e-4)


def test_a_result_is_contiguous_to_all_who_ask():
    y, plain = image()
    assert (
        y.is_contiguous()
        and y.stride() == plain.stride()
        and not y.is_contiguous(memory_format=rl.channels_last)
    )
    before = materialized()
    assert close(y.view(-1), plain.view(-1))
    assert materialized() == before + 1
    address = y.data_ptr()
    assert close(y + 0, plain) and y.data_ptr() == address and materialized() == before + 1


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU6(inplace=True),
        nn.Conv2d(16, 8, 1),
        nn.SiLU(inplace=True),
        nn.AvgPool2d(2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


@pytest.mark.parametrize("half", [False, True])
def test_a_network_never_puts_its_images_in_order(half):
    model, x = network(), rl.randn(5, 3, 16, 16)
    before = materialized()
    with rl.autocast("cpu", dtype=rl.bfloat16, enabled=half):
        model(x).float().sum().backward()
    model.eval()
    with rl.no_grad():
        model(x)
    assert materialized() == before


def test_residuals_branches_and_joins_stay_deferred():
    x = rl.randn(5, 8, 6, 6, requires_grad=True)
    a, b = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 1)
    before = materialized()
    y = F.relu(a(x) + b(x)) * rl.sigmoid(b(x).mean((2, 3), keepdim=True))
    y.sum().backward()
    with rl.no_grad():
        z = rl.cat([y, a(y)], 1).clone().double().float()
    assert materialized() == before
    assert close(z, rl.cat([y.double(), a(y).double()], 1).contiguous().float())


def test_gradients_are_those_of_plain_layouts():
    def run(dtype):
        rl.manual_seed(0)
        model, x = network().to(dtype), rl.randn(5, 3, 16, 16).to(dtype).requires_grad_(True)
        model(x).square().sum().backward()
        return [x.grad, *[p.grad for p in model.parameters()]]

    for ours, wide in zip(run(rl.float32), run(rl.float64), strict=True):  # doubles defer nothing
        assert rl.allclose(ours.double(), wide, rtol=1e-3, atol=1e-4)


def test_writes_reach_the_elements():
    for write in (
        lambda t: t.relu_(),
        lambda t: t.mul_(t.detach()),
        lambda t: t.add_(t.transpose(2, 3).clone()),
        lambda t: t.mul_(rl.arange(6.0)),
        lambda t: t.sub_(rl.ones(5, 8, 6, 6)),
        lambda t: t[:, 1:3].zero_(),
        lambda t: t.view(5, -1).add_(1),
        lambda t: t.copy_(t.flip(0)),
        lambda t: rl.add(t, 1, out=t),
        lambda t: t.clamp_(min=0).div_(2).transpose(0, 1).neg_(),
        lambda t: t.detach().exp_(),
        lambda t: t.index_fill_(1, rl.tensor([0, 2]), 5.0),
    ):
        y, plain = image()
        write(y)
        write(plain)
        assert close(y, plain)


def test_a_result_written_into_given_memory():
    y, plain = image()
    out = rl.empty(0)
    rl.mul(y, 2, out=out)
    assert close(out, plain * 2)
    other, _ = image(seed=1)
    rl.mul(y, 2, out=other)
    assert close(other, plain * 2)


def test_operands_in_any_layout():
    y, plain = image()
    for other in (rl.randn(5, 8, 6, 6), rl.randn(5, 8, 6, 6).to(memory_format=rl.channels_last), rl.randn(6)):
        assert close(y + other, plain + other) and close(other - y, other - plain)
        assert (y + other).stride() == (plain + other).stride()
    assert close(rl.where(y > 0, y, -y), plain.abs())
    assert close(y[0] + y, plain[0] + plain)
    wide = rl.randn(3, 5, 8, 6, 6)
    assert close(y + wide, plain + wide)


def test_memory_can_be_taken_everywhere():
    y, plain = image()
    assert close(rl.from_numpy(y.numpy()), plain)
    for through in (
        lambda t: pickle.loads(pickle.dumps(t)),
        copy.deepcopy,
        lambda t: rl.from_dlpack(t),
        lambda t: t.share_memory_(),
        lambda t: t.as_strided((5, 8, 6, 6), t.stride()),
        lambda t: t.view(rl.int32).view(rl.float32),
    ):
        y, plain = image()
        assert close(through(y), plain)
    y, plain = image()
    file = io.BytesIO()
    rl.save(y, file)
    file.seek(0)
    assert close(rl.load(file), plain)
    y, plain = image()
    assert y.untyped_storage().nbytes() == plain.untyped_storage().nbytes()
    assert close(y, plain)
    y, plain = image()
    assert close(
        y.resize_(5, 8, 6, 12)[:, :, :, :6].reshape(-1)[:6], plain.resize_(5, 8, 6, 12).reshape(-1)[:6]
    )
    assert y.grad_fn is None and y[0, 0, 0, 0].item() == y.tolist()[0][0][0][0]


def test_hooks_and_saved_tensors_read_plain_elements():
    x = rl.randn(5, 3, 5, 5)
    conv = nn.Conv2d(3, 4, 3)
    y = conv(x)
    seen = []
    y.register_hook(lambda g: seen.append(g.reshape(-1).tolist()))
    y.retain_grad()
    (y * y).sum().backward()
    assert close(y.grad, 2 * y.detach()) and seen[0] == y.grad.reshape(-1).tolist()


def test_many_readers_agree():
    from concurrent.futures import ThreadPoolExecutor

    for seed in range(20):
        y, plain = image(seed=seed, size=32)
        with ThreadPoolExecutor(4) as pool:
            sums = list(pool.map(lambda _, y=y: y.view(-1)[5:9].tolist(), range(8)))
        assert all(s == sums[0] for s in sums) and close(rl.tensor(sums[0]), plain.view(-1)[5:9])
