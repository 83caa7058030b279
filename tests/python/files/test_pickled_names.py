"""Classes and functions in files: each name that PyTorch's file holds is found here, and ours there."""

import functools
import importlib
import io
import pickle
import warnings

import pytest

import rushlight

NAMESPACES = """
 nn nn.modules nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrizations nn.parameter nn.attention
 optim optim.lr_scheduler optim.swa_utils utils.data utils.checkpoint distributions distributions.transforms
 distributions.constraints linalg fft special func sparse fx export library overrides serialization
 ao.nn.quantized ao.nn.qat ao.nn.intrinsic ao.quantization distributed distributed.fsdp distributed.tensor
 distributed.checkpoint.state_dict
""".split()

# Functions that PyTorch names by what it chooses between, or keeps in its core; handles of running processes.
ELSEWHERE = {
    "": "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype "
    "get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled set_autocast_cache_enabled "
    "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_gpu_dtype",
    "nn.functional": "handle_torch_function native_channel_shuffle threshold",
    "nn.utils": "clip_grads_with_norm_ get_total_norm",
    "distributions": "biject_to transform_to",
    "sparse": "addmm log_softmax mm sampled_addmm softmax spdiags",
    "export": "default_decompositions",
    "overrides": "handle_torch_function",
    "distributed": "FileStore GradBucket HashStore ProcessGroupGloo TCPStore set_debug_level "
    "set_debug_level_from_env",
}


@pytest.fixture(scope="module")
def torch():
    from rushlight._command.names import is_aliased

    if is_aliased():
        pytest.skip("`torch` is this library here")
    return pytest.importorskip("torch", reason="PyTorch is the oracle")


def saved(library, value):
    file = io.BytesIO()
    library.save(value, file)
    file.seek(0)
    return file


def pairs(torch, space):
    """Names that both have and that PyTorch can pickle, with their values."""
    theirs, ours = (importlib.import_module(f"{top}.{space}".rstrip(".")) for top in ("torch", "rushlight"))
    for name in dir(theirs):
        value, own = getattr(theirs, name, None), getattr(ours, name, None)
        if (
            name.startswith("_")
            or not callable(value)
            or not callable(own)
            or isinstance(value, type(pytest))
        ):
            continue
        try:
            file = saved(torch, value)
        except (pickle.PicklingError, AttributeError, TypeError, RuntimeError):
            continue
        yield name, own, file


@pytest.mark.parametrize("space", ["", *NAMESPACES])
def test_each_name_is_found_on_both_sides(torch, space):
    failed, tried = {}, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, own, file in pairs(torch, space):
            tried += 1
            try:
                rushlight.load(file, weights_only=False)
            except (AttributeError, ImportError) as error:
                failed[name] = f"here: {error}"
            try:
                torch.load(saved(rushlight, own), weights_only=False)
            except (AttributeError, ImportError, pickle.PicklingError) as error:
                failed[name] = f"{failed.get(name, '')} in PyTorch: {error}"
    assert tried
    unexpected = {name: why for name, why in failed.items() if name not in ELSEWHERE.get(space, "").split()}
    assert not unexpected, "\n".join(f"{name}: {why}" for name, why in unexpected.items())


WHOLE = {
    "an encoder layer": lambda lib: lib.nn.TransformerEncoderLayer(4, 2, 8, activation=lib.relu),
    "attention": lambda lib: lib.nn.MultiheadAttention(4, 2),
    "a transformed distribution": lambda lib: lib.distributions.TransformedDistribution(
        lib.distributions.Normal(0.0, 1.0),
        [lib.distributions.ExpTransform(), lib.distributions.AffineTransform(1.0, 2.0)],
    ),
    "a partial function": lambda lib: functools.partial(lib.clamp, min=0),
    "a quantisation's observer": lambda lib: lib.ao.quantization.default_observer,
    "a policy": lambda lib: importlib.import_module(f"{lib.__name__}.utils.checkpoint").CheckpointPolicy(1),
}


def shown(value):
    return repr(value).replace("rushlight", "torch")


@pytest.mark.parametrize("what", WHOLE)
def test_whole_objects_pass_both_ways(torch, what):
    for writer, reader in ((rushlight, torch), (torch, rushlight)):
        read = reader.load(saved(writer, WHOLE[what](writer)), weights_only=False)
        assert shown(read) == shown(WHOLE[what](reader))


FUNCTIONS = {
    "operators": lambda lib: (lib.relu, lib.conv2d, lib.vmap, lib.nonzero, lib.nn.functional.gelu),
    "methods": lambda lib: (lib.Tensor.add_, lib.Tensor.backward, lib.Tensor.split),
}


@pytest.mark.parametrize("what", FUNCTIONS)
def test_functions_pass_both_ways(torch, what):
    for writer, reader in ((rushlight, torch), (torch, rushlight)):
        assert reader.load(saved(writer, FUNCTIONS[what](writer)), weights_only=False) == FUNCTIONS[what](
            reader
        )
