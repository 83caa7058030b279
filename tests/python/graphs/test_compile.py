"""`torch.compile`: the interface, back ends, and what it says of itself."""

import copy
import functools
import gc
import inspect
import logging
import pickle
import types
import weakref

import pytest

import rushlight as torch
from rushlight._inductor import config as inductor_config

nn, F = torch.nn, torch.nn.functional
X = torch.arange(12.0).view(3, 4) - 5


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch):
    monkeypatch.setattr(inductor_config, "measure", False)
    torch._dynamo.reset()


def test_forms_of_the_decorator():
    @torch.compile
    def f(x):
        "Doubles."
        return x * 2

    @torch.compile(fullgraph=True, dynamic=True, mode="max-autotune")
    def g(x):
        return x * 2

    assert torch.equal(f(X), g(X)) and f.__doc__ == "Doubles." and f.__name__ == "f"
    assert torch.compile(f)._torchdynamo_orig_callable is f._torchdynamo_orig_callable

    def h(x):
        return x

    assert torch.compile(h, disable=True) is h and torch.compile(disable=True)(h) is h
    with pytest.raises(RuntimeError, match="Unrecognized mode"):
        torch.compile(h, mode="fastest")
    with pytest.raises(RuntimeError, match="can't be specified at the same time"):
        torch.compile(h, mode="default", options={"measure": True})
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="available backends"):
        torch.compile(h, backend="nothing")
    with pytest.raises(AssertionError, match="callable function is expected"):
        torch.compile(3)


