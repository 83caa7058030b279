"""__torch_function__: subclasses and modes see functions, methods, properties and operators alike."""

import operator
from typing import NamedTuple

import pytest

import rushlight as torch
from rushlight import overrides
from rushlight._command.names import is_aliased
from rushlight.overrides import TorchFunctionMode

Tensor = torch.Tensor


class Log(TorchFunctionMode):
    def __init__(self):
        self.functions = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


class Tagged(Tensor):
    functions: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.functions.append(func)
        return super().__torch_function__(func, types, args, kwargs)


USES = {
    "shape": (lambda t: t.shape, lambda: Tensor.shape.__get__),
    "dtype": (lambda t: t.dtype, lambda: Tensor.dtype.__get__),
    "requires_grad": (lambda t: t.requires_grad, lambda: Tensor.requires_grad.__get__),
    "grad": (lambda t: t.grad, lambda: Tensor.grad.__get__),
    "T": (lambda t: t.T, lambda: Tensor.T.__get__),
    "size": (lambda t: t.size(0), lambda: Tensor.size),
    "dim": (lambda t: t.dim(), lambda: Tensor.dim),
    "stride": (lambda t: t.stride(), lambda: Tensor.stride),
    "requires_grad_": (lambda t: t.requires_grad_(False), lambda: Tensor.requires_grad_),
    "item": (lambda t: t[0, 0].item(), lambda: Tensor.item),
    "index": (lambda t: t[0], lambda: Tensor.__getitem__),
    "assign": (lambda t: t.__setitem__(0, 1.0), lambda: Tensor.__setitem__),
    "len": (lambda t: len(t), lambda: Tensor.__len__),
    "iter": (lambda t: list(t), lambda: Tensor.unbind),
    "bool": (lambda t: bool(t[0, 0]), lambda: Tensor.__bool__),
    "float": (lambda t: float(t[0, 0]), lambda: Tensor.__float__),
    "int": (lambda t: int(t[0, 0]), lambda: Tensor.__int__),
    "split": (lambda t: t.split(1), lambda: Tensor.split),
    "unique": (lambda t: t.unique(), lambda: Tensor.unique),
    "method": (lambda t: t.exp(), lambda: Tensor.exp),
    "function": (lambda t: torch.exp(t), lambda: torch.exp),
    "operator": (lambda t: t + 1, lambda: Tensor.add),
    "numpy": (lambda t: t.numpy(), lambda: Tensor.numpy),
}


@pytest.mark.parametrize("name", USES)
def test_every_kind_of_member_is_seen(name):
    use, function = USES[name]
    Tagged.functions = []
    use(torch.ones(2, 2).as_subclass(Tagged))
    assert function() in Tagged.functions
    with Log() as log:
        use(torch.ones(2, 2))
    assert function() in log.functions


def test_setting_a_property_is_seen():
    with Log() as log:
        torch.ones(2).requires_grad = True
    assert [f.__name__ for f in log.functions].count("__set__") == 1


def test_backward_is_seen():
    x = torch.ones(2, requires_grad=True)
    with Log() as log:
        x.sum().backward()
    assert Tensor.backward in log.functions


def test_results_become_the_subclass_but_gradients_and_bases_do_not():
    x = torch.ones(2, requires_grad=True).as_subclass(Tagged)
    assert type(x + 1) is Tagged and type(x.T) is Tagged and isinstance(x.shape, torch.Size)
    leaf = Tensor._make_subclass(Tagged, torch.ones(2), True)
    (leaf * 2).sum().backward()
    assert type(leaf.grad) is Tensor


def test_disabled_implementations_run_the_function():
    x = torch.ones(2).as_subclass(Tagged)
    assert torch._C._disabled_torch_function_impl(torch.add, (), (x, 1)).tolist() == [2, 2]
    Tagged.functions = []
    with torch._C.DisableTorchFunctionSubclass():
        x + 1
        with Log() as log:
            x + 1
    assert Tagged.functions == [] and log.functions == [Tensor.add]
    with Log() as log, torch._C.DisableTorchFunction():
        torch.ones(2) + 1
    assert log.functions == []


def test_modes_see_operators_of_torch_ops():
    with Log() as log:
        torch.ops.aten.exp.default(torch.ones(2))
    assert torch.ops.aten.exp.default in log.functions


