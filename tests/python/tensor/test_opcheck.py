"""`torch.library.opcheck` and the definitions it checks: each finding names what is wrong."""

import pytest

import rushlight as torch
from rushlight import Tensor, library


@pytest.fixture
def lib():
    with library._scoped_library("checked", "FRAGMENT") as made:
        yield made


def findings(op, *args):
    return {k: str(v) for k, v in library.opcheck(op, args, raise_exception=False).items() if v != "SUCCESS"}


def defined(lib, schema, **kernels):
    name = lib.define(schema)
    for key, kernel in kernels.items():
        lib.impl(name, kernel, key)
    return getattr(torch.ops.checked, name).default


def test_a_result_that_shares_memory_is_found(lib):
    op = defined(lib, "viewed(Tensor x) -> Tensor", CompositeExplicitAutograd=lambda x: x[:])
    assert (
        "Argument x is not defined to alias output but was aliasing"
        in findings(op, torch.ones(2))["test_schema"]
    )


def test_results_that_share_memory_are_found(lib):
    def both(x):
        made = x + 1
        return made, made[:]

    op = defined(lib, "both(Tensor x) -> (Tensor, Tensor)", CPU=both, Meta=both)
    assert "alias unexpectedly" in findings(op, torch.ones(2))["test_schema"]


@pytest.mark.filterwarnings("ignore:checked..halved")
def test_a_derivative_registered_for_a_device_is_found(lib):
    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * 0.5

    op = defined(lib, "halved(Tensor x) -> Tensor", CPU=Halved.apply, Meta=lambda x: x.clone())
    found = findings(op, torch.randn(2, requires_grad=True))
    assert "does not have an autograd kernel" in found["test_autograd_registration"]
    library.register_autograd("checked::halved", lambda ctx, grad: grad * 0.5, lib=lib)
    assert "test_autograd_registration" not in findings(op, torch.randn(2, requires_grad=True))


def test_shapes_of_a_fake_function_are_compared(lib):
    op = defined(lib, "squared(Tensor x) -> Tensor", CPU=lambda x: x**2, Meta=lambda x: x.unsqueeze(1) ** 2)
    found = findings(op, torch.ones(2))
    assert (
        "Shapes (2, 1) of the fake function and (2,) of the operator are not equal"
        in found["test_faketensor"]
    )


def test_sizes_that_depend_on_values_are_no_finding(lib):
    def fake(x):
        return x.new_empty(library.get_ctx().new_dynamic_size(), dtype=torch.long)

    op = defined(lib, "places(Tensor x) -> Tensor", CPU=lambda x: x.nonzero()[:, 0].clone(), Meta=fake)
    assert findings(op, torch.tensor([0.0, 1.0])) == {}


def test_state_between_calls_is_found(lib):
    calls = []

    def counting(x):
        calls.append(1)
        return x * len(calls)

    op = defined(lib, "counting(Tensor x) -> Tensor", CompositeImplicitAutograd=counting)
    assert "eager-mode PyTorch vs AOTAutograd" in findings(op, torch.ones(2))["test_aot_dispatch_dynamic"]


def test_returned_arguments_cannot_be_functional(lib):
    op = defined(lib, "sin_(Tensor(a!) x) -> Tensor(a!)", CPU=lambda x: x.sin_(), Meta=lambda x: x)
    found = findings(op, torch.ones(2))
    assert "outputs do not have alias annotations" in found["test_aot_dispatch_dynamic"]


def test_only_operators_are_checked():
    with pytest.raises(ValueError, match="op must be instance of torch._ops.OpOverload"):
        library.opcheck(torch.sin, (torch.ones(1),))
    assert set(library.opcheck(torch.ops.aten.sin.default, (torch.ones(1),)).values()) == {"SUCCESS"}


def test_operators_without_tensors_follow_their_device():
    @library.custom_op("checked::made", mutates_args=(), device_types="cpu")
    def made(device: torch.device) -> Tensor:
        return torch.ones(3)

    assert made("cpu").tolist() == made(device=torch.device("cpu")).tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="made does not have a kernel registered for cuda"):
        made("cuda")
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):

        @library.custom_op("checked::lost", mutates_args=(), device_types="cpu")
        def lost() -> Tensor:
            return torch.ones(3)


def test_definitions_that_cannot_work_are_refused():
    def keyword(x: Tensor, *, y: Tensor) -> Tensor:
        return x + y

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        library.custom_op("checked::keyword", keyword, mutates_args=())
    assert not hasattr(torch.ops.checked, "keyword")

    def written(x: Tensor) -> None:
        x.sin_()

    with pytest.raises(ValueError, match="the string 'unknown'"):
        library.custom_op("checked::written", written, mutates_args="x")
    with pytest.raises(ValueError, match="the op mutates {'x'}"):
        library.custom_op("checked::written", written, mutates_args=(), schema="(Tensor(a!) x) -> ()")


def test_overloads_and_devices_as_defaults():
    @library.custom_op("checked::more", mutates_args=())
    def more(x: Tensor) -> Tensor:
        return x + 1

    @library.custom_op("checked::more.by", mutates_args=())
    def more_by(x: Tensor, y: Tensor, device: torch.device = torch.device("cpu:0")) -> Tensor:
        return x + y

    one = torch.ones(1)
    assert torch.ops.checked.more(one).item() == 2
    assert torch.ops.checked.more(one, one + 1).item() == 3