def test_optimized_module():
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    model.label = "a"
    fast = torch.compile(model)
    assert isinstance(fast, torch._dynamo.OptimizedModule) and fast._orig_mod is model
    assert list(fast.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    assert list(dict(fast.named_parameters())) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
    fast.label = "b"
    assert model.label == fast.label == "b" and len(fast) == 2 and fast[0] is model[0]
    assert not fast.eval().training and not model.training and not model[1].training
    fast.training = True
    assert model.training
    fast.eval()
    expected = model(X)
    assert torch.equal(fast(X), expected)
    for other in (copy.deepcopy(fast), pickle.loads(pickle.dumps(fast))):
        assert torch.equal(other(X), expected) and other._orig_mod is not model
    fast.load_state_dict(fast.state_dict())
    assert torch.equal(torch.compile(fast)(X), expected)
    with pytest.raises(AttributeError):
        fast.nothing  # noqa: B018


def test_module_compile_in_place():
    model = nn.Linear(4, 4)
    expected = model(X)
    model.compile()
    assert torch.equal(model(X), expected) and torch.equal(model(X), expected)
    assert list(model.state_dict()) == ["weight", "bias"]


def test_options_are_checked():
    model = nn.Linear(4, 2)
    told = (
        "the options 'epilogue_fusion', 'max-autotune' have no effect: .* has: batch_products, .*cudagraphs$"
    )
    with pytest.warns(UserWarning, match=told):
        compiled = torch.compile(
            model, options={"epilogue_fusion": True, "max-autotune": True, "freezing": True}
        )
    assert torch.equal(compiled(X), model(X))
    with pytest.raises(RuntimeError, match="Unexpected type of attr freezing, got str should be bool"):
        torch.compile(model, options={"freezing": "yes"})
    with pytest.raises(RuntimeError, match="Unexpected type of attr max_autotune, got int should be bool"):
        torch.compile(model, options={"max_autotune": 1})
    with pytest.raises(RuntimeError, match="Unexpected optimization option typo, known options are .*'freez"):
        torch.compile(model, options={"typo": 1})
    assert {"freezing", "triton.cudagraphs"} <= set(torch._inductor.list_options())
    assert "sys" not in torch._inductor.list_options()


def test_settings_are_those_of_pytorch():
    config = torch._inductor.config
    with config.patch({"cpp.threads": 3}):
        config.trace.enabled = True
        assert config.cpp.threads == 3 and config.trace.enabled
    config.trace.enabled = False
    assert config.cpp.threads == -1
    for change in (lambda: setattr(config, "typo", 1), lambda: config.patch(typo=1), lambda: config.typo):
        with pytest.raises(AttributeError):
            change()
    theirs = pytest.importorskip("torch")._inductor.config.get_config_copy()
    ours = config.get_config_copy()
    assert {n for n in theirs if not n.startswith("_") and n != "TYPE_CHECKING"} <= set(ours)
    assert set(ours) - set(theirs) <= config.EFFECTIVE
    fixed = {n for n in ours if config.get_type(n) in (bool, int, str, float)} - config.EFFECTIVE
    assert len(fixed) > 400 and all(type(theirs[n]) is config.get_type(n) for n in fixed)


def test_backends(monkeypatch):
    seen = []

    def backend(module, example_inputs, **options):
        seen.append((module, example_inputs, options))
        return module.forward

    model = nn.Linear(4, 2)
    fast = torch.compile(model, backend=backend, options={"level": 3})
    x = X.clone().requires_grad_()
    fast(x).sum().backward()
    module, inputs, options = seen[0]
    assert isinstance(module, torch.fx.GraphModule) and options == {"options": {"level": 3}}
    assert [tuple(t.shape) for t in inputs] == [(3, 4), (2, 4), (2,)] and inputs[1] is model.weight
    assert torch.equal(x.grad, model.weight.detach().sum(0).expand(3, 4)) and model.weight.grad is not None
    for name in ("eager", "aot_eager", "inductor"):
        assert torch.equal(torch.compile(model, backend=name)(X), model(X))
    assert "inductor" in torch.compiler.list_backends() and "eager" not in torch.compiler.list_backends()
    assert "eager" in torch._dynamo.list_backends(None)

    @torch._dynamo.register_backend(name="mine")
    def mine(module, example_inputs):
        return lambda *inputs: (torch.zeros(1),)

    monkeypatch.setitem(torch._dynamo.backends.registry._backends, "mine", mine)
    assert torch.compile(lambda x: x + 1, backend="mine")(X).tolist() == [0.0]

    def broken(module, example_inputs):
        raise ValueError("no")

    with pytest.raises(
        torch._dynamo.exc.BackendCompilerFailed, match="backend='broken' raised:\nValueError: no"
    ):
        torch.compile(lambda x: x + 1, backend=broken)(X)


def test_what_is_compiling():
    def f(x):
        return x + (10 if torch.compiler.is_compiling() else 1)

    assert torch.equal(torch.compile(f, fullgraph=True)(X), X + 10) and torch.equal(f(X), X + 1)


@torch.compile
def halved(x, by=2):
    "Halves."
    return x / by


def test_a_compiled_function_passes_for_the_function():
    assert inspect.isfunction(halved) and inspect.signature(halved).parameters["by"].default == 2
    assert (halved.__name__, halved.__doc__, halved.__module__) == ("halved", "Halves.", __name__)
    assert pickle.loads(pickle.dumps(halved)) is copy.deepcopy(halved) is weakref.ref(halved)() is halved

    class Scaled:
        factor = 3

        def __call__(self, x):
            return x * 2

        @torch.compile
        def times(self, x):
            "Multiplies."
            return x * self.factor

    assert torch.equal(Scaled().times(X), X * 3) and Scaled.times.__doc__ == "Multiplies."
    called = torch.compile(Scaled())
    assert torch.equal(called(X), X * 2) and called.__name__ == Scaled.__qualname__
    called.__doc__ = "Doubles."
    assert called.__doc__ == "Doubles." and called.__wrapped__.__doc__ is None


def plain(x, by=2, *, more=1):
    "Adds."
    return x + by * more


def test_a_program_that_does_not_pay_is_the_function_again():
    f = torch.compile(plain)
    state = f._compiled
    assert type(f) is not types.FunctionType and isinstance(f, types.FunctionType)
    f.mark, alive = 1, weakref.ref(f)
    for _ in range(2):
        assert torch.equal(f(X, more=3), X + 6)
        state.give_up("a test")
        assert type(f) is types.FunctionType and f.__code__ is plain.__code__
        assert torch.equal(f(X), X + 2) and torch.equal(f(X, 3, more=2), X + 6)
        assert f.__wrapped__ is plain and f.__doc__ == "Adds." and f.mark == 1 and alive() is f
        assert f.__kwdefaults__ == {"more": 1} and inspect.signature(f) == inspect.signature(plain)
        torch._dynamo.reset()
        assert type(f) is not types.FunctionType and not state.entries
    f(X)
    assert state.entries
    del f, state
    gc.collect()
    assert alive() is None


def test_modules_and_callables_that_do_not_pay_pass_calls_on():
    seen = []

    class Layer(torch.nn.Module):
        def forward(self, x):
            return x + 1

    layer = Layer()
    module, again = torch.compile(layer), Layer()
    again.compile()
    for give_up in (module._compiled.give_up, again._compiled_call_impl._compiled.give_up):
        give_up("a test")
    assert torch.equal(module(X), X + 1) and torch.equal(again(X), X + 1)
    handles = [m.register_forward_hook(lambda m, args, out: seen.append(m)) for m in (module, layer, again)]
    module(X), again(X)
    assert seen == [layer, module, again]
    for handle in handles:
        handle.remove()
    module(X), again(X)
    assert len(seen) == 3
    torch._dynamo.reset()
    assert torch.equal(module(X), X + 1) and module._compiled.entries
    with pytest.raises(TypeError, match="Layer"):
        module()

    front = torch.compile(torch.relu)
    front._compiled.give_up("a test")
    assert torch.equal(front(X), torch.relu(X)) and torch.equal(front(input=X), torch.relu(X))


def test_a_compiled_function_that_holds_itself_is_collected():
    compiled = torch.compile(lambda x: x + 1)
    compiled(X)
    compiled.again, alive = compiled, weakref.ref(compiled)
    del compiled
    gc.collect()
    assert alive() is None


def test_disabled_functions():
    @torch.compiler.disable
    def outside(x):
        return float(x.sum())

    def f(x):
        return x + outside(x)

    fast = torch.compile(f)
    assert torch.equal(fast(X), f(X))
    with pytest.raises(torch._dynamo.exc.Unsupported, match="outside is marked with compiler.disable"):
        torch.compile(f, fullgraph=True)(X)


def test_compiled_functions_in_compiled_functions():
    inner = torch.compile(lambda x: x * 3)
    outer = torch.compile(lambda x: inner(x) + 1)
    for _ in range(3):
        assert torch.equal(outer(X), X * 3 + 1)


def test_stances():
    f = torch.compile(lambda x: x + 1)
    f(X)
    with torch.compiler.set_stance("fail_on_recompile"):
        f(X)
        with pytest.raises(RuntimeError, match="would be compiled again"):
            f(X[:2])
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(f(X[:2]), X[:2] + 1)
    assert len(f._compiled.entries) == 1


def test_nothing_is_compiled_where_all_shall_run_as_written():
    @torch.compile(fullgraph=True, backend="eager")
    def f(x):
        return x + 1 if torch.compiler.is_compiling() else x - 1

    for _ in range(3):
        assert torch.equal(f(X), X + 1)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(f(X), X - 1)
    assert torch.equal(f(X), X + 1) and len(f._compiled.entries) == 1


def test_custom_operators_are_part_of_graphs():
    @torch.library.custom_op("compiled_tests::rows", mutates_args=())
    def rows(x: torch.Tensor, count: int) -> torch.Tensor:
        return torch.tensor(x.tolist()[:count])

    @rows.register_fake
    def _(x, count):
        return x.new_empty(count, *x.shape[1:])

    @torch.library.custom_op("compiled_tests::write", mutates_args={"x"})
    def write(x: torch.Tensor) -> None:
        x.zero_()

    f = torch.compile(lambda x: rows(x * 2, 2).sin() + 1, fullgraph=True)
    for x in (X, X + 1):
        assert torch.equal(f(x), (x[:2] * 2).sin() + 1)
    assert len(f._compiled.entries) == 1
    x = X.clone()
    torch.compile(write, fullgraph=True)(x)
    assert not x.any()


def test_explain_and_logs(caplog, monkeypatch):
    # PyTorch itself, where another test imported it, sets levels and keeps messages from the root.
    for name in ("torch", "torch.__graph_breaks", "torch.__recompiles"):
        monkeypatch.setattr(logging.getLogger(name), "propagate", True)
        caplog.set_level(logging.INFO, logger=name)

    def f(x):
        return (x + 1).relu()

    told = torch._dynamo.explain(f)(X)
    assert (told.graph_count, told.graph_break_count, told.op_count) == (1, 0, 2)

    def g(x):
        return x if x.sum() > 0 else -x

    told = torch._dynamo.explain(g)(X)
    assert told.graph_count == 0 and "test_compile.py" in str(told)
    with caplog.at_level(logging.INFO):
        torch.compile(g)(X)
        fast = torch.compile(f)
        fast(X), fast(X[:2])
    messages = [r.getMessage() for r in caplog.records]
    assert any("runs as it is written: the program asks for the value of a tensor" in m for m in messages)
    assert any("is compiled again: argument 0 was float32[3, 4]" in m for m in messages)


def test_what_does_not_pay_is_given_up(monkeypatch):
    monkeypatch.setattr(inductor_config, "measure", True)
    import time

    def slow(module, example_inputs):
        def run(*inputs):
            time.sleep(0.002)
            return module.forward(*inputs)

        return run

    slow.opts_out = True
    model = nn.Linear(4, 4)
    fast = torch.compile(model, backend=slow)
    for _ in range(100):
        assert torch.equal(fast(X), model(X))
    assert "takes" in fast.__dict__["_compiled"].reason and fast.__dict__["forward"] is model


@pytest.mark.parametrize("training", [False, True])
def test_training_gives_the_same_numbers(training):
    def make():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(72, 16), nn.GELU(), nn.Dropout(0.3), nn.LayerNorm(16), nn.Linear(16, 4),
        ).train(training)  # fmt: skip

    models = make(), make()
    runs = torch.compile(models[0]), models[1]
    losses = [[], []]
    for i, (model, run) in enumerate(zip(models, runs)):
        optimizer = torch.optim.Adam(model.parameters())
        torch.manual_seed(1)
        for _ in range(4):
            loss = run(torch.randn(5, 3, 8, 8)).logsumexp(1).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[i].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for a, b in zip(models[0].state_dict().values(), models[1].state_dict().values()):
        torch.testing.assert_close(a, b)


