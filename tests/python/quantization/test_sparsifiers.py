"""Masks on weights, data and activations (`torch.ao.pruning`), beside PyTorch's."""

import copy
import importlib
import io
import itertools
import warnings

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import pruning
from rushlight.ao.pruning._experimental.data_scheduler import BaseDataScheduler
from rushlight.ao.pruning._experimental.data_sparsifier import DataNormSparsifier
from rushlight.ao.pruning._experimental.data_sparsifier.quantization_utils import (
    post_training_sparse_quantize,
)


def experimental(library, name):
    return importlib.import_module(f"{library.__name__}.ao.pruning._experimental.{name}")


def model(library=rushlight):
    made = library.nn.Sequential(library.nn.Linear(10, 7), library.nn.ReLU(), library.nn.Linear(7, 5))
    with library.no_grad():
        for number, weight in enumerate(made.parameters()):
            values = np.random.default_rng(number).standard_normal(tuple(weight.shape)).astype(np.float32)
            weight.copy_(library.from_numpy(values))
    return made


def masks(model):
    return [np.asarray(layer.parametrizations.weight[0].mask).astype(bool) for layer in (model[0], model[2])]


def prepared(sparsifier, library=rushlight, config=None):
    made = model(library)
    sparsifier.prepare(made, config)
    return made


