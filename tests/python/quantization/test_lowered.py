"""Graphs of integers from `convert_fx`, and recurrent layers of integers, give PyTorch's numbers."""

import copy
import importlib
import io

import numpy as np
import pytest

import rushlight


def image_network(t):
    nn, F = t.nn, t.nn.functional

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.bn, self.relu = nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()
            self.point, self.depthwise = nn.Conv2d(16, 16, 1), nn.Conv2d(16, 16, 3, padding=1, groups=16)
            self.hardswish, self.pool, self.gate = nn.Hardswish(), nn.MaxPool2d(2), nn.Sigmoid()
            self.elu, self.leaky, self.norm = nn.ELU(), nn.LeakyReLU(0.2), nn.BatchNorm2d(16)
            self.up, self.mean = nn.ConvTranspose2d(16, 16, 3, 2, 1, 1), nn.AdaptiveAvgPool2d(1)
            self.linear = nn.Linear(32, 10)

        def forward(self, x):
            x = self.relu(self.bn(self.conv(x)))
            x = self.pool(F.relu(x + self.point(x)))
            y = self.hardswish(self.depthwise(x)) * self.gate(x)
            y = self.leaky(self.norm(self.elu(y))) + 1.0
            y = F.max_pool2d(self.up(y), 2)
            return self.linear(self.mean(t.cat([y, x], 1)).flatten(1))

    return Network().eval()


def function_network(t):
    nn, F = t.nn, t.nn.functional

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            for name, shape in (("filters", (16, 3, 3, 3)), ("b", (16,)), ("w", (8, 16)), ("c", (8,))):
                setattr(self, name, nn.Parameter(t.empty(shape)))

        def forward(self, x):
            x = F.relu(F.conv2d(x, self.filters, self.b, (1, 1), (1, 1), (1, 1), 1))
            x = F.interpolate(x, scale_factor=2).mean([2, 3])
            x = F.hardtanh(x)
            return F.relu(F.linear(x, self.w, self.c)).view(x.size(0), -1)

    return Network().eval()


def filled(t, model, seed=0):
    generator = np.random.default_rng(seed)
    with t.no_grad():
        for name, value in sorted(model.state_dict().items()):
            if value.dtype == t.float32:
                drawn = (0.3 * generator.standard_normal(tuple(value.shape))).astype(np.float32)
                value.copy_(t.from_numpy(np.abs(drawn) + 0.5 if "running_var" in name else drawn))
    return model


def numbers(shape):
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def converted(t, model, x, engine):
    home = importlib.import_module(f"{t.__name__}.ao.quantization.quantize_fx")
    x = t.from_numpy(x)
    prepared = home.prepare_fx(model, t.ao.quantization.get_default_qconfig_mapping(engine), (x,))
    prepared(x)
    return home.convert_fx(prepared)


@pytest.mark.parametrize("engine", ["x86", "fbgemm"])
@pytest.mark.parametrize(
    ("build", "shape"), [(image_network, (4, 3, 16, 16)), (function_network, (4, 3, 8, 8))]
)
def test_graphs_of_integers(torch, build, shape, engine):
    x = numbers(shape)
    models = [converted(t, filled(t, build(t)), x, engine) for t in (torch, rushlight)]
    theirs, ours = ([(n.op, n.name) for n in m.graph.nodes] for m in models)
    assert ours == theirs
    assert sorted(models[1].state_dict()) == sorted(models[0].state_dict())
    expected, found = (m(t.from_numpy(x)).numpy() for t, m in zip((torch, rushlight), models))
    scale = np.abs(expected[expected != 0]).min()
    np.testing.assert_allclose(found, expected, atol=1e-3 * scale)  # the same integers
    assert len(np.unique(found)) > 10


