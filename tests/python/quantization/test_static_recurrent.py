"""LSTM with static scales in graphs: integers go in, and its three results are read as numbers."""

import operator
from importlib import import_module

import numpy as np
import pytest

import rushlight


def _network(library, whole):
    n = library.nn

    class Net(n.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.first, self.second = n.LSTM(6, 5), n.Linear(5, 3), n.Linear(5, 2)

        def forward(self, x, h, c):
            if whole:
                return self.lstm(x, (h, c))
            out, (h, c) = self.lstm(x, (h, c))
            return self.first(out), self.second(h), c

    return Net().eval()


def _converted(library, start, inputs, whole):
    package = import_module(f"{library.__name__}.ao.quantization")
    module = import_module(f"{library.__name__}.ao.quantization.quantize_fx")
    custom = import_module(f"{library.__name__}.ao.quantization.fx.custom_config")
    layers = library.ao.nn
    model = _network(library, whole)
    model.load_state_dict({name: library.from_numpy(value.copy()) for name, value in start.items()})
    inputs = tuple(map(library.from_numpy, inputs))
    prepare = custom.PrepareCustomConfig()
    prepare.set_float_to_observed_mapping(library.nn.LSTM, layers.quantizable.LSTM)
    convert = custom.ConvertCustomConfig()
    convert.set_observed_to_quantized_mapping(layers.quantizable.LSTM, layers.quantized.LSTM)
    mapping = package.get_default_qconfig_mapping("fbgemm")
    prepared = module.prepare_fx(model, mapping, inputs, prepare_custom_config=prepare)
    prepared(*inputs)
    made = module.convert_fx(prepared, convert_custom_config=convert)
    return made, made(*inputs), model(*inputs)


def _flat(result):
    return [leaf for part in result for leaf in (_flat(part) if isinstance(part, tuple) else [part])]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("whole", [False, True])
def test_graphs_and_numbers_are_pytorchs(whole):
    torch = pytest.importorskip("torch")
    import_module("torch.ao.nn.quantizable")
    torch.manual_seed(0)
    start = {name: value.numpy() for name, value in _network(torch, whole).state_dict().items()}
    draw = np.random.RandomState(0)
    inputs = [draw.randn(*shape).astype("f4") for shape in ((4, 3, 6), (1, 3, 5), (1, 3, 5))]
    _, wanted, _ = _converted(torch, start, inputs, whole)
    graph, found, floats = _converted(rushlight, start, inputs, whole)
    called = [node.target for node in graph.graph.nodes if node.op.startswith("call")]
    assert called.count(rushlight.quantize_per_tensor) == 3
    assert called.count(operator.getitem) == 4
    assert called.count(tuple) == (2 if whole else 0)
    for one, two, exact in zip(_flat(found), _flat(wanted), _flat(floats)):
        np.testing.assert_allclose(one.detach().numpy(), two.detach().numpy(), atol=1e-6)
        assert (one - exact).abs().max() < 0.1
