"""Type hints that programs read: configuration tools build optimizers, schedules and layers from them."""

import inspect
import operator
import typing

import pytest

import rushlight as torch


def classes(module, base):
    found = (c for n, c in sorted(vars(module).items()) if inspect.isclass(c) and not n.startswith("_"))
    return [
        c for c in found if issubclass(c, base) and c.__module__.startswith(base.__module__.split(".")[0])
    ]


@pytest.mark.parametrize("module", ["optim", "optim.lr_scheduler", "optim.swa_utils", "nn"])
def test_constructors_have_hints_that_can_be_read(module):
    place = operator.attrgetter(module)(torch)
    names = getattr(place, "__all__", None) or dir(place)
    found = [c for name in names if not name.startswith("_") and inspect.isclass(c := getattr(place, name))]
    assert len(found) >= 2
    for c in found:
        if inspect.isfunction(c.__init__):
            typing.get_type_hints(c.__init__)


def test_hints_are_the_classes_themselves():
    hints = typing.get_type_hints(torch.optim.Adam.__init__)
    assert hints["eps"] is float and torch.Tensor in typing.get_args(hints["lr"])
    hints = typing.get_type_hints(torch.optim.lr_scheduler.StepLR.__init__)
    assert hints["optimizer"] is torch.optim.Optimizer and hints["gamma"] is float