def test_graphs_of_integers_are_copied_and_saved():
    x = numbers((4, 3, 8, 8))
    model = converted(rushlight, filled(rushlight, function_network(rushlight)), x, "x86")
    expected = model(rushlight.from_numpy(x)).numpy()
    np.testing.assert_array_equal(copy.deepcopy(model)(rushlight.from_numpy(x)).numpy(), expected)
    file = io.BytesIO()
    rushlight.save(model.state_dict(), file)
    file.seek(0)
    other = converted(rushlight, filled(rushlight, function_network(rushlight), 1), x, "x86")
    other.load_state_dict(rushlight.load(file, weights_only=False))
    np.testing.assert_array_equal(other(rushlight.from_numpy(x)).numpy(), expected)


def recurrent_network(t, kind):
    nn = t.nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(20, 16)
            self.layers = getattr(nn, kind)(16, 8, 2, bidirectional=True)
            self.last = nn.Linear(16, 3)

        def forward(self, x):
            result, state = self.layers(self.table(x))
            return self.last(result), state

    return Network().eval()


def flat(result):
    if isinstance(result, tuple):
        return [part for one in result for part in flat(one)]
    return [result.detach().numpy()]


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_dynamic_recurrent_layers(torch, kind):
    rows = np.arange(12).reshape(6, 2)
    found = []
    for t in (torch, rushlight):
        model = filled(t, recurrent_network(t, kind))
        made = t.ao.quantization.quantize_dynamic(model, {getattr(t.nn, kind), t.nn.Linear}, dtype=t.qint8)
        found.append([*flat(made(t.from_numpy(rows))), repr(made.layers)])
    assert found[1][-1] == found[0][-1]
    for ours, theirs in zip(found[1][:-1], found[0][:-1]):
        np.testing.assert_allclose(ours, theirs, atol=3e-7)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_packed_sequences(torch, kind, dtype):
    x = numbers((7, 3, 16))
    found = []
    for t in (torch, rushlight):
        model = t.nn.Sequential(getattr(t.nn, kind)(16, 8, bidirectional=True))
        made = t.ao.quantization.quantize_dynamic(filled(t, model), dtype=getattr(t, dtype))
        packed = t.nn.utils.rnn.pack_padded_sequence(t.from_numpy(x), [4, 7, 2], enforce_sorted=False)
        result, state = made(packed)
        found.append(flat((result.data, state)))
    for ours, theirs in zip(*found[::-1]):
        np.testing.assert_allclose(ours, theirs, atol=1e-5 if dtype == "float16" else 3e-7)


@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell", "RNNCell"])
def test_dynamic_cells(torch, kind):
    found = []
    for t in (torch, rushlight):
        model = filled(t, t.nn.Sequential(getattr(t.nn, kind)(16, 8)))
        made = t.ao.quantization.quantize_dynamic(model, {getattr(t.nn, kind)}, dtype=t.qint8)
        found.append(flat(made(t.from_numpy(numbers((5, 16))))))
    for ours, theirs in zip(*found[::-1]):
        np.testing.assert_allclose(ours, theirs, atol=3e-7)


def test_states_of_recurrent_layers_load_both_ways(torch):
    rows = np.arange(12).reshape(6, 2)
    made = {}
    for t in (torch, rushlight):
        model = filled(t, recurrent_network(t, "LSTM"), seed=t is torch)
        ao = t.ao.quantization
        kinds = {
            t.nn.LSTM: ao.default_dynamic_qconfig,
            t.nn.Embedding: ao.float_qparams_weight_only_qconfig,
        }
        made[t] = ao.quantize_dynamic(model, kinds)
    for source, target in ((torch, rushlight), (rushlight, torch)):
        file = io.BytesIO()
        source.save(made[source].state_dict(), file)
        file.seek(0)
        expected = flat(made[source](source.from_numpy(rows)))
        made[target].load_state_dict(target.load(file, weights_only=False))
        for one, other in zip(expected, flat(made[target](target.from_numpy(rows)))):
            np.testing.assert_allclose(other, one, atol=3e-7)