@pytest.mark.parametrize("block", [(1, 4), (1, 1), (2, 3), (8, 1)])
@pytest.mark.parametrize("level", [0.0, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("norm", [1, 2, lambda weight: -weight.abs()])
def test_blocks_of_least_norm_are_pytorchs(torch, block, level, norm):
    found = []
    for library in (rushlight, torch):
        sparsifier = library.ao.pruning.WeightNormSparsifier(level, block, norm=norm)
        found.append(prepared(sparsifier, library))
        for _ in range(2):  # the second looks at masked weights
            sparsifier.step()
    for ours, theirs in zip(*map(masks, found), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("zeros", [0, 1, 3])
def test_elements_of_blocks_are_pytorchs(torch, zeros):
    config = [{"tensor_fqn": "0.weight"}, {"tensor_fqn": "2.weight", "sparsity_level": 0.9}]
    config = [
        {**one, "sparse_block_shape": block} for one, block in zip(config, [(1, 5), (5, 1)], strict=True)
    ]
    found = []
    for library in (rushlight, torch):
        sparsifier = library.ao.pruning.WeightNormSparsifier(0.5, zeros_per_block=zeros)
        found.append(prepared(sparsifier, library, copy.deepcopy(config)))
        sparsifier.step()
    for ours, theirs in zip(*map(masks, found), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_elements_of_blocks_beyond_the_edge():
    """PyTorch raises where blocks of some zeros do not fill the matrix."""
    sparsifier = pruning.WeightNormSparsifier(1.0, (1, 4), zeros_per_block=2)
    found = prepared(sparsifier)
    sparsifier.step()
    zeros = (~masks(found)[0]).sum(1)
    np.testing.assert_array_equal(zeros, np.full(7, 2 + 2 + 2))  # of 4, 4 and 2 elements


def test_diagonals_are_pytorchs(torch):
    for nearliness in (-1, 1, 3, 9):
        found = []
        for library in (rushlight, torch):
            sparsifier = library.ao.pruning.NearlyDiagonalSparsifier(nearliness)
            found.append(prepared(sparsifier, library))
            sparsifier.step()
        for ours, theirs in zip(*map(masks, found), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for nearliness, message in ((2, "only be an odd number"), (11, "cannot be larger than the dimensions")):
        sparsifier = pruning.NearlyDiagonalSparsifier(nearliness)
        prepared(sparsifier)
        with pytest.raises(ValueError, match=message):
            sparsifier.step()


def test_masks_become_weights():
    sparsifier = pruning.WeightNormSparsifier(0.5)
    found = prepared(sparsifier)
    sparsifier.step()
    kept = masks(found)
    expected = [found[0].weight.detach().clone(), found[2].weight.detach().clone()]
    settings = {"0": ("sparsity_level",)}
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",), params_to_keep_per_layer=settings)
    assert found[0].sparse_params == {"sparse_block_shape": (1, 4), "sparsity_level": 0.5}
    assert found[2].sparse_params == {"sparse_block_shape": (1, 4)}
    for layer, mask, weight in zip((found[0], found[2]), kept, expected, strict=True):
        assert isinstance(layer.weight, nn.Parameter) and rushlight.equal(layer.weight, weight)
        np.testing.assert_array_equal(np.asarray(layer.weight.detach() != 0), mask)


def test_states_go_to_files_and_to_pytorch(torch):
    sparsifier = pruning.WeightNormSparsifier(0.5)
    found = prepared(sparsifier)
    sparsifier.step()
    expected = masks(found)
    file = io.BytesIO()
    rushlight.save({"model": found.state_dict(), "sparsifier": sparsifier.state_dict()}, file)
    for library in (rushlight, torch):
        file.seek(0)
        # States hold default dicts; the file is this test's own.
        state = library.load(file, weights_only=False)
        other = library.ao.pruning.WeightNormSparsifier(0.5)
        again = prepared(other, library)
        other.load_state_dict(state["sparsifier"])
        for ours, theirs in zip(expected, masks(again), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        missing = again.load_state_dict(state["model"], strict=False).missing_keys
        assert missing == [f"{name}.parametrizations.weight.0.mask" for name in ("0", "2")]
    with pytest.raises(AttributeError):
        pruning.WeightNormSparsifier().load_state_dict(sparsifier.state_dict())  # which has no model


def test_configurations_that_do_not_agree():
    sparsifier = pruning.WeightNormSparsifier()
    with pytest.raises(AssertionError, match="tensor_fqn is a required argument"):
        sparsifier.prepare(model(), [{"sparsity_level": 1}])
    with pytest.raises(AssertionError, match="expected them to agree"):
        sparsifier.prepare(model(), [{"tensor_fqn": "0.weight", "module_fqn": "2"}])
    with pytest.raises(TypeError, match="abstract"):
        pruning.BaseSparsifier({})
    with pytest.raises(TypeError, match="list is not an instance of"):
        pruning.BaseScheduler([])


@pytest.mark.parametrize(
    "schedule",
    [
        lambda lib, s: lib.ao.pruning.LambdaSL(s, [lambda epoch: epoch / 10, lambda epoch: 0.9**epoch]),
        lambda lib, s: lib.ao.pruning.CubicSL(s, init_sl=0.1, init_t=[1, 3], delta_t=2, total_t=4),
        lambda lib, s: lib.ao.pruning.CubicSL(s, init_t=2, delta_t=1, total_t=3, initially_zero=True),
    ],
)
def test_levels_are_pytorchs(torch, schedule):
    levels, shown = [], []
    for library in (rushlight, torch):
        sparsifier = library.ao.pruning.WeightNormSparsifier(0.8)
        prepared(sparsifier, library)
        scheduler = schedule(library, sparsifier)
        shown.append(repr(scheduler))
        levels.append([scheduler.get_last_sl()])
        for _ in range(12):
            sparsifier.step()
            scheduler.step()
            levels[-1].append(scheduler.get_last_sl())
    assert levels[0] == levels[1] and shown[0] == shown[1]


def test_schedulers_warn_of_the_order():
    sparsifier = pruning.WeightNormSparsifier()
    prepared(sparsifier)
    scheduler = pruning.LambdaSL(sparsifier, lambda epoch: 1)
    with pytest.warns(UserWarning, match="before `sparsifier.step"):
        scheduler.step()
    with pytest.warns(UserWarning, match="please use `get_last_sl"):
        scheduler.get_sl()
    with pytest.raises(ValueError, match="Expected variable of length 2, but got 3"):
        pruning.CubicSL(sparsifier, init_t=[1, 2, 3])


@pytest.mark.parametrize("norm", ["L1", "L2"])
def test_data_is_pytorchs(torch, norm):
    found = []
    values = [
        np.random.default_rng(s).standard_normal(s).astype(np.float32) for s in ((6, 8), (5, 7), (4, 9))
    ]
    for library in (rushlight, torch):
        kind = experimental(library, "data_sparsifier").DataNormSparsifier
        data = [(f"d{n}", library.from_numpy(v)) for n, v in enumerate(values[:2])]
        sparsifier = kind(data, sparsity_level=0.6, sparse_block_shape=(1, 3), norm=norm)
        table = library.nn.Embedding(4, 9, _weight=library.from_numpy(values[2]))
        sparsifier.add_data("table", table, sparsity_level=0.3, zeros_per_block=2)
        for _ in range(2):
            sparsifier.step()
        names = ("d0", "d1", "table")
        found.append([np.asarray(sparsifier.get_data(name, False).detach()) for name in names])
        other = kind()
        other.load_state_dict(sparsifier.state_dict())
        assert library.equal(other.get_mask("d1"), sparsifier.get_mask("d1"))
        sparsifier.squash_mask(names=["d0"])
        with pytest.raises(ValueError, match="mask squashed"):
            sparsifier.get_data("d0")
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_biases_are_data():
    """PyTorch's mask has a dimension more than a bias."""
    sparsifier = DataNormSparsifier([("bias", rushlight.arange(1.0, 10.0))], sparsity_level=0.5)
    sparsifier.step()
    assert sparsifier.get_data("bias", False).tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 9]


def test_data_is_replaced():
    sparsifier = DataNormSparsifier([("a", rushlight.arange(1.0, 9.0).reshape(2, 4))])
    sparsifier.step()
    mask = sparsifier.get_mask("a")
    with pytest.warns(UserWarning, match="Replacing existing data"):
        sparsifier.add_data("a", rushlight.ones(2, 4))
    assert sparsifier.get_mask("a") is mask and mask.sum() == 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(AssertionError, match="to retain the old mask"):
            sparsifier.add_data("a", rushlight.ones(2, 5))
        sparsifier.add_data("a", rushlight.ones(2, 5), reuse_mask=False)
    assert sparsifier.get_mask("a").shape == (2, 5)


def test_settings_of_data_are_scheduled():
    class Halving(BaseDataScheduler):
        def get_schedule_param(self):
            groups = self.data_sparsifier.data_groups
            return {name: self.base_param[name] * 0.5**self.last_epoch for name in groups}

    sparsifier = DataNormSparsifier([("a", rushlight.rand(4, 4))], sparsity_level=0.8)
    scheduler = Halving(sparsifier, "sparsity_level")
    for expected in (0.4, 0.2):
        sparsifier.step()
        scheduler.step()
        assert scheduler.get_last_param() == {"a": expected}


@pytest.mark.parametrize("first", [True, False])
def test_embeddings_sparse_and_of_integers(first):
    rushlight.manual_seed(0)
    net = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        post_training_sparse_quantize(net, DataNormSparsifier, sparsify_first=first, sparsity_level=0.5)
    weight = net[0].weight()
    assert weight.is_quantized and weight.shape == (16, 8)
    if not first:  # zero points are numbers: zero is at most half a step away
        zeros = weight.dequantize().abs().reshape(16, 2, 4) <= weight.q_per_channel_scales()[:, None, None]
        assert zeros.all(2).sum() == 16


@pytest.mark.parametrize("features", [None, [0, 2]])
def test_activations_are_pytorchs(torch, features):
    inputs = np.random.default_rng(0).standard_normal((3, 4, 10)).astype(np.float32)
    found = []
    for library in (rushlight, torch):
        kind = experimental(library, "activation_sparsifier.activation_sparsifier").ActivationSparsifier
        net = model(library)
        sparsifier = kind(net, features=features, feature_dim=None if features is None else 1)
        sparsifier.register_layer(
            net[0],
            aggregate_fn=lambda a, b: a + b,
            reduce_fn=lambda data: data.mean(dim=0),
            mask_fn=lambda data, least: (data > least).float(),
            least=0.1,
        )
        for x in inputs:
            net(library.from_numpy(x.copy()))
        sparsifier.step()
        sparsifier.squash_mask()
        other = kind(net)
        other.load_state_dict(sparsifier.state_dict())
        other.unregister_layer("0")  # whose hook would mask again
        found.append(np.asarray(net(library.from_numpy(inputs[0].copy())).detach()))
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


def test_layers_are_converted():
    class Dense(nn.Module):
        @classmethod
        def from_dense(cls, layer):
            made = cls()
            made.weight = layer.weight
            return made

    sparsifier = pruning.WeightNormSparsifier()
    found = prepared(sparsifier, config=[{"tensor_fqn": "0.weight"}])
    calls = itertools.count()
    found[0].register_forward_pre_hook(lambda *_: next(calls))
    converted = sparsifier.convert(found, mapping={nn.Linear: Dense})
    assert type(converted[0]) is Dense and type(converted[2]) is nn.Linear and type(found[0]) is not Dense
    assert len(converted[0]._forward_pre_hooks) == 1
    with pytest.raises(NotImplementedError, match="mapping"):
        sparsifier.convert(found)
