"""__torch_dispatch__: modes and tensor subclasses below autograd, and the objects of torch.ops they see."""

import copy
import pickle
import threading

import pytest

import rushlight as torch
from rushlight.utils._mode_utils import no_dispatch
from rushlight.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode,
    _get_current_dispatch_mode_stack,
    is_traceable_wrapper_subclass,
    return_and_correct_aliasing,
    transform_subclass,
)

aten = torch.ops.aten


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls, self.arguments = [], []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func))
        self.arguments.append((args, kwargs))
        return func(*args, **(kwargs or {}))


def unwrap(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(unwrap, value))
    return value.inner if isinstance(value, Wrapper) else value


class Wrapper(torch.Tensor):
    """Holds a tensor and does what it does, writing down what that was."""

    calls: list = []
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=inner.device,
            requires_grad=inner.requires_grad,
        )
        made.inner = inner.detach()
        return made

    def __repr__(self):
        return f"Wrapper({self.inner})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, outer_size, outer_stride):
        return Wrapper(inner["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))
        out = func(*unwrap(args), **{k: unwrap(v) for k, v in (kwargs or {}).items()})
        wrap = lambda t: cls(t) if isinstance(t, torch.Tensor) else t
        wrapped = type(out)(map(wrap, out)) if isinstance(out, (list, tuple)) else wrap(out)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


@pytest.fixture(autouse=True)
def forget_calls():
    Wrapper.calls = []


# --- modes --------------------------------------------------------------------------------------


def test_a_mode_sees_what_composites_call_and_what_backward_does():
    with Log() as log:
        x = torch.ones(2, 3, requires_grad=True)
        torch.nn.functional.linear(x, torch.ones(4, 3), torch.ones(4)).relu().sum().backward()
    for name in ("ones.default", "t.default", "addmm.default", "relu.default", "sum.default", "mm.default"):
        assert f"aten.{name}" in log.calls
    assert "aten.threshold_backward.default" in log.calls and "aten.linear.default" not in log.calls


def test_arguments_are_plain_and_defaults_left_out():
    with Log() as log:
        torch.ones(2) * 2
        torch.ones(2).add_(1, alpha=3)
        torch.cat([torch.ones(2), torch.ones(2)])
    by_name = dict(zip(log.calls, log.arguments))
    assert by_name["aten.mul.Tensor"][0][1] == 2 and by_name["aten.mul.Tensor"][1] == {}
    assert by_name["aten.add_.Tensor"][1] == {"alpha": 3}
    assert isinstance(by_name["aten.cat.default"][0][0], list) and len(by_name["aten.cat.default"][0]) == 1


def test_handlers_run_below_autograd_and_may_replace_results():
    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            assert not any(t.grad_fn for t in [out] if isinstance(t, torch.Tensor))
            return out * 2 if func is aten.exp.default else out

    x = torch.zeros(3, requires_grad=True)
    with Double():
        y = x.exp()
    assert y.tolist() == [2, 2, 2] and y.requires_grad
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert grad.tolist() == [2, 2, 2]


def test_modes_nest_and_leave_the_stack_while_they_run():
    depths = []

    class Depth(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            depths.append(len(_get_current_dispatch_mode_stack()))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Depth() as outer, Depth() as inner:
        assert _get_current_dispatch_mode_stack() == [outer, inner]
        assert _get_current_dispatch_mode() is inner
        x + 1
    assert depths == [1, 0]
    assert _get_current_dispatch_mode() is None


def test_an_error_in_a_handler_leaves_everything_as_it_was():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="mine"):
        with Fails():
            x + 1
    assert _get_current_dispatch_mode() is None and torch.is_grad_enabled()
    assert (x + 1).requires_grad


def test_modes_belong_to_their_thread():
    seen = []
    with Log() as log:
        thread = threading.Thread(target=lambda: seen.append(torch.ones(3).sum().item()))
        thread.start()
        thread.join()
    assert seen == [3] and log.calls == []


def test_no_dispatch_switches_everything_off():
    with Log() as log, no_dispatch():
        torch.ones(2) + 1
    assert log.calls == []
    with pytest.raises(RuntimeError, match="doesn't have storage"):
        with no_dispatch():
            Wrapper(torch.ones(2)) + 1


def test_reading_a_value_is_seen():
    with Log() as log:
        bool(torch.ones(1) > 0)
    assert log.calls[-1] == "aten._local_scalar_dense.default"


# --- subclasses ---------------------------------------------------------------------------------


def test_a_wrapper_computes_and_differentiates():
    x = Wrapper(torch.arange(3.0).requires_grad_())
    assert x.requires_grad and x.is_leaf
    y = (x.exp() * 2).sum()
    y.backward()
    assert isinstance(x.grad, Wrapper)
    torch.testing.assert_close(x.grad.inner, 2 * torch.arange(3.0).exp())
    assert {"aten.exp.default", "aten.mul.Tensor", "aten.sum.default", "aten.detach.default"} <= set(
        Wrapper.calls
    )


def test_writing_in_place_returns_the_same_object_and_counts():
    x = Wrapper(torch.ones(2))
    assert x.add_(1) is x and x.inner.tolist() == [2, 2] and x._version == 1
    out = Wrapper(torch.empty(2))
    assert torch.mul(x, x, out=out) is out and out.inner.tolist() == [4, 4]


def test_views_share_their_bases_storage():
    x = Wrapper(torch.arange(6.0).view(2, 3))
    view = x.t()
    assert view.untyped_storage()._cdata == x.untyped_storage()._cdata and view.shape == (3, 2)


def test_elements_are_asked_for_and_memory_is_refused():
    x = Wrapper(torch.arange(3.0))
    assert x[2].item() == 2 and float(x[1]) == 1 and bool(x[1] > 0)
    for read in (lambda: x.data_ptr(), lambda: x.tolist()):
        with pytest.raises(RuntimeError):
            read()


def test_lists_of_wrappers_and_parameters():
    x = Wrapper(torch.ones(2))
    assert torch.stack([x, x]).shape == (2, 2) and [type(t) for t in x.split(1)] == [Wrapper] * 2
    p = torch.nn.Parameter(x)
    assert isinstance(p, Wrapper) and isinstance(p, torch.nn.Parameter) and p.requires_grad


def test_not_implemented_by_all_is_a_type_error():
    class Refuses(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
        torch.add(Refuses(torch.ones(2)), 1)


def test_subclasses_come_before_their_bases():
    order = []

    class Sub(Wrapper):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            order.append((cls, set(types)))
            return NotImplemented

    Wrapper(torch.ones(2)) + Sub(torch.ones(2))
    assert order == [(Sub, {Sub, Wrapper})]


def test_a_class_without_a_handler_cannot_be_a_wrapper():
    class Plain(torch.Tensor):
        pass

    with pytest.raises(RuntimeError, match="defines __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))


def test_helpers_for_traceable_wrappers():
    x = Wrapper(torch.ones(2, 2))
    assert is_traceable_wrapper_subclass(x) and not is_traceable_wrapper_subclass(torch.ones(2))
    assert transform_subclass(x, lambda name, t: t + 1).inner.tolist() == [[2, 2], [2, 2]]


def test_a_subclass_with_data_runs_plainly_by_default():
    class Tagged(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Wrapper.calls.append(str(func))
            with no_dispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Tagged, torch.ones(2))
    assert (x + 1).tolist() == [2, 2] and "aten.add.Tensor" in Wrapper.calls


# --- torch.ops ----------------------------------------------------------------------------------


def test_operators_are_objects():
    add = aten.add.Tensor
    assert (str(add), repr(add)) == ("aten.add.Tensor", "<OpOverload(op='aten.add', overload='Tensor')>")
    assert repr(aten.add) == "<OpOverloadPacket(op='aten.add')>" and add._overloadpacket is aten.add
    assert (add.namespace, add._opname, add.__name__, add.name()) == (
        "aten",
        "add",
        "add.Tensor",
        "aten::add.Tensor",
    )
    assert {"Tensor", "out"} <= set(aten.add.overloads())
    assert (
        copy.deepcopy(add) is add
        and pickle.loads(pickle.dumps(add)) is add
        and len({add, aten.add.Tensor}) == 1
    )
    for missing in ("no_such_operator", "__wrapped__"):
        with pytest.raises(AttributeError):
            getattr(aten, missing)
    with pytest.raises(AttributeError, match="no overload name"):
        aten.add.nonsense  # noqa: B018


def test_operators_are_called_by_their_schema():
    x = torch.arange(3.0)
    assert aten.add.Tensor(x, 1, alpha=2).tolist() == [2, 3, 4]
    assert aten.add_.Tensor(x.clone(), x).tolist() == [0, 2, 4]
    out = torch.empty(3)
    assert aten.add.out(x, x, out=out) is out and out.tolist() == [0, 2, 4]
    assert aten.sum(x).item() == 3 and aten.sum.default(x).item() == 3
    assert aten.add.Tensor(self=x, other=x).tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="type 'Tensor' for argument 'other' but instead found type 'str'"):
        aten.add.Tensor(x, "one")
    with pytest.raises(RuntimeError, match=r"Unknown keyword argument 'out' for operator 'aten::add'"):
        aten.add.Tensor(x, x, out=out)
    assert out.tolist() == [0, 2, 4]


def test_numbers_have_overloads_of_their_own_in_handlers():
    x, wrapped = torch.arange(3.0), Wrapper(torch.arange(3.0))
    with Log() as log:
        x == 1, x > 0.5, x**2, x % 2, x + 1, x * 2, x > x, x == "a"
        x.clone().ge_(1)
        x.int() & 1
    called = [name for name in log.calls if name not in ("aten.clone.default", "aten._to_copy.default")]
    assert called == [
        "aten.eq.Scalar",
        "aten.gt.Scalar",
        "aten.pow.Tensor_Scalar",
        "aten.remainder.Scalar",
        "aten.add.Tensor",
        "aten.mul.Tensor",
        "aten.gt.Tensor",
        "aten.ge_.Scalar",
        "aten.bitwise_and.Scalar",
    ]
    Wrapper.calls.clear()
    assert (wrapped >= 1).inner.tolist() == [False, True, True]
    assert Wrapper.calls == ["aten.ge.Scalar"]


def test_schemas_have_parts():
    schema = aten.add_.Tensor._schema
    assert str(schema) == "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"
    assert (schema.name, schema.overload_name) == ("aten::add_", "Tensor") and schema.is_mutable
    first, _, alpha = schema.arguments
    assert first.alias_info.is_write and alpha.kwarg_only and alpha.default_value == 1
    assert str(first.type) == "Tensor" and not aten.add.Tensor._schema.is_mutable


def test_every_schema_can_be_read_and_printed():
    from rushlight._operators.schema import parse_schema

    for name in dir(aten):
        packet = getattr(aten, name)
        for overload in packet.overloads():
            schema = getattr(packet, overload)._schema
            assert parse_schema(str(schema)) == schema


def test_load_library_says_what_is_wrong():
    with pytest.raises(OSError):
        torch.ops.load_library("no_such_library.so")


def test_copies_have_their_attributes_before_anything_is_called_on_them():
    class Noted(torch.Tensor):
        __slots__ = ("note",)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            for x in args:
                if isinstance(x, cls):
                    x.note  # noqa: B018
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(2).as_subclass(Noted)
    x.note = ["kept"]
    x.requires_grad_()
    y = copy.deepcopy(x)
    assert type(y) is Noted and y.requires_grad and y.note == ["kept"] and y.note is not x.note


def test_classes_that_handle_operators_see_functions_only_if_they_ask():
    class Unwraps(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.inner if isinstance(a, Unwraps) else a for a in args], **(kwargs or {}))

    class Below(Unwraps):
        pass

    class Plain(torch.Tensor):
        pass

    class Asks(Unwraps):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "asked"

    for cls in (Unwraps, Below):
        assert type(cls(torch.ones(2)) + 1) is torch.Tensor
        assert cls.__torch_function__ is torch._C._disabled_torch_function_impl
    assert type(torch.ones(2).as_subclass(Plain) + 1) is Plain
    assert torch.add(Asks(torch.ones(2)), 1) == "asked"
    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        torch.nn.Parameter(Unwraps(torch.ones(2)))


def test_tensors_that_are_made_say_where_as_pytorch_says_it():
    seen = {}

    class Note(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen[str(func)] = kwargs
            return func(*args, **(kwargs or {}))

    with Note():
        torch.empty(2)
        torch.ones(2, dtype=torch.int32).new_zeros(2)
        torch.full_like(torch.empty(2, device="meta"), 3)
    cpu = torch.device("cpu")
    assert seen["aten.ones.default"] == {"dtype": torch.int32, "device": cpu, "pin_memory": False}
    assert seen["aten.new_zeros.default"] == seen["aten.full_like.default"] == {"pin_memory": False}
    assert seen["aten.empty.memory_format"] == {"device": torch.device("meta"), "pin_memory": False}


class Inner(torch.Tensor):
    """Holds a tensor; what is done with it is done with that one, as for the caller."""

    @staticmethod
    def __new__(cls, inner):
        made = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with torch.overrides.enable_reentrant_dispatch():
            made = func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))
        assert not torch.is_grad_enabled()  # as before the context
        return cls(made)


def test_handlers_may_be_recorded():
    x = torch.ones(3, requires_grad=True)
    y = Inner(x) * 3 + 1
    assert not y.requires_grad and y.inner.requires_grad
    y.inner.sum().backward()
    assert x.grad.tolist() == [3, 3, 3]
    with torch.no_grad():
        assert not (Inner(x) * 2).inner.requires_grad
    with torch.overrides.enable_reentrant_dispatch():  # outside of handlers nothing changes
        assert (x * 2).requires_grad


def test_one_object_stands_for_a_wrapper():
    class Other(torch.Tensor):
        pass

    for made in (Wrapper(torch.ones(2)).as_subclass, lambda kind: kind(Wrapper(torch.ones(2)))):
        with pytest.raises(RuntimeError, match="associated to a python object of type Wrapper which is not"):
            made(Other)
