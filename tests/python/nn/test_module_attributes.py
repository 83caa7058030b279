"""Assigning to a module's attributes: every kind of value over every kind of name, as PyTorch does it."""

import itertools

import pytest

import rushlight

oracle = pytest.importorskip("torch")

VALUES = ["parameter", "tensor", "buffer", "module", "none", "number", "list", "proxy", "computed"]
HOLDERS = [
    "nothing",
    "attribute",
    "parameter",
    "buffer",
    "transient",
    "module",
    "class",
    "property",
    "slot of None",
]


def make_module(torch):
    class Mine(torch.nn.Module):
        of_class = 1

        @property
        def computed(self):
            return self.__dict__.get("_computed", 2)

        @computed.setter
        def computed(self, value):
            self.__dict__["_computed"] = value

    m = Mine()
    m.attribute = 1
    m.parameter = torch.nn.Parameter(torch.ones(1))
    m.register_buffer("buffer", torch.ones(2))
    m.register_buffer("transient", torch.ones(2), persistent=False)
    m.module = torch.nn.ReLU()
    m.register_parameter("empty", None)
    return m


NAMES = dict(zip(HOLDERS, "new attribute parameter buffer transient module of_class computed empty".split()))


class Proxy:
    """Claims the class of what it stands for."""

    def __init__(self, target):
        self.__dict__["target"] = target

    @property
    def __class__(self):
        return type(self.target)


def make_value(torch, kind):
    return {
        "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
        "tensor": lambda: torch.ones(3),
        "buffer": lambda: torch.nn.Buffer(torch.ones(3)),
        "module": lambda: torch.nn.Tanh(),
        "none": lambda: None,
        "number": lambda: 3,
        "list": lambda: [1],
        "proxy": lambda: Proxy(torch.nn.Tanh()),
        "computed": lambda: torch.ones(1, requires_grad=True) * 2,
    }[kind]()


def places(m, name, value):
    """Where the value is found afterwards."""
    tables = {t: m.__dict__[t] for t in ("_parameters", "_buffers", "_modules")}
    found = [t for t, table in tables.items() if table.get(name, 0) is value]
    if m.__dict__.get(name, 0) is value:
        found.append("__dict__")
    if m.__dict__.get("_computed", 0) is value:
        found.append("property")
    orders = [list(table) for table in tables.values()]
    return found, orders, sorted(m._non_persistent_buffers_set)


def outcome(torch, holder, kind, prepare=lambda torch, m: None):
    m, value = make_module(torch), make_value(torch, kind)
    prepare(torch, m)
    try:
        setattr(m, NAMES[holder], value)
    except Exception as error:
        return type(error).__name__, str(error).replace("rushlight", "torch")
    return places(m, NAMES[holder], value)


@pytest.mark.parametrize("holder, kind", itertools.product(HOLDERS, VALUES))
def test_assignment_is_pytorchs(holder, kind):
    assert outcome(rushlight, holder, kind) == outcome(oracle, holder, kind)


@pytest.mark.parametrize("kind", ["parameter", "tensor", "module", "number"])
@pytest.mark.parametrize("name", ["", "a.b", "with space"])
def test_names_that_are_refused(name, kind):
    def assign(torch):
        m, value = make_module(torch), make_value(torch, kind)
        try:
            setattr(m, name, value)
        except Exception as error:
            return type(error).__name__, str(error)
        return places(m, name, value)

    assert assign(rushlight) == assign(oracle)


@pytest.mark.parametrize("kind", ["parameter", "module"])
def test_assignment_before_init_is_refused(kind):
    def assign(torch):
        class Early(torch.nn.Module):
            def __init__(self):
                self.x = make_value(torch, kind)

        with pytest.raises(AttributeError) as error:
            Early()
        return str(error.value)

    assert assign(rushlight) == assign(oracle)


def test_registration_hooks_see_assignments():
    seen = []
    register = rushlight.nn.modules.module
    handles = [
        register.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("parameter", n))),
        register.register_module_buffer_registration_hook(lambda m, n, b: seen.append(("buffer", n))),
        register.register_module_module_registration_hook(lambda m, n, s: seen.append(("module", n))),
    ]
    try:
        m = make_module(rushlight)
        seen.clear()
        m.parameter = rushlight.nn.Parameter(rushlight.ones(2))
        m.buffer = rushlight.ones(1)
        m.module = rushlight.nn.Tanh()
        m.attribute = 4
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "parameter"), ("buffer", "buffer"), ("module", "module")]


def test_overrides_are_called():
    calls = []

    class Registering(rushlight.nn.Module):
        def register_parameter(self, name, param):
            calls.append(name)
            super().register_parameter(name, param)

    class Setting(rushlight.nn.Module):
        def __setattr__(self, name, value):
            calls.append(name)
            super().__setattr__(name, value)

    m = Registering()
    m.weight = rushlight.nn.Parameter(rushlight.ones(1))
    s = Setting()
    s.child = m
    assert calls == ["weight", "child"]
    assert [name for name, _ in s.named_parameters()] == ["child.weight"]


def test_object_setattr_passes_the_tables_by():
    m, child = make_module(rushlight), rushlight.nn.ReLU()
    object.__setattr__(m, "hidden", child)
    assert m.hidden is child and "hidden" not in m._modules


def test_no_attribute_of_a_module_is_a_container_class():
    # Programs look through `dir(module)` for attributes that behave as dicts.
    module = rushlight.nn.Linear(2, 2)
    dicts = [n for n in dir(module) if callable(getattr(getattr(module, n, None), "keys", None))]
    assert all(isinstance(getattr(module, n), dict) for n in dicts), dicts
    assert rushlight.nn.Module.T_destination is module.T_destination
    assert rushlight.nn.Module.T_destination.__bound__.__origin__ is dict


def test_methods_given_to_one_module_are_called_in_walks():
    """Programs freeze a layer by `layer.train = ...`: a walk that passes it by would change it silently."""
    nn = rushlight.nn
    layer, modes = nn.BatchNorm1d(2), []
    layer.train = lambda mode=True: modes.append(mode)
    whole = nn.Sequential(nn.Linear(2, 2), nn.Sequential(layer))
    whole.eval()
    assert modes == [False] and layer.training and not whole[0].training
    layer.state_dict = lambda *args, **kwargs: kwargs["destination"].update({kwargs["prefix"] + "own": 1})
    assert list(whole.state_dict()) == ["0.weight", "0.bias", "1.0.own"]
    first = whole[0]
    first._save_to_state_dict = lambda found, prefix, keep: found.update({prefix + "x": 2})
    first.get_extra_state = lambda: 3
    assert next(iter(whole.state_dict())) == "0.x"