def test_double_backward_and_hooks():
    def f(x, w):
        return (x * w).tanh().sum()

    fast = torch.compile(f)
    x, w = X.clone().requires_grad_(), torch.ones(4, requires_grad=True)
    for run in (f, fast, fast):
        (g,) = torch.autograd.grad(run(x, w), x, create_graph=True)
        second = torch.autograd.grad(g.square().sum(), w)[0]
        if run is f:
            expected = second
        torch.testing.assert_close(second, expected)


def test_functions_of_autograd_run_as_they_are():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 100

    fast = torch.compile(lambda x: Double.apply(x) + 1)
    for _ in range(3):
        x = X.clone().requires_grad_()
        fast(x).sum().backward()
        assert x.grad.unique().tolist() == [100.0]


def test_no_grad_inside():
    def f(x):
        with torch.no_grad():
            y = x * 2
        return x * y + x.detach()

    fast = torch.compile(f)
    for _ in range(3):
        x = X.clone().requires_grad_()
        fast(x).sum().backward()
        assert torch.equal(x.grad, X * 2)


def test_compiled_functions_can_be_wrapped():
    """`functools.wraps` writes what a compiled function stands for, as torchvision does."""

    def original(x):
        return x + 1

    def outer(x):
        """Outer."""
        return original(x)

    compiled = functools.wraps(outer)(torch.compile(original))
    assert compiled.__wrapped__ is outer and compiled.__name__ == "outer" and compiled.__doc__ == "Outer."
    assert compiled(torch.ones(1)).item() == 2
