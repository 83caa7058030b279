"""Linear layers of integers that are zero in blocks: `torch.ops.sparse`, their layers and files."""

import io

import numpy as np
import pytest

import rushlight
from rushlight import nn
from rushlight.ao import pruning, quantization
from rushlight.ao.nn.sparse import quantized as sparse
from rushlight.ao.nn.sparse.quantized.utils import LinearBlockSparsePattern


def weight_of(library, channels, shape=(7, 10)):
    rng = np.random.default_rng(0)
    values = rng.standard_normal(shape).astype(np.float32)
    values = library.from_numpy(values * (rng.random(shape) < 0.3))
    if not channels:
        return library.quantize_per_tensor(values, 0.02, 0, library.qint8)
    scales = library.from_numpy(rng.random(shape[0]) * 0.02 + 0.01)
    zeros = library.zeros(shape[0], dtype=library.int64)
    return library.quantize_per_channel(values, scales, zeros, 0, library.qint8)


@pytest.fixture
def fbgemm(torch):
    torch.backends.quantized.engine = "fbgemm"  # the only engine that has all these
    return torch


@pytest.mark.parametrize("channels", [False, True])
def test_operators_are_pytorchs(fbgemm, channels):
    x = np.random.default_rng(1).standard_normal((3, 10)).astype(np.float32)
    states, results = [], []
    for library in (rushlight, fbgemm):
        bias = library.arange(7.0)
        packed = library.ops.sparse.qlinear_prepack(weight_of(library, channels), bias, 1, 4)
        state, name = packed.__getstate__()
        assert name == "__torch__.torch.classes.sparse.LinearPackedParamsBase"
        states.append([np.asarray(part) for part in state])
        operand = library.quantize_per_tensor(library.from_numpy(x), 0.05, 120, library.quint8)
        for operator in (library.ops.sparse.qlinear, library.ops.sparse.qlinear_relu):
            results.append(operator(operand, packed, 0.3, 10).int_repr().numpy())
        weight, again, shape = library.ops.sparse.qlinear_unpack(packed)
        assert library.equal(weight.int_repr(), weight_of(library, channels).int_repr())
        assert library.equal(again, bias) and list(shape) == [1, 4]
    for ours, theirs in zip(*states, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])


def test_numbers_as_operands():
    weight, x = weight_of(rushlight, True), rushlight.randn(3, 10)
    packed = rushlight.ops.sparse.qlinear_prepack(weight, None, 1, 4)
    dense = rushlight.ops.quantized.linear_prepack(weight, None)
    expected = rushlight.ops.quantized.linear_dynamic(x, dense)
    assert rushlight.equal(rushlight.ops.sparse.qlinear_dynamic(x, packed), expected)
    assert rushlight.equal(rushlight.ops.sparse.qlinear_relu_dynamic(x, packed), expected.relu())


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="1x4 or 8x1"):
        rushlight.ops.sparse.qlinear_prepack(weight_of(rushlight, True), None, 2, 2)
    with pytest.raises(RuntimeError, match="expected a packed weight"):
        rushlight.ops.sparse.qlinear_dynamic(rushlight.ones(1, 10), rushlight.ones(7, 10))
    with pytest.raises(AssertionError, match="Invalid linear block sparse pattern"):
        LinearBlockSparsePattern(2, 2)


@pytest.mark.parametrize("channels", [False, True])
def test_files_go_to_pytorch_and_back(fbgemm, channels):
    made = sparse.Linear(10, 7, 1, 4)
    made.set_weight_bias(weight_of(rushlight, channels), rushlight.arange(7.0), 1, 4)
    made.scale, made.zero_point = 0.3, 10
    file = io.BytesIO()
    rushlight.save(made, file)
    file.seek(0)
    theirs = fbgemm.load(file, weights_only=False)
    assert type(theirs).__module__ == "torch.ao.nn.sparse.quantized.linear"
    x = fbgemm.quantize_per_tensor(fbgemm.randn(3, 10), 0.05, 120, fbgemm.quint8)
    expected = theirs(x).int_repr().numpy()
    file = io.BytesIO()
    fbgemm.save(theirs, file)
    file.seek(0)
    again = rushlight.load(file, weights_only=False)
    x = rushlight._make_per_tensor_quantized_tensor(rushlight.from_numpy(x.int_repr().numpy()), 0.05, 120)
    np.testing.assert_array_equal(again(x).int_repr().numpy(), expected)


def test_from_masks_to_integers(tmp_path):
    """Masks, calibration, conversion; state, script and files keep the results."""
    net = nn.Sequential(quantization.QuantStub(), nn.Linear(8, 6), quantization.DeQuantStub()).eval()
    sparsifier = pruning.WeightNormSparsifier(0.5)
    sparsifier.prepare(net, [{"tensor_fqn": "1.weight"}])
    sparsifier.step()
    sparsifier.squash_mask(params_to_keep=("sparse_block_shape",))
    zeros = net[1].weight == 0
    net.qconfig = quantization.get_default_qconfig("fbgemm")
    calibrated = quantization.prepare(net)
    x = rushlight.randn(16, 8)
    expected = calibrated(x)
    mapping = {
        **quantization.get_default_static_quant_module_mappings(),
        **pruning.get_static_sparse_quantized_mapping(),
    }
    converted = quantization.convert(calibrated, mapping=mapping)
    assert type(converted[1]) is sparse.Linear
    assert not converted[1].weight().int_repr()[zeros].any()
    state, _ = converted[1]._packed_params._packed_params.__getstate__()
    assert len(state[9]) == 24  # bytes: half of the elements
    rushlight.testing.assert_close(converted(x), expected, rtol=0.05, atol=0.05)
    other = sparse.Linear(8, 6, 1, 4)
    other.load_state_dict(converted[1].state_dict())
    operand = converted[0](x)
    assert rushlight.equal(other(operand).int_repr(), converted[1](operand).int_repr())
    file = io.BytesIO()
    rushlight.jit.save(rushlight.jit.script(converted), file)
    file.seek(0)
    assert rushlight.equal(rushlight.jit.load(file)(x), converted(x))
    rushlight.export.save_file(converted, tmp_path / "sparse.rl", (x,))
    assert rushlight.equal(rushlight.export.load_file(tmp_path / "sparse.rl")(x), converted(x))


def test_from_a_plain_layer():
    layer = nn.Linear(9, 16)
    layer.qconfig = quantization.default_dynamic_qconfig
    with LinearBlockSparsePattern(8, 1):
        made = sparse.dynamic.Linear.from_float(layer)
    assert made._weight_bias()[2:] == (8, 1) and LinearBlockSparsePattern.block_size() == (1, 4)
    x = rushlight.randn(2, 9)
    rushlight.testing.assert_close(made(x), layer(x), rtol=0.05, atol=0.05)
    other = sparse.dynamic.Linear(9, 16, 1, 4)
    other.load_state_dict(made.state_dict())
    assert rushlight.equal(other(x), made(x)) and other._weight_bias()[2:] == (8, 1)
    assert pruning.get_dynamic_sparse_quantized_mapping() == {nn.Linear: sparse.dynamic.Linear}