def test_switches_of_kernels_that_change_nothing_are_told(caplog):
    @library.custom_op("checked::switched", mutates_args=())
    def switched(x: Tensor) -> Tensor:
        return x + 1

    with caplog.at_level("WARNING", "torch._library.custom_ops"):
        with switched.set_kernel_enabled("cuda", enabled=False):
            pass
        assert "no kernel was registered for this device type" in caplog.text
        switched.register_kernel("cpu", lambda x: x + 2)
        with switched.set_kernel_enabled("cpu"):
            assert switched(torch.ones(1)).item() == 3
        assert "already enabled" in caplog.text
        with (
            switched.set_kernel_enabled("cpu", enabled=False),
            switched.set_kernel_enabled("cpu", enabled=False),
        ):
            assert switched(torch.ones(1)).item() == 2
        assert "already disabled" in caplog.text


def test_an_operator_that_only_writes_needs_no_fake_function():
    @library.custom_op("checked::filled", mutates_args=("x",))
    def filled(x: Tensor) -> None:
        x.fill_(1)

    filled(torch.empty(2, device="meta"))

    @library.custom_op("checked::doubled", mutates_args=())
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    with pytest.raises(RuntimeError, match=r"Please use `doubled\.register_fake`"):
        doubled(torch.empty(2, device="meta"))


@pytest.mark.parametrize(
    ("written", "hint"), [("int64_t", "Use `SymInt` or `int`"), ("double", "Use `float`")]
)
def test_types_of_schemas_are_those_of_schemas(lib, written, hint):
    with pytest.raises(RuntimeError, match=f"unknown type specifier '{written}'. {hint}"):
        lib.define(f"typed({written} a) -> Tensor")
    assert str(torch._C.parse_schema("checked::f(Tensor x, *, int n=1) -> Tensor").arguments[1]) == "int n=1"
    assert "sin" in str(torch._C._jit_get_schemas_for_operator("aten::sin")[0])


def test_all_schemas_and_types_of_their_arguments():
    schemas = {str(s): s for s in torch._C._jit_get_all_schemas()}
    names = {s.name for s in schemas.values()}
    assert {"aten::add", "aten::zeros_like", "aten::convolution"} <= names and len(schemas) > 1000
    zeros = next(s for s in schemas.values() if s.name == "aten::zeros_like")
    tensor, device = torch._C.TensorType.get(), torch._C.OptionalType(torch._C.DeviceObjType.get())
    types = {a.name: a.type for a in zeros.arguments}
    assert types["self"].isSubtypeOf(tensor) and types["self"].isSubtypeOf(torch._C.OptionalType(tensor))
    assert types["device"].isSubtypeOf(device) and not types["dtype"].isSubtypeOf(device)
    assert [t.annotation_str for t in types["device"].containedTypes()] == ["Device"]


def test_mode_that_checks_schemas(lib):
    from rushlight._subclasses.schema_check_mode import Aliasing, Mutation, SchemaCheckMode

    x = torch.ones(2, 3)
    with SchemaCheckMode() as mode:
        y = x.view(6).mul_(2) + 1
        torch.split(y, 2)
    assert mode.ops == ["aten::view", "aten::mul_", "aten::add", "aten::split"]
    assert mode.mutated == [Mutation("aten::mul_", "input")]
    assert Aliasing("aten::view", "input", "output_0") in mode.aliasing
    wrong = defined(lib, "writes(Tensor x) -> Tensor", CPU=lambda x: x.add_(1).clone())
    with SchemaCheckMode(), pytest.raises(RuntimeError, match="Argument x is not defined as mutable"):
        wrong(torch.ones(2))
    same = defined(lib, "same(Tensor x) -> Tensor", CPU=lambda x: x)
    with SchemaCheckMode(), pytest.raises(RuntimeError, match="not defined to alias output but was aliasing"):
        same(torch.ones(2))


def test_schemas_hold_however_arguments_lie():
    from rushlight._subclasses.schema_check_mode import Mutation, SchemaCheckMode

    x, norm = torch.rand(3, 4), torch.nn.BatchNorm1d(4)
    with SchemaCheckMode() as mode:
        x.t() + 1
        x[:, ::2].clone()
        torch.rand(4, 3).t().mul(x)
        x.add_(x)
        norm(x)
        torch.frexp(x, out=(torch.empty(3, 4), torch.empty(3, 4, dtype=torch.int32)))
    written = {m.arg_name for m in mode.mutated if m.op_name == "aten::add_"}
    assert written == {"input", "other"}
    assert {Mutation("aten::native_batch_norm", f"running_{s}") for s in ("mean", "var")} <= {*mode.mutated}
    norm.eval()
    with SchemaCheckMode() as mode:
        norm(x)
    assert not mode.mutated


def test_results_that_are_arguments(lib):
    from rushlight._subclasses.schema_check_mode import SchemaCheckMode

    itself = defined(lib, "itself(Tensor(a) x) -> Tensor(a)", CPU=lambda x: x)
    part = defined(lib, "part(Tensor(a) x) -> Tensor(a)", CPU=lambda x: x[:1])
    x = torch.ones(2)
    with SchemaCheckMode():
        assert part(x).tolist() == [1]
        torch.arange(3).conj_physical(), torch.ops.aten._unsafe_view(x, [2, 1])
        with pytest.raises(RuntimeError, match="not allowed to directly return inputs"):
            itself(x)
