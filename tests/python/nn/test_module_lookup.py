"""How a module's own ``__getattr__`` stands to parameters, buffers and submodules."""

from collections.abc import MutableMapping

import pytest

import rushlight as torch
from rushlight import nn


class Watched(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.child = nn.Linear(1, 1)
        self.plain = 3

    def __getattr__(self, name):
        asked.append(name)
        if name == "made":
            return 7
        return super().__getattr__(name)


class Below(Watched):
    pass


asked = []


@pytest.mark.parametrize("kind", [Watched, Below])
def test_it_is_asked_for_what_is_registered(kind):
    module = kind()
    asked.clear()
    assert module.weight.tolist() == [1, 1] and module.child.in_features == 1 and module.made == 7
    assert module.plain == 3 and module.training
    assert asked == ["weight", "child", "made"]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    assert not hasattr(module, "nothing") and getattr(module, "nothing", 5) == 5


def test_it_may_give_something_else():
    class Doubled(nn.Linear):
        def __getattr__(self, name):
            value = super().__getattr__(name)
            return value * 2 if name == "weight" else value

    torch.manual_seed(0)
    module = Doubled(2, 2, bias=False)
    assert torch.equal(module(torch.eye(2)), 2 * module._parameters["weight"].T)


def test_errors_in_it_and_in_properties_pass():
    class Broken(nn.Module):
        @property
        def answer(self):
            raise AttributeError("inside")

        def __getattr__(self, name):
            if name == "answer":
                raise ValueError("asked after the property failed")
            return super().__getattr__(name)

    with pytest.raises(ValueError, match="asked after"):
        Broken().answer  # noqa: B018


def test_members_by_dotted_names():
    from rushlight.nn.utils._named_member_accessor import NamedMemberAccessor, swap_tensor

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    access = NamedMemberAccessor(model)
    old, new = model[0].weight, torch.zeros(2, 2)
    before, missing = access.swap_tensors_dict({"0.weight": new, "1.running_mean": torch.ones(2)})
    assert (
        before["0.weight"] is old and not missing and model[0].weight is new and model[1].running_mean.all()
    )
    with pytest.raises(RuntimeError, match="Missing key"):
        access.swap_tensors_dict({"0.bias": new, "0.other": new})
    assert isinstance(model[0].bias, nn.Parameter) and not hasattr(model[0], "other")
    with pytest.raises(AttributeError, match="Linear has no attribute `other`"):
        swap_tensor(model[0], "other", new)
    assert access.check_keys(["0.weight"])[0] == [
        "0.bias", "1.bias", "1.num_batches_tracked", "1.running_mean", "1.running_var", "1.weight",
    ]  # fmt: skip


class LoadedWhenRead(MutableMapping):
    """A table of parameters that keeps something else than what it gives."""

    def __init__(self, held):
        self.kept = {name: value.detach().numpy() for name, value in held.items()}

    def __getitem__(self, name):
        return nn.Parameter(torch.from_numpy(self.kept[name]))

    def __setitem__(self, name, value):
        self.kept[name] = value.detach().numpy()

    def __delitem__(self, name):
        del self.kept[name]

    def __iter__(self):
        return iter(self.kept)

    def __len__(self):
        return len(self.kept)


class Doubling(dict):
    def __getitem__(self, name):
        return super().__getitem__(name) * 2


def test_tables_that_are_no_dictionaries():
    layer, x = nn.Linear(2, 3), torch.ones(1, 2)
    expected = layer(x)
    layer._parameters = LoadedWhenRead(layer._parameters)
    assert torch.equal(layer(x), expected)
    del layer.weight
    assert not hasattr(layer, "weight") and hasattr(layer, "bias")
    layer.weight = nn.Parameter(torch.zeros(3, 2))
    assert torch.equal(layer(x)[0], layer.bias)
    assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]

    class Broken(LoadedWhenRead):
        def __getitem__(self, name):
            raise OSError("not there")

    layer._parameters = Broken({"weight": torch.ones(3, 2)})
    with pytest.raises(OSError, match="not there"):
        getattr(layer, "weight")  # noqa: B009


def test_tables_that_are_dictionaries_of_their_own_kind():
    layer = nn.Linear(2, 2)
    weight = layer.weight
    layer._parameters = Doubling(layer._parameters)
    assert torch.equal(layer.weight, weight * 2)
