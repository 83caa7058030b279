"""Models with observers and with rounded weights: what fusing, preparing and training make of them."""

import io
import warnings
from importlib import import_module

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import quantization as ours
from rushlight.ao.nn import intrinsic, qat
from rushlight.ao.nn.intrinsic import qat as fused_qat


def _model(library, package):
    class Net(library.nn.Module):
        def __init__(self):
            super().__init__()
            n = library.nn
            self.quant, self.dequant = package.QuantStub(), package.DeQuantStub()
            self.conv, self.bn, self.relu = n.Conv2d(3, 4, 3), n.BatchNorm2d(4), n.ReLU()
            self.plain = n.Conv2d(4, 4, 3, padding=1, bias=False)
            self.head = n.Sequential(n.Linear(4, 6), n.Sigmoid())
            self.last, self.last_bn = n.Linear(6, 5), n.BatchNorm1d(5)
            self.sum = library.ao.nn.quantized.FloatFunctional()

        def forward(self, x):
            x = self.relu(self.bn(self.conv(self.quant(x))))
            x = self.sum.add(x, self.plain(x)).mean((2, 3))
            return self.dequant(self.last_bn(self.last(self.head(x))))

    return Net()


def _samples():
    draw = np.random.RandomState(1)
    return [draw.randn(8, 3, 7, 7).astype("f4") for _ in range(3)]


def _run(library, package, start, train, backend):
    model = _model(library, package)
    model.load_state_dict({name: library.from_numpy(value.copy()) for name, value in start.items()})
    model.train(train)
    fuse = package.fuse_modules_qat if train else package.fuse_modules
    model = fuse(model, [["conv", "bn", "relu"], ["last", "last_bn"]])
    configure = package.get_default_qat_qconfig if train else package.get_default_qconfig
    model.qconfig = configure(backend)
    model = (package.prepare_qat if train else package.prepare)(model)
    results, sizes = [], []

    def measure(_, operands):
        operands[0].register_hook(lambda gradient: sizes.append(gradient.abs().sum(0).max().item()))

    if train:
        model.last.bn.register_forward_pre_hook(measure)
    for sample in _samples():
        result = model(library.from_numpy(sample))
        if train:
            (result.relu() ** 3).sum().backward()  # normalised: a sum of squares has no slope
        results.append(result.detach().numpy())
    return model, results, sum(sizes)


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("backend", ["x86", "qnnpack"])
def test_prepared_models_compute_what_pytorchs_do(train, backend):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    start = {k: v.numpy() for k, v in _model(torch, torch.ao.quantization).state_dict().items()}
    theirs, expected, terms = _run(torch, torch.ao.quantization, start, train, backend)
    mine, results, _ = _run(rushlight, ours, start, train, backend)
    for one, two in zip(results, expected):
        np.testing.assert_allclose(one, two, atol=2e-6)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    gradients = {name: p.grad for name, p in theirs.named_parameters() if p.grad is not None}
    assert bool(gradients) == train
    for name, gradient in gradients.items():
        found = dict(mine.named_parameters())[name].grad.numpy()
        if name == "last.bias":
            # Normalisation takes it away again: zero, up to the rounding of a sum whose terms are this large.
            # The operand varies by a hundredth of its size: a term has two digits fewer than its format.
            assert max(np.abs(found).max(), gradient.abs().max().item()) < 5e-6 * terms
            continue
        scale = gradient.abs().max().item() + 1  # another bias before normalisation has none either
        np.testing.assert_allclose(found, gradient.numpy(), atol=1e-2 * scale)
    for source, target, state, taker in (
        (rushlight, torch, mine.state_dict(), theirs),
        (torch, rushlight, theirs.state_dict(), mine),
    ):
        file = io.BytesIO()
        source.save(state, file)
        file.seek(0)
        taker.load_state_dict(target.load(file))


def test_fused_layers_compute_what_their_parts_do():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    model[1].running_mean.uniform_(-1, 1)
    model[1].running_var.uniform_(0.5, 2)
    model.eval()
    fused = ours.fuse_modules(model, ["0", "1", "2"])
    assert type(fused[0]) is intrinsic.ConvReLU2d
    assert type(fused[1]) is type(fused[2]) is nn.Identity
    x = rushlight.randn(2, 2, 4, 4)
    assert rushlight.allclose(model(x), fused(x), atol=1e-5)
    with pytest.raises(AssertionError, match="did not find fuser method"):
        ours.fuse_modules(model, ["0", "4"])
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        ours.fuse_modules(model.train(), ["0", "1"])
    with pytest.raises(AssertionError, match="Incorrect types for input modules"):
        intrinsic.ConvReLU2d(nn.ReLU(), nn.Conv2d(1, 1, 1))


