"""`torch.utils.mobile_optimizer`: what it folds and keeps, its lints, and what it refuses."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils.bundled_inputs import augment_model_with_bundled_inputs
from rushlight.utils.mobile_optimizer import (
    MobileOptimizerType,
    generate_mobile_module_lints,
    optimize_for_mobile,
)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Dropout(0.5)

    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        return self.drop(torch.relu(self.norm(self.conv(x))))

    @torch.jit.export
    def answer(self):
        return 42


@pytest.mark.parametrize("blocked", [None, {MobileOptimizerType.CONV_BN_FUSION}])
def test_results_stay(blocked):
    model, x = torch.jit.script(Net()), torch.randn(2, 1, 5, 5)
    made = optimize_for_mobile(model, blocked, preserved_methods=["answer"])
    assert model.training and not made.training and made.answer() == 42
    assert not list(made.parameters()) and len(list(model.parameters())) == 4
    torch.testing.assert_close(made(x), model.eval()(x))


def test_lints():
    model = torch.jit.script(Net())
    names = [lint["name"] for lint in generate_mobile_module_lints(model)]
    assert names == ["BUNDLED_INPUT", *["REQUIRES_GRAD"] * 4, "BATCHNORM", "DROPOUT"]
    augment_model_with_bundled_inputs(model.requires_grad_(False), [(torch.ones(1, 1, 5, 5),)])
    names = [lint["name"] for lint in generate_mobile_module_lints(model)]
    assert names == ["BATCHNORM", "DROPOUT"]
    assert optimize_for_mobile(model.eval()).get_num_bundled_inputs() == 1


def test_refusals():
    model = torch.jit.script(Net())
    for call in (optimize_for_mobile, generate_mobile_module_lints):
        with pytest.raises(TypeError, match="ScriptModule is expected"):
            call(Net())
    with pytest.raises(AttributeError, match="do not exist in script_module: missing"):
        optimize_for_mobile(model, preserved_methods=["missing"])
    with pytest.raises(TypeError, match="Unknown backend"):
        optimize_for_mobile(model, backend="tpu")
    with pytest.raises(NotImplementedError, match="use backend='CPU'"):
        optimize_for_mobile(model, backend="Vulkan")