def test_overridable_functions_have_names():
    found = overrides.get_overridable_functions()
    assert torch.add in found[torch] and Tensor.add in found[Tensor]
    assert Tensor.shape.__get__ in found[Tensor]
    assert torch.tensor not in found[torch] and torch.tensor in overrides.get_ignored_functions()
    assert overrides.resolve_name(torch.add) == "torch.add"
    assert overrides.resolve_name(Tensor.add) == "torch.Tensor.add"
    assert overrides.resolve_name(Tensor.shape.__get__) == "torch.Tensor.shape.__get__"
    assert overrides.resolve_name(torch.tensor) == "torch.tensor"
    assert overrides.resolve_name(Tensor.new_zeros) == "torch.Tensor.new_zeros"
    assert overrides.resolve_name(torch.nn.functional.relu) == "torch.nn.functional.relu"
    assert overrides.is_tensor_method_or_property(Tensor.add)
    assert not overrides.is_tensor_method_or_property(torch.add)


def test_wrap_torch_function_and_tensor_likes():
    class Like:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "handled", func

    @overrides.wrap_torch_function(lambda x: (x,))
    def mine(x):
        return "plain"

    assert overrides.is_tensor_like(Like()) and not overrides.is_tensor_like(3)
    assert mine(3) == "plain" and mine(Like()) == ("handled", mine)
    assert torch.add(Like(), 1) == ("handled", torch.add)
    assert overrides.has_torch_function((Like(),)) and not overrides.has_torch_function((3,))


def test_elements_of_lists_are_asked():
    class Recording:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    other = Recording()
    assert (
        torch.cat([other, torch.ones(2)])
        == torch.stack((torch.ones(2), other), dim=0).replace("stack", "cat")
        == "cat"
    )
    with pytest.raises(TypeError, match="expected Tensor as element 1 in argument 0, but got int"):
        torch.cat([torch.ones(2), 3])


def test_functions_written_in_python_are_asked():
    class Recording:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    F, other = torch.nn.functional, Recording()
    for function in (
        F.dropout,
        F.max_pool2d,
        F.interpolate,
        F.normalize,
        torch.split,
        torch.norm,
        torch._assert,
    ):
        assert function(other, 2) is function
    assert torch.einsum("i,i", [other, other]) is torch.einsum and torch.meshgrid(other) is torch.meshgrid
    assert torch.is_floating_point(other) is torch.is_floating_point

    class Seeing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    seen, x = [], torch.ones(1, 1, 4, 4)
    with Seeing():
        F.max_pool2d(x, 2)
    assert seen == [F.max_pool2d]


def test_as_subclass_is_seen_by_no_override():
    t = torch.ones(2).as_subclass(Tagged)
    Tagged.functions.clear()
    assert type(t.as_subclass(Tensor)) is Tensor
    assert Tagged.functions == []