def test_hooks_move_to_the_fused_layer():
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU()).eval()
    seen = []
    model[0].register_forward_pre_hook(lambda *_: seen.append("before"))
    model[1].register_forward_hook(lambda *_: seen.append("after"))
    ours.fuse_modules(model, ["0", "1"])(rushlight.randn(1, 2))
    assert seen == ["before", "after"]


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_folded_normalisation_is_normalisation(dims):
    """With nothing rounded, the folded layer is the pair, in training too; its statistics can be frozen."""
    conv = getattr(nn, f"Conv{dims}d")(2, 3, 3, bias=dims == 2)
    bn = getattr(nn, f"BatchNorm{dims}d")(3)
    pair = getattr(intrinsic, f"ConvBnReLU{dims}d")(conv, bn, nn.ReLU())
    pair.qconfig = ours.get_default_qat_qconfig()
    layer = getattr(fused_qat, f"ConvBnReLU{dims}d").from_float(pair)
    layer.apply(ours.disable_fake_quant)
    layer.apply(ours.disable_observer)
    x = rushlight.randn(4, 2, *[5] * dims)
    mean = bn.running_mean.clone()
    expected = nn.functional.relu(
        nn.functional.batch_norm(conv(x), None, None, bn.weight, bn.bias, True, eps=bn.eps)
    )
    assert rushlight.allclose(layer(x), expected, atol=2e-5)
    assert not rushlight.equal(layer.bn.running_mean, mean)
    layer.apply(fused_qat.freeze_bn_stats)
    mean = layer.bn.running_mean.clone()
    layer(x)
    assert rushlight.equal(layer.bn.running_mean, mean)
    plain = layer.to_float().eval()
    assert rushlight.allclose(plain(x), layer.eval()(x), atol=2e-5)


def test_layers_of_training_need_a_configuration():
    with pytest.raises(AssertionError, match="qconfig must be provided"):
        qat.Linear(2, 3)
    with pytest.raises(AssertionError, match="Input float module must have qconfig defined"):
        qat.Linear.from_float(nn.Linear(2, 3))
    with pytest.raises(AssertionError, match="only works for Linear"):
        qat.Linear.from_float(nn.Conv2d(1, 1, 1))
    with pytest.raises(AssertionError, match="training mode"):
        ours.prepare_qat(nn.Linear(2, 3).eval())
    layer = nn.Embedding(4, 3)
    layer.qconfig = ours.default_qconfig
    with pytest.raises(AssertionError, match="qscheme of torch.per_channel_affine_float_qparams"):
        qat.Embedding.from_float(layer)


def test_former_names_are_the_same_classes():
    assert nn.quantized.FloatFunctional is rushlight.ao.nn.quantized.FloatFunctional
    assert nn.intrinsic.qat.ConvBn2d is fused_qat.ConvBn2d
    assert nn.qat.Linear is qat.Linear
    import_module("rushlight.quantization")
    assert rushlight.quantization.QConfig is ours.QConfig


def test_quantizable_lstm_is_an_lstm():
    plain = nn.LSTM(3, 4, 2, bidirectional=True)
    plain.qconfig = ours.default_qconfig
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = rushlight.ao.nn.quantizable.LSTM.from_float(plain.eval())
    x = rushlight.randn(5, 2, 3)
    result, (h, c) = layer(x)
    expected, (eh, ec) = plain(x)
    assert rushlight.allclose(result, expected, atol=1e-5)
    assert rushlight.allclose(h, eh, atol=1e-5)
    assert rushlight.allclose(c, ec, atol=1e-5)


def test_quantizable_attention_is_attention():
    plain = nn.MultiheadAttention(8, 2).eval()
    plain.qconfig = ours.default_qconfig
    layer = rushlight.ao.nn.quantizable.MultiheadAttention.from_float(plain)
    x = rushlight.randn(5, 2, 8)
    for mine, expected in zip(layer(x, x, x), plain(x, x, x)):
        assert rushlight.allclose(mine, expected, atol=1e-5)
