"""torch.library.Library: operators defined by schemas, their kernels, and what becomes of them at its end."""

import gc
import weakref

import pytest

import rushlight as torch
from rushlight import library
from rushlight._library import libraries

Tensor = torch.Tensor


def test_a_library_defines_and_implements(lib):
    lib.define("plus(Tensor x, Scalar by=1, *, int times=1) -> Tensor")
    lib.impl("plus", lambda x, by=1, times=1: x + by * times, "CPU")
    x = torch.ones(2)
    assert torch.ops.tests.plus(x).tolist() == [2, 2]
    assert torch.ops.tests.plus(x, 2, times=3).tolist() == [7, 7]
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'nonsense' for operator 'tests::plus'"):
        torch.ops.tests.plus(x, nonsense=1)
    with pytest.raises(RuntimeError, match="multiple times"):
        lib.define("plus(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="already a kernel"):
        lib.impl("plus", lambda x: x, "CPU", allow_override=False)


def test_a_kernel_is_replaced_with_one_warning(lib, monkeypatch):
    monkeypatch.setattr(libraries, "_told_of_replacing", False)
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x, "CPU")
    with pytest.warns(UserWarning, match="Overriding a previously registered kernel"):
        lib.impl("twice", lambda x: x + x, "CPU")
    lib.impl("twice", lambda x: 2 * x, "CPU")
    assert torch.ops.tests.twice(torch.ones(1)).tolist() == [2]


def test_composite_kernels_are_differentiated_through(lib):
    lib.define("cube(Tensor x) -> Tensor")
    lib.impl("cube", lambda x: x * x * x, "CompositeImplicitAutograd")
    x = torch.tensor([2.0], requires_grad=True)
    torch.ops.tests.cube(x).backward()
    assert x.grad.item() == 12
    assert torch.ops.tests.cube(torch.empty(3, device="meta")).shape == (3,)


