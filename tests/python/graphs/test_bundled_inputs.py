"""Inputs that travel with a scripted model, in its file."""

import io

import pytest

import rushlight as torch
from rushlight.utils import bundled_inputs as bundled


class Same(torch.nn.Module):
    def forward(self, x):
        return x

    @torch.jit.export
    def other(self, x):
        return x


def scripted():
    return torch.jit.script(Same())


def from_file(model):
    buffer = io.BytesIO()
    torch.jit.save(model, buffer)
    size = len(buffer.getvalue())
    buffer.seek(0)
    return torch.jit.load(buffer), size


SAMPLES = [
    (torch.tensor([1]),),
    (torch.tensor([[2, 3, 4]]).expand(1 << 12, -1)[:, ::2],),
    (torch.arange(1 << 12)[-8:],),
    (torch.zeros(1 << 12),),
    (torch.ones(4, 8, 32, 32).contiguous(memory_format=torch.channels_last),),
]


def test_inputs_are_small_in_the_file():
    model, plain, texts = scripted(), from_file(scripted())[1], []
    bundled.augment_model_with_bundled_inputs(model, [*SAMPLES, (bundled.bundle_randn(1 << 12),)], texts)
    loaded, size = from_file(model)
    assert size < plain + (1 << 13)
    assert loaded.get_num_bundled_inputs() == len(SAMPLES) + 1 == len(texts)
    *inputs, noise = loaded.get_all_bundled_inputs()
    for (made,), (sample,) in zip(inputs, SAMPLES, strict=True):
        assert torch.equal(made, sample) and made.stride() == sample.stride()
    assert noise[0].shape == (1 << 12,) and 0.9 < noise[0].std() < 1.1
    assert loaded(*inputs[0]) is inputs[0][0]


def test_several_methods():
    model = scripted()
    info = {model.forward: ["one"], model.other: ["two"]}
    samples = {model.forward: SAMPLES[:1], model.other: SAMPLES[2:3]}
    bundled.augment_many_model_functions_with_bundled_inputs(model, samples, info=info)
    loaded, _ = from_file(model)
    found = loaded.get_bundled_inputs_functions_and_info()
    assert set(found) == {"forward", "other"} and found["other"]["info"] == ["two"]
    (name,) = found["other"]["get_inputs_function_name"]
    assert torch.equal(getattr(loaded, name)()[0][0], SAMPLES[2][0])
    assert torch.equal(loaded.get_all_bundled_inputs()[0][0], SAMPLES[0][0])


def test_inputs_of_any_kind():
    class Takes(torch.nn.Module):
        def forward(self, names: dict[str, torch.Tensor], more: list[torch.Tensor], text: str, n: int):
            return names["a"] + more[0], text, n

    helper = """
        def {}(self, value: List[Tensor]):
            return [v + 1 for v in value]
    """
    twice = bundled.InflatableArg([torch.ones(2)], "{}", helper)
    model = bundled.bundle_inputs(
        torch.jit.script(Takes()),
        [({"a": torch.ones(2)}, twice, "t", 3), ({"a": torch.zeros(2)}, [torch.ones(2)], "u", 4)],
    )
    loaded, _ = from_file(model)
    methods, attributes = bundled._get_bundled_inputs_attributes_and_methods(loaded)
    assert [name for name in methods if "inflate" in name] == ["_inflate_helper_for_forward_input_0_arg_1"]
    assert "get_all_bundled_inputs_for_forward" in methods and attributes
    assert all(hasattr(loaded, name) for name in (*methods, *attributes))
    assert bundled._get_bundled_inputs_attributes_and_methods(scripted()) == ([], [])
    first, second = loaded.get_all_bundled_inputs()
    assert torch.equal(loaded(*first)[0], torch.full((2,), 3.0)) and loaded(*first)[1:] == ("t", 3)
    assert torch.equal(loaded(*second)[0], torch.ones(2))


def test_copies_and_repetition():
    model = scripted()
    one = bundled.bundle_inputs(model, [(torch.ones(1),)])
    two = bundled.bundle_inputs(one, [(torch.ones(2),)])
    assert not hasattr(model, "get_all_bundled_inputs")
    assert one.get_all_bundled_inputs()[0][0].shape == (1,)
    assert two.get_all_bundled_inputs()[0][0].shape == (2,)
    with pytest.raises(RuntimeError, match="only be augmented with bundled inputs once"):
        bundled.augment_model_with_bundled_inputs(two, [(torch.ones(2),)])


def test_refusals():
    augment = bundled.augment_model_with_bundled_inputs
    with pytest.raises(TypeError, match="Only sequences of tuples"):
        augment(scripted(), "abc")
    with pytest.raises(TypeError, match="must be a tuple of arguments, got Tensor"):
        augment(scripted(), [torch.ones(1)])
    for large in (torch.randn(1 << 12), torch.randn(2, 1 << 12)[:, :1]):
        with pytest.raises(RuntimeError, match=r"position \(0, 0\) has a tensor with storage size"):
            augment(scripted(), [(large,)])
    large = torch.randn(1 << 12)
    model = bundled.bundle_inputs(scripted(), [(bundled.bundle_large_tensor(large),)])
    assert torch.equal(from_file(model)[0].get_all_bundled_inputs()[0][0], large)
    with pytest.raises(RuntimeError, match="has no method _generate_bundled_inputs_for_forward"):
        augment(scripted(), None)
    model = scripted()
    model.define("def _generate_bundled_inputs_for_forward(self):\n    return [(torch.ones([2]),)]\n")
    with pytest.raises(RuntimeError, match="is already defined"):
        augment(model, [(torch.ones(1),)])
    augment(model)
    assert model.get_all_bundled_inputs()[0][0].shape == (2,)
