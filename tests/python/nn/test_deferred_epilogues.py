"""What follows a convolution is computed when somebody reads it; nobody must be able to tell."""

import threading

import pytest

import rushlight as rl
from rushlight.nn import functional as F

pytestmark = pytest.mark.skipif(
    not rl.backends.mkldnn.is_available(), reason="layouts are deferred for oneDNN"
)
DTYPES = [rl.float32, rl.bfloat16]


def operands(dtype=rl.float32, channels=24):
    rl.manual_seed(0)
    x, w = rl.randn(4, 5, 9, 7, dtype=dtype), rl.randn(channels, 5, 3, 3, dtype=dtype)
    return x, w, [rl.randn(channels), rl.rand(channels) + 0.5, rl.randn(channels), rl.randn(channels)]


def convolved(x, w, *, seen=False):
    y = F.conv2d(x, w, padding=1)
    if seen:
        y.data_ptr()  # puts it in order: operators compute at once
    return y


def normed(y, statistics, training=False):
    mean, variance, weight, bias = statistics
    return F.batch_norm(y, mean.clone(), variance.clone(), weight, bias, training)


CHAINS = {
    "norm": lambda y, z, s: normed(y, s),
    "relu": lambda y, z, s: F.relu(normed(y, s)),
    "relu in place": lambda y, z, s: normed(y, s).relu_(),
    "relu6": lambda y, z, s: F.relu6(normed(y, s), inplace=True),
    "two bounds": lambda y, z, s: F.hardtanh(F.relu(normed(y, s)), -1.0, 0.5),
    "bounds apart": lambda y, z, s: F.hardtanh(F.hardtanh(normed(y, s), 0.0, 1.0), 2.0, 3.0),
    "bound without a half": lambda y, z, s: F.hardtanh(normed(y, s), -0.3, 0.7),
    "sum": lambda y, z, s: normed(y, s) + z,
    "sum on the right": lambda y, z, s: z + normed(y, s),
    "sum of two": lambda y, z, s: normed(y, s) + normed(z, s),
    "sum in place": lambda y, z, s: normed(y, s).add_(z).relu_(),
    "sum, bounded": lambda y, z, s: F.relu(normed(y, s) + z),
    "sum with itself": lambda y, z, s: F.relu(normed(y, s) + y),
    "bounded, then summed": lambda y, z, s: F.relu(normed(y, s)) + z,
    "two sums": lambda y, z, s: normed(y, s) + z + y,
    "scaled sum": lambda y, z, s: rl.add(normed(y, s), z, alpha=2),
    "pooled": lambda y, z, s: F.max_pool2d(F.relu(normed(y, s)), 2),
    "joined": lambda y, z, s: rl.cat([normed(y, s), F.relu(normed(z, s))], 1),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS.keys())
def test_results_are_those_of_operators_that_compute_at_once(chain, dtype):
    x, w, statistics = operands(dtype)
    later, at_once = (
        chain(convolved(x, w, seen=seen), convolved(x.flip(0), w, seen=seen), statistics)
        for seen in (False, True)
    )
    assert later.dtype == at_once.dtype and later.is_contiguous()
    assert rl.equal(later, at_once)


@pytest.mark.parametrize("channels", [2, 15, 16, 17, 40])
def test_any_number_of_channels(channels):
    x, w, statistics = operands(channels=channels)
    later, at_once = (F.relu(normed(convolved(x, w, seen=seen), statistics)) for seen in (False, True))
    assert rl.equal(later, at_once)


def test_what_is_not_a_number_stays():
    x, w, statistics = operands()
    x[0, 0, 0, 0], x[1, 0, 0, 0] = float("nan"), float("inf")
    later, at_once = (F.relu6(normed(convolved(x, w, seen=seen), statistics)) for seen in (False, True))
    assert rl.equal(later.isnan(), at_once.isnan()) and later.isnan().any()
    assert rl.equal(later.nan_to_num(), at_once.nan_to_num())


def test_later_writes_are_not_seen():
    x, w, statistics = operands()
    expected = F.relu(normed(convolved(x, w, seen=True), statistics) + convolved(x, w, seen=True))
    y, z = convolved(x, w), convolved(x, w)
    result = F.relu(normed(y, statistics) + z)
    y.zero_(), z.fill_(5), x.zero_(), w.zero_()
    y.relu_().add_(z)
    for t in statistics:
        t.zero_()
    assert rl.equal(result, expected)


def test_writing_to_an_operand_whose_image_is_shared():
    x, w, statistics = operands()
    y, z = convolved(x, w), convolved(x, w)
    plain = convolved(x, w, seen=True)
    n = normed(y, statistics)
    bounded = F.relu(n)
    summed = bounded.neg() + n + z
    y.mul_(2), z.mul_(3)
    assert rl.equal(y, plain * 2) and rl.equal(z, plain * 3)
    assert rl.equal(n, normed(plain, statistics)) and rl.equal(bounded, F.relu(n))
    assert rl.equal(summed, bounded.neg() + n + plain)


def test_aliases_see_what_is_written_in_place():
    x, w, statistics = operands()
    n = normed(convolved(x, w), statistics)
    alias = n.detach()
    n.relu_()
    assert rl.equal(alias, F.relu(normed(convolved(x, w, seen=True), statistics)))
    assert n.untyped_storage().data_ptr() == alias.untyped_storage().data_ptr()


def test_gradients_second_ones_too():
    x, w, statistics = operands()
    results = []
    for seen in (False, True):
        filters = w.clone().requires_grad_(True)
        y = convolved(x, filters, seen=seen)
        out = F.relu(normed(y, statistics, training=True) + y)
        (g,) = rl.autograd.grad(out.square().sum(), filters, create_graph=True)
        (gg,) = rl.autograd.grad(g.square().sum(), filters)
        results.append((out, g, gg))
    for later, at_once in zip(*results, strict=True):
        assert rl.allclose(later, at_once, rtol=1e-3, atol=1e-3 * at_once.abs().max().item())


def test_a_write_in_place_is_noticed_by_the_backward_pass():
    x, w, statistics = operands()
    n = F.relu(normed(convolved(x, w.requires_grad_(True)), statistics))
    out = n.exp()
    out.relu_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_hooks_see_the_values():
    model = rl.nn.Sequential(rl.nn.Conv2d(3, 8, 3), rl.nn.BatchNorm2d(8), rl.nn.ReLU()).eval()
    seen = []
    for layer in model:
        layer.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    x = rl.randn(2, 3, 9, 9)
    with rl.no_grad():
        y = model(x)
    assert rl.equal(seen[2], y) and rl.equal(F.relu(seen[1]), y)
    assert (seen[1] < 0).any() and not rl.equal(seen[0], seen[1])


def test_readers_on_many_threads_agree():
    x, w, statistics = operands()
    expected = F.relu(normed(convolved(x, w, seen=True), statistics))
    for _ in range(20):
        shared, wrong = F.relu(normed(convolved(x, w), statistics)), []
        together = threading.Barrier(4)

        def read(shared=shared, wrong=wrong, together=together):
            together.wait()
            if not rl.equal(rl.add(shared, 0.0), expected):
                wrong.append(1)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
