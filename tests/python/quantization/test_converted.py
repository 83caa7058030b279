"""Models of integers, made by `quantize_dynamic` and `convert`, give PyTorch's numbers bit for bit."""

import io

import numpy as np
import pytest

import rushlight


def layers(t):
    nn = t.nn
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()


def image_network(t):
    nn, ao = t.nn, t.ao.quantization
    return nn.Sequential(
        ao.QuantStub(), nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 5), ao.DeQuantStub(),
    ).eval()  # fmt: skip


def alike(build, torch):
    """The network in both libraries, with equal weights."""
    torch.manual_seed(0)
    theirs, ours = build(torch), build(rushlight)
    ours.load_state_dict({k: rushlight.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
    return theirs, ours


def numbers(shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def results(torch, theirs, ours, x):
    return theirs(torch.from_numpy(x)).detach().numpy(), ours(rushlight.from_numpy(x)).detach().numpy()


@pytest.mark.parametrize("dtype", ["qint8", "float16"])
def test_dynamic_layers(torch, dtype):
    theirs, ours = (
        t.ao.quantization.quantize_dynamic(m, {t.nn.Linear}, dtype=getattr(t, dtype))
        for t, m in zip((torch, rushlight), alike(layers, torch))
    )
    expected, found = results(torch, theirs, ours, numbers((6, 16)))
    np.testing.assert_array_equal(found, expected) if dtype == "qint8" else np.testing.assert_allclose(
        found, expected, rtol=1e-5, atol=1e-6
    )


def converted(t, model, x):
    ao = t.ao.quantization
    model = ao.fuse_modules(model, [["1", "2", "3"]])
    model.qconfig = ao.get_default_qconfig("x86")
    prepared = ao.prepare(model)
    prepared(t.from_numpy(x))
    return ao.convert(prepared)


def test_static_layers(torch):
    x = numbers((8, 3, 8, 8))
    theirs, ours = (converted(t, m, x) for t, m in zip((torch, rushlight), alike(image_network, torch)))
    expected, found = results(torch, theirs, ours, x)
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found)) > 10


def test_whole_models_of_pytorch_load(torch):
    """PyTorch itself cannot use the convolutions of such a file: they have no hooks there."""
    x = numbers((8, 3, 8, 8))
    theirs, _ = (converted(t, m, x) for t, m in zip((torch, rushlight), alike(image_network, torch)))
    file = io.BytesIO()
    torch.save(theirs, file)
    file.seek(0)
    found = rushlight.load(file, weights_only=False)(rushlight.from_numpy(x)).numpy()
    np.testing.assert_array_equal(found, theirs(torch.from_numpy(x)).detach().numpy())


def test_states_of_converted_models_load_both_ways(torch):
    x = numbers((8, 3, 8, 8))
    theirs, ours = (converted(t, m, x) for t, m in zip((torch, rushlight), alike(image_network, torch)))
    for source, target, library, other in (
        (theirs, ours, torch, rushlight),
        (ours, theirs, rushlight, torch),
    ):
        file = io.BytesIO()
        library.save(source.state_dict(), file)
        file.seek(0)
        expected = source(library.from_numpy(x)).detach().numpy()
        target.load_state_dict(other.load(file, weights_only=False))
        np.testing.assert_array_equal(target(other.from_numpy(x)).detach().numpy(), expected)