def test_redispatch_shows_what_a_function_calls():
    def scaled(a, b):
        if overrides.has_torch_function((a, b)):
            return overrides.handle_torch_function(scaled, (a, b), a, b)
        return a * b + 1

    seen = []

    class Inside(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return overrides.redispatch_function(func, types, args, kwargs)

    result = scaled(torch.ones(2).as_subclass(Inside), torch.ones(2))
    assert seen == ["scaled", "mul"] and type(result) is Tensor and result.tolist() == [2, 2]

    class Outer(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            with self:
                return overrides.redispatch_function(func, types, args, kwargs)

    seen.clear()
    x = torch.ones(2)
    with Outer():
        scaled(x, x)
    assert seen == ["scaled", "mul", "add"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.lobpcg(x, 1),
        lambda x: torch.pca_lowrank(x),
        lambda x: torch.svd_lowrank(x),
        lambda x: torch.nn.init.uniform_(x, 1, 2),
        lambda x: torch.nn.init.normal_(x),
        lambda x: torch.nn.init.constant_(x, 3),
    ],
)
def test_functions_in_python_ask_their_arguments(call):
    class Counts:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    assert call(Counts()) in "lobpcg pca_lowrank svd_lowrank uniform_ normal_ constant_".split()


class Answering(torch.Tensor):
    """Answers every function with its name."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return getattr(func, "__name__", "?")


class Like:
    """No tensor, but asked as tensors are."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return getattr(func, "__name__", "?")


@pytest.mark.parametrize("kind", [Answering, Like])
def test_indices_and_values_are_asked(kind):
    x = torch.arange(6).view(2, 3)
    assert x[kind()] == x[0, kind()] == x[:, kind(), None] == "__getitem__"
    x[kind()] = 1
    x[0] = kind()
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(IndexError, match="valid indices"):
        x[object()]


def test_rows_of_a_subclass_are_of_its_class():
    class Kept(torch.Tensor):
        pass

    assert [type(row) for row in Kept(torch.ones(2, 2))] == [Kept, Kept]


def test_plain_methods_are_warned_of():
    class Plain:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return 1

    with pytest.warns(DeprecationWarning, match="as a plain method is deprecated"):  # a function in Python
        assert torch.nn.functional.dropout(Plain()) == 1
    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.abs(Plain()) == 1


def test_overrides_are_enabled_again_within_a_disabled_part():
    x = Answering(torch.ones(1))
    with torch._C.DisableTorchFunction():
        assert torch._C._is_torch_function_all_disabled()
        with torch.overrides._enable_torch_function():
            assert not torch._C._is_torch_function_all_disabled()
            assert torch.sum(x) == "sum"
        assert isinstance(torch.sum(x), torch.Tensor)
    assert not torch._C._is_torch_function_all_disabled()


def test_text_collectives_and_private_members_are_overridable():
    known = torch.overrides.get_testing_overrides()
    for function in (torch.Tensor.__repr__, torch.Tensor.__format__, torch.Tensor._base.__get__):
        assert function in known
    assert torch.Tensor.H.__get__ in known and torch.Tensor._indices in known
    assert (repr(Like()) != "__repr__", Answering.__repr__(Answering(torch.ones(1)))) == (True, "__repr__")
    assert torch._sym_cos(Like()) == "_sym_cos" and torch._sym_cos(0.0) == 1.0
    assert torch.smm(Like(), Like()) == "smm" and Answering(torch.ones(1)).lu() == "lu"
    if torch.distributed.is_available():
        assert torch.distributed.all_reduce(Like()) == "all_reduce"
        assert torch.distributed.all_gather([Like()], torch.ones(1)) == "all_gather"
        assert torch.distributed.send(Like(), 0) == "send"
        assert torch.overrides.resolve_name(torch.distributed.recv) == "torch.distributed.recv"


def test_functions_are_named_by_the_last_of_their_homes():
    name = torch.overrides.resolve_name
    assert name(torch.einsum) == "torch.functional.einsum"
    assert name(torch.conv1d) == "torch.nn.functional.conv1d"
    assert name(torch.abs_) == "torch.abs_" and name(torch.nn.init.uniform_) == "torch.nn.init.uniform_"
    known = torch.overrides.get_testing_overrides()
    assert torch.abs_ not in known and torch.nn.init.uniform_ in known
    if not is_aliased():
        theirs = pytest.importorskip("torch").overrides.resolve_name
        oracle = pytest.importorskip("torch")
        for path in ("einsum", "conv1d", "cdist", "stft", "add", "pdist", "nn.functional.relu", "linalg.inv"):
            first, second = torch, oracle
            for part in path.split("."):
                first, second = getattr(first, part), getattr(second, part)
            assert name(first) == theirs(second)


def test_modes_see_sparse_tensors_made():
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return -1

    with Mode():
        assert torch.sparse_coo_tensor(1, 1, (1, 1), check_invariants=False) == -1
        assert torch.sparse_csr_tensor(1, 1, 1) == -1
    assert seen == ["sparse_coo_tensor", "sparse_csr_tensor"]


class Scaled(NamedTuple):
    value: object
    scale: float


class ScaledTensor(Scaled):
    """A named tuple that stands for a tensor, as the quantised tensors of brevitas do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def plain(a):
            if isinstance(a, cls):
                return a.value * a.scale
            return [plain(item) for item in a] if type(a) in (list, tuple) else a

        return function(*map(plain, args), **(kwargs or {}))


def test_named_tuples_that_stand_for_tensors():
    x = ScaledTensor(torch.ones(1, 2, 4, 4), 2.0)
    w = ScaledTensor(torch.ones(3, 2, 1, 1), 3.0)
    assert torch.add(x, 1).unique().tolist() == [3]
    assert (torch.ones(()) + x).unique().tolist() == [3]
    assert torch.sum(x, 0).shape == (2, 4, 4)
    assert torch.cat((x, torch.zeros(1, 2, 4, 4))).unique().tolist() == [0, 2]
    assert torch.nn.functional.conv2d(x, w, None).unique().tolist() == [12]
    assert torch.nn.functional.max_pool2d(x, 2).shape == (1, 2, 2, 2)
    assert torch.nn.functional.dropout(x, training=False).unique().tolist() == [2]
    assert torch.zeros(1, 2, 4, 4).add_(x).unique().tolist() == [2]
    assert torch.nn.ReLU()(x).unique().tolist() == [2]


def test_operators_are_told_as_the_methods_that_pytorch_writes_in_python():
    x, i = torch.ones(2), torch.tensor([3, 4])
    calls = {
        "__rsub__": lambda: 1 - x,
        "__rtruediv__": lambda: 2 / x,
        "__rpow__": lambda: 2**x,
        "__pow__": lambda: x**2,
        "__rfloordiv__": lambda: 7 // i,
        "__floordiv__": lambda: i // 2,
        "__rmod__": lambda: 7 % i,
        "__rlshift__": lambda: 1 << i,
        "__rrshift__": lambda: 16 >> i,
        "__and__": lambda: i & 1,
        "__eq__": lambda: x == 1,
        "__invert__": lambda: ~i,
        "__ior__": lambda: operator.ior(i.clone(), 8),
        "__ipow__": lambda: operator.ipow(i.clone(), 2),
    }
    for name, call in calls.items():
        expected = call()
        with Log() as log:
            result = call()
        assert result.equal(expected) and log.functions[-1] == getattr(Tensor, name), name
        assert len([f for f in log.functions if f != Tensor.clone]) == 1, name  # and not of what it calls
    with Log() as log:
        _ = 1 & i, 2 * x, 1 + x, x - 1, i % 2, x < 1  # the operators' own methods in PyTorch, too
    assert [f.__name__ for f in log.functions] == ["bitwise_and", "mul", "add", "sub", "remainder", "lt"]


def test_subclasses_answer_for_reflected_operators():
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, type(args[0]).__name__, type(args[1]).__name__

    class Reflected(Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func == Tensor.__rsub__:
                return "reflected", args[1]
            return super().__torch_function__(func, types, args, kwargs)

    y = torch.ones(2).as_subclass(Reflected)
    assert 5 - y == ("reflected", 5) and (y - 5).tolist() == [-4, -4] and type(2**y) is Reflected
    assert (torch.ones(2) == Answers()) == ("__eq__", "Tensor", "Answers")
    assert (~torch.tensor([1]).as_subclass(Reflected)).tolist() == [-2] and (2 / y).tolist() == [2, 2]


def test_quantized_pooling_and_numbers_under_their_older_names():
    q = torch.quantize_per_tensor(torch.arange(64.0).view(1, 1, 8, 8), 0.5, 3, torch.quint8)
    wanted = torch.nn.functional.max_pool2d(q, 3, 2, 1)
    assert torch.equal(torch.quantized_max_pool2d(q, [3, 3], [2, 2], [1, 1]), wanted)
    assert torch.equal(torch.quantized_max_pool1d(q[0], 2), torch.nn.functional.max_pool1d(q[0], 2))
    volume = q.view(1, 1, 4, 4, 4)
    assert torch.equal(torch.quantized_max_pool3d(volume, 2), torch.nn.functional.max_pool3d(volume, 2))
    with pytest.raises(NotImplementedError, match="expected a quantized tensor"):
        torch.quantized_max_pool2d(torch.ones(1, 1, 2, 2), 2)
    assert torch.quantized_max_pool2d(Like(), 2) == "quantized_max_pool2d"
    assert torch.tensor(2.5).__long__() == 2 and torch.tensor(1).__nonzero__() is True
    known = torch.overrides.get_testing_overrides()
    assert {torch._indices_copy, torch.native_norm, torch.Tensor.resize_as_sparse_} <= set(known)


def test_devices_that_are_not_built_in_say_their_own_names():
    x = torch.ones(1)
    for name, error, text in (
        ("xpu", AssertionError, "not compiled with XPU enabled"),
        ("mtia", AssertionError, "not compiled with MTIA enabled"),
        ("ipu", RuntimeError, "not linked with support for ipu devices"),
    ):
        with pytest.raises(error, match=text):
            getattr(x, name)()
        assert getattr(Answering(torch.ones(1)), name)() == name


def test_functional_assertions_hand_the_token_on():
    token = torch.ones(2)
    found = torch._functional_assert_async(torch.tensor(True), "no", token)
    assert torch.equal(found, token) and found is not token
    with pytest.raises(RuntimeError, match="not so"):
        torch._functional_assert_async(torch.tensor(False), "not so", token)
    assert torch._functional_assert_async(Like(), "no", token) == "_functional_assert_async"