def test_autograd_kernels(lib):
    lib.define("halved(Tensor x) -> Tensor")
    lib.impl("halved", lambda x: x / 2, "CPU")

    class Halved(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch._C._AutoDispatchBelowAutograd():
                return torch.ops.tests.halved(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * 100

    lib.impl("halved", Halved.apply, "Autograd")
    x = torch.ones(1, requires_grad=True)
    torch.ops.tests.halved(x).backward()
    assert x.grad.item() == 100


def test_overloads_and_lists(lib):
    lib.define("join(Tensor[] xs) -> Tensor")
    lib.define("join.two(Tensor a, Tensor b) -> Tensor")
    lib.impl("join", lambda xs: torch.cat(xs), "CompositeExplicitAutograd")
    lib.impl("join.two", lambda a, b: torch.cat([a, b]), "CompositeExplicitAutograd")
    x = torch.ones(1)
    assert torch.ops.tests.join.overloads() == ["default", "two"]
    assert torch.ops.tests.join([x, x, x]).shape == (3,) and torch.ops.tests.join(x, x).shape == (2,)


def test_decorators_by_name(lib):
    library.define("tests::negated", "(Tensor x) -> Tensor", lib=lib)

    @library.impl("tests::negated", "default", lib=lib)
    def _(x):
        return -x

    @library.register_fake("tests::negated", lib=lib)
    def _(x):
        return torch.empty_like(x)

    library.register_autograd("tests::negated", lambda ctx, grad: -grad, lib=lib)
    x = torch.ones(2, requires_grad=True)
    torch.ops.tests.negated(x).sum().backward()
    assert x.grad.tolist() == [-1, -1] and torch.ops.tests.negated(torch.empty(2, device="meta")).shape == (
        2,
    )


def test_what_is_gone_is_gone():
    made = library.Library("short_lived", "DEF")
    made.define("f(Tensor x) -> Tensor")
    assert torch.ops.short_lived.f.default
    with pytest.raises(RuntimeError, match="Only a single"):
        library.Library("short_lived", "DEF")
    made._destroy()
    with pytest.raises(AttributeError):
        torch.ops.short_lived.f  # noqa: B018


BAD = {
    "autocast device": lambda: library.register_autocast("tests::any", "abacus", torch.float16),
    "autocast dtype": lambda: library.register_autocast("tests::any", "cpu", "half"),
    "kind": lambda: library.Library("x", "SOMETHING"),
    "grammar": lambda: library.Library("x", "FRAGMENT").define("f(Tensr x) -> Tensor"),
    "parenthesis": lambda: library.Library("x", "FRAGMENT").define("f(Tensor x"),
    "callable": lambda: library.Library("x", "IMPL").impl("f", 3, "CPU"),
    "name": lambda: library.custom_op("no_namespace", lambda x: x, mutates_args=()),
    "triton": lambda: library.wrap_triton(None),
    "result": lambda: _wrong_result(),
}


def _wrong_result():
    @library.custom_op("tests::wrong_result", mutates_args=())
    def wrong_result(x: Tensor) -> Tensor:
        return "text"

    return wrong_result(torch.ones(2))


@pytest.mark.parametrize("name", BAD)
def test_bad_use_is_an_error(name):
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        BAD[name]()


def test_kernels_of_devices_that_are_not_here_are_accepted():
    library.define("tests::elsewhere", "(Tensor x) -> Tensor")
    library.impl("tests::elsewhere", "cpu", lambda x: x + 1)
    library.impl("tests::elsewhere", ("xpu", "mps"), lambda x: x + 2)
    library.Library("tests", "FRAGMENT").impl("elsewhere", lambda x: x + 3, "AutogradXPU")
    assert torch.ops.tests.elsewhere(torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        library.impl("tests::elsewhere", "abacus", lambda x: x)


def test_autocast_of_a_built_in_operator_falls_through(lib):
    x = torch.ones(2, 2)
    with library._scoped_library("aten", "IMPL") as mine, torch.autocast("cpu"):
        mine.impl("mm", library.fallthrough_kernel, "AutocastCPU")
        assert torch.mm(x, x).dtype == torch.float32 and torch.matmul(x, x).dtype == torch.bfloat16
        with pytest.raises(NotImplementedError, match="cannot be left out"):
            mine.impl("mm", library.fallthrough_kernel, "Autograd")
    with torch.autocast("cpu"):
        assert torch.mm(x, x).dtype == torch.bfloat16


def test_kernels_for_all_devices_give_fake_results_too(lib):
    lib.define("tripled(Tensor x) -> Tensor")
    lib.impl("tripled", lambda x: x.repeat(3), "CompositeExplicitAutograd")
    with torch._subclasses.FakeTensorMode():
        assert torch.ops.tests.tripled(torch.ones(2)).shape == (6,)


def test_operators_of_others_have_no_fake_function(lib):
    lib.define("made(Tensor x) -> Tensor")
    lib.impl("made", torch.sin, "CompositeImplicitAutograd")
    with pytest.raises(RuntimeError, match="need no fake impl"):
        library.register_fake("tests::made", torch.sin)


def test_tensors_by_keyword_alone_have_no_derivative(lib):
    lib.define("keyed(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        library.register_autograd("tests::keyed", lambda ctx, grad: grad)
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        library.register_vmap("tests::keyed", lambda info, in_dims, x, *, y: (x, 0))


def test_where_a_fake_function_is():
    from rushlight._library.simple_registry import singleton

    def shapes(x):
        return torch.empty_like(x)

    library.define("tests::found", "(Tensor x) -> Tensor")
    library.register_fake("tests::found", shapes)
    assert __file__ in singleton.find("tests::found").fake_impl.kernel.source
    assert singleton.find("tests::unknown").fake_impl.kernel is None


def _operator_without_derivative(lib, schema, kernel):
    name = schema.partition("(")[0]
    lib.define(schema)
    lib.impl(name, kernel, "CPU")
    return getattr(torch.ops.watched, name).default


def test_a_gradient_that_comes_to_an_operator_without_derivative_brings_a_warning():
    with torch.library._scoped_library("watched", "FRAGMENT") as lib:
        copied = _operator_without_derivative(
            lib, "copied(Tensor x) -> Tensor", lambda x: torch.tensor(x.detach().numpy())
        )
        x = torch.ones(2, requires_grad=True)
        y = copied(x)
        assert y.requires_grad
        with pytest.warns(UserWarning, match="watched::copied: an autograd kernel was not registered"):
            y.sum().backward()
        assert x.grad is None
        recorded = _operator_without_derivative(lib, "recorded(Tensor x) -> Tensor", lambda x: x.sin())
        with pytest.warns(UserWarning, match="watched::recorded"):
            recorded(x).sum().backward()
        torch.testing.assert_close(x.grad, x.detach().cos())
        written = _operator_without_derivative(
            lib, "written(Tensor(a!) x) -> Tensor(a!)", lambda x: x.detach().sin_() is None or x
        )
        base = x.clone()
        written(base[:1])
        with pytest.warns(UserWarning, match="watched::written"):
            base.sum().backward()
    assert not hasattr(torch.ops.watched, "copied")  # it went with its library


def test_operators_that_are_meant_to_have_no_derivative():
    import warnings

    with torch.library._scoped_library("watched", "FRAGMENT") as lib:
        copied = _operator_without_derivative(
            lib, "copied(Tensor[] x) -> Tensor[]", lambda x: [t.detach().clone() for t in x]
        )
        x = torch.ones(2, requires_grad=True)
        with pytest.warns(UserWarning, match="watched::copied"):
            copied([x, x])[1].sum().backward()
        with torch.no_grad():
            assert not copied([x])[0].requires_grad
        torch._C._set_autograd_fallback_mode("nothing")
        try:
            assert torch._C._get_autograd_fallback_mode() == "nothing"
            assert not copied([x])[0].requires_grad
        finally:
            torch._C._set_autograd_fallback_mode("warn")
        lib.impl("copied", torch.library.fallthrough_kernel, "Autograd")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not copied([x])[0].requires_grad
    with pytest.raises(ValueError, match="'nothing' or 'warn'"):
        torch._C._set_autograd_fallback_mode("loud")


def test_operators_that_write_return_what_their_kernel_returns():
    with torch.library._scoped_library("writing", "FRAGMENT") as lib:
        lib.define("fresh(Tensor(a!) x) -> Tensor")
        lib.impl("fresh", lambda x: x.detach().add_(1) * 10, "CPU")
        lib.define("nothing(Tensor(a!) x) -> ()")
        lib.impl("nothing", lambda x: x.mul_(2) and None, "CPU")
        lib.define("both(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))")
        lib.impl("both", lambda x, y: (x.add_(1), y.add_(2)), "CPU")
        lib.define("itself(Tensor(a!) x) -> Tensor(a!)")
        lib.impl("itself", lambda x: x.add_(1), "CPU")
        x, y = torch.zeros(1), torch.zeros(1)
        fresh = torch.ops.writing.fresh(x)
        assert fresh.tolist() == [10] and x.tolist() == [1]
        assert torch.ops.writing.nothing(x) is None and x.tolist() == [2]
        first, second = torch.ops.writing.both(x, y)
        assert first.tolist() == x.tolist() == [3] and second.tolist() == y.tolist() == [2]
        assert torch.ops.writing.itself(x) is x and x.tolist() == [4]


def test_mark_of_a_written_argument_without_a_name():
    with torch.library._scoped_library("unnamed_mark", "DEF") as lib:
        lib.define("f.out(Tensor A, Tensor! out) -> ()")
        lib.define("g(Tensor! a, Tensor!? b=None) -> Tensor!")
        lib.impl("f.out", lambda A, out: out.copy_(A) and None, "CPU")
        out = torch.zeros(1)
        version = out._version
        torch.ops.unnamed_mark.f.out(torch.ones(1), out)
        assert out.tolist() == [1] and out._version > version
        schema = torch.ops.unnamed_mark.f.out._schema
        assert str(schema) == "unnamed_mark::f.out(Tensor A, Tensor($0! -> ) out) -> ()"
        assert [a.is_write for a in schema.arguments] == [False, True]
        text = str(torch.ops.unnamed_mark.g.default._schema)
        assert text == "unnamed_mark::g(Tensor($0! -> ) a, Tensor($1! -> )? b=None) -> Tensor($2! -> )"


def test_checks_that_programs_for_other_compilers_name():
    aten, x = torch.ops.aten, torch.ones(2, 3)
    assert aten._assert_tensor_metadata.default(x, [2, 3], None, torch.float32) is None
    with pytest.raises(RuntimeError, match="sizes mismatch"):
        aten._assert_tensor_metadata(x, size=[3, 3])
    for check in (aten._functional_assert_scalar.default, aten._functional_assert_async.msg):
        given = (lambda v: v) if check is aten._functional_assert_scalar.default else torch.tensor
        token = check(given(True), "too small", x)
        assert token is not x and torch.equal(token, x)
        with pytest.raises(RuntimeError, match="too small"):
            check(given(False), "too small", x)


def test_what_the_build_has_is_told():
    assert torch._C._has_xpu is False and torch._C._has_mps is torch.backends.mps.is_built()
    assert torch._C._has_cuda is torch.backends.cuda.is_built()


def test_decorators_that_take_a_library():
    library = torch.library.Library("of_a_library", "DEF")
    library.define("first(Tensor self) -> Tensor")

    @torch.library.impl(library, "first", "CPU")
    def first(x):
        return x.cos()

    @torch.library.define(library, "second(Tensor self) -> Tensor")
    def second(x):
        return x.sin()

    x = torch.ones(2)
    assert torch.equal(torch.ops.of_a_library.first(x), x.cos()) and first(x) is not None
    assert torch.equal(torch.ops.of_a_library.second(x), second(x))


def test_an_operator_that_is_gone_keeps_nothing():
    """Its functions go, its record serves the next operator of the same schema, which begins anew."""
    count = len(torch._C._operator_records())
    gone, numbers = [], []
    for times in range(5):
        with torch.library._scoped_library("going", "FRAGMENT") as library:
            library.define("twice(Tensor x) -> Tensor")
            x = torch.ones(2, requires_grad=True)
            with pytest.raises(NotImplementedError):
                torch.ops.going.twice(x)
            kernel = lambda x: x.detach() * 2  # noqa: E731
            derivative = lambda *args: args  # noqa: E731
            gone += [weakref.ref(kernel), weakref.ref(derivative)]
            key = "CompositeImplicitAutograd" if times % 2 else "CPU"
            library.impl("twice", kernel, key)
            library.impl("twice", lambda x: x.detach() * 4, "AutocastCPU")
            assert torch.ops.going.twice(x).tolist() == [2, 2]
            with torch.autocast("cpu"):
                assert torch.ops.going.twice(x).tolist() == [4, 4]
            numbers.append(library._op_defs["twice", ""][0])
            del kernel, derivative
        assert not hasattr(torch.ops.going, "twice")
    gc.collect()
    assert len(set(numbers)) == 1 and len(torch._C._operator_records()) <= count + 1
    assert [held for held in gone if held() is not None] == []


def test_functions_of_an_operator_that_is_gone_are_not_called():
    with torch.library._scoped_library("going", "FRAGMENT") as library:
        library.define("kept(Tensor x) -> Tensor")
        library.impl("kept", lambda x: x * 2, "CPU")
        held = torch.ops.going.kept.default
    with pytest.raises(NotImplementedError, match="going::kept"):
        held(torch.ones(2))


def test_kernels_may_come_before_their_operator():
    """Packages import the kernels of a processor before the module that defines what they are for."""
    torch.library.impl("early::twice", ["CPU"], lambda x: x * 2)
    torch.library.impl("early::never", "MPS", lambda x: x)
    torch.library.register_fake("early::twice", lambda x: torch.empty_like(x))
    torch.library.define("early::twice", "(Tensor x) -> Tensor")
    assert torch.ops.early.twice(torch.ones(2)).tolist() == [2.0, 2.0]
    assert torch.ops.early.twice(torch.ones(2, device="meta")).shape == (2,)
    with pytest.raises(AttributeError, match="never"):
        _ = torch.ops.early.never


def test_keys_of_libraries_are_checked():
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Nowhere"):
        library.Library("tests", "FRAGMENT", "Nowhere")
    kernels = library.Library("aten", "IMPL", "CPU")
    with pytest.raises(RuntimeError, match=r"\(Meta\) is inconsistent with the dispatch key .* \(CPU\)"):
        kernels.impl("sum", lambda *args: args[0], "Meta")
    kernels._destroy()


def test_the_name_of_a_definition_is_the_schemas(lib):
    assert lib.define("plain(Tensor x) -> Tensor") == "plain"
    assert lib.define("plain.other(Tensor x, int n) -> Tensor") == "plain.other"
    assert lib.define("tests::full(Tensor x) -> Tensor") == "tests::full"
