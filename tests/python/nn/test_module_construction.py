"""How modules are made: their constructors, base classes beside them, and what makes objects without them."""

import copy

import pytest

import rushlight
from rushlight import nn


def test_call_super_init():
    class Mixin:
        def __init__(self, value):
            self.value = value

    class Net(nn.Module, Mixin):
        call_super_init = True

        def __init__(self, value):
            super().__init__(value)

    assert Net(5).value == 5


def test_the_new_of_a_base_class_beside_module_is_called():
    """Mixins that keep the arguments of the constructor do so in `__new__`."""

    class Keeps:
        def __new__(cls, *args, **kwargs):
            self = super().__new__(cls)
            self.__dict__["kept"] = args, kwargs
            return self

    class Net(nn.Module, Keeps):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, size, bias=True):
            super().__init__()
            self.layer = nn.Linear(size, 1, bias=bias)

    class Direct(nn.Linear, Keeps):
        pass

    net = Net(3, bias=False)
    assert net.kept == ((3,), {"bias": False}) and net.layer.bias is None
    assert Direct(3, 2).kept == ((3, 2), {}) and "__new__" not in vars(nn.Module.__mro__[1])
    assert copy.deepcopy(net).kept == net.kept and nn.Module.__new__ is object.__new__


def test_modules_are_made_by_the_new_of_object():
    """Deserializers that make any object so, and fill its `__dict__`, make modules."""
    from abc import ABC, abstractmethod

    class Own(nn.Linear):
        def __new__(cls, *sizes):
            return super().__new__(cls)

    class Abstract(nn.Module, ABC):
        @abstractmethod
        def missing(self): ...

    assert nn.Module.__new__ is object.__new__
    for module in (nn.Linear(3, 2), Own(3, 2), nn.Sequential(nn.Linear(3, 2))):
        made = object.__new__(type(module))
        made.__dict__.update(module.__dict__)
        assert rushlight.equal(made(rushlight.ones(3)), module(rushlight.ones(3)))
        assert repr(made) == repr(module)
    with pytest.raises(TypeError, match="Can't instantiate abstract class Abstract"):
        Abstract()
    with pytest.raises(AttributeError):
        object.__new__(nn.Linear)(rushlight.ones(3))


def test_signature_of_a_module():
    import inspect

    class Called(nn.Module):
        def __call__(self, x, scale=1):
            return x * scale

    assert str(inspect.signature(nn.Linear(2, 2))) == "(*args, **kwargs)"
    assert str(inspect.signature(Called())) == "(x, scale=1)"
    assert list(inspect.signature(nn.Linear).parameters)[:2] == ["in_features", "out_features"]
    assert not hasattr(nn.Linear, "__signature__")
