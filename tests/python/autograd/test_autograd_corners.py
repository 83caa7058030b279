"""Rarer behaviour of autograd: callbacks, defaults of functions, strict derivatives, warnings."""

import copy
import gc
import inspect
import pickle
import warnings
import weakref

import pytest

import rushlight as torch
from rushlight.autograd import Function, Variable, functional


class Cube(Function):
    @staticmethod
    def forward(x, power=3):
        return x**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, ctx.power = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x ** (ctx.power - 1), None


def test_setup_context_sees_defaults():
    x = torch.tensor([2.0], requires_grad=True)
    Cube.apply(x).backward()
    Cube.apply(x, 2).backward()
    assert x.grad.tolist() == [16.0]


def test_functions_are_not_instantiated():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        function = Cube()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        function(torch.ones(1))


def test_callbacks_run_when_the_pass_ends():
    events = []

    class Noting(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            Variable._execution_engine.queue_callback(lambda: events.append("end"))
            events.append("node")
            return grad

    x = torch.ones(2, requires_grad=True)
    Noting.apply(Noting.apply(x)).sum().backward()
    assert events == ["node", "node", "end", "end"]
    with pytest.raises(RuntimeError, match="only be installed during backward"):
        Variable._execution_engine.queue_callback(print)


def test_grad_of_a_tensor_that_keeps_none_warns():
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="The .grad attribute of a Tensor that is not a leaf"):
        assert (x * 2).grad is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = x * 2
        y.retain_grad()
        assert y.grad is None and x.grad is None and torch.ones(1).grad is None


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: functional.hvp(lambda a: a.sum(), x, (x, 2)), TypeError, "The v given to hvp must be"),
        (
            lambda x: functional.hessian(lambda a: 1, x),
            TypeError,
            "The outputs of the user-provided function",
        ),
        (
            lambda x: functional.hessian(lambda a: a.detach().sum(), x, strict=True),
            RuntimeError,
            "Output 0 of the user-provided function does not require",
        ),
        (
            lambda x: functional.hessian(lambda a: a.sum(), x, strict=True),
            RuntimeError,
            "jacobian of the user-provided function with respect to input 0 is",
        ),
        (
            lambda x: functional.vhp(lambda a: (3 * a).sum(), x, x, strict=True),
            RuntimeError,
            "jacobian of the user-provided function with respect to input 0 is",
        ),
        (
            lambda x: functional.jvp(
                lambda a: a.clone(), x.requires_grad_(), torch.ones(3), create_graph=True, strict=True
            ),
            RuntimeError,
            "jacobian of the user-provided function is independent of input 0",
        ),
    ],
)
def test_strict_derivatives(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.rand(3))


def test_create_graph_without_requires_grad():
    hessian = functional.hessian(lambda a: a.pow(3).sum(), torch.rand(2), create_graph=True)
    assert hessian.grad_fn is not None
    with torch.no_grad():
        assert functional.hessian(lambda a: a.pow(3).sum(), torch.rand(2)).grad_fn is None


def test_jacobian_of_numbers():
    x, y = torch.tensor(2.0), torch.tensor(3.0)
    for strategy in ("reverse-mode", "forward-mode"):
        rows = functional.jacobian(lambda a, b: a * b, (x, y), vectorize=True, strategy=strategy)
        assert [r.item() for r in rows] == [3.0, 2.0]


def test_gradgradcheck_by_forward_mode():
    x = torch.rand(1, 4, 4, dtype=torch.float64, requires_grad=True)
    fold = torch.nn.functional.fold
    assert torch.autograd.gradgradcheck(
        lambda a: fold(a * a, (3, 3), (2, 2)), (x,), check_fwd_over_rev=True, check_rev_over_rev=False
    )


def test_extreme_logits_of_the_continuous_bernoulli():
    for logits, value in ((1e38, 1.0), (-1e38, 0.0)):
        d = torch.distributions.ContinuousBernoulli(logits=torch.tensor(logits), validate_args=False)
        assert d.log_prob(torch.tensor(value)).item() == pytest.approx(2.7690, rel=1e-4)


def test_as_strided_of_an_expanded_tensor():
    x = torch.rand(5, dtype=torch.float64, requires_grad=True)
    check = torch.autograd.gradcheck
    assert check(lambda a: a.expand(5, 5).as_strided([5, 5], [0, 1], 0), (x,))
    assert check(lambda a: a.unfold(0, 3, 1).as_strided([2, 3], [1, 1], 1), (x,))
    assert torch.autograd.gradgradcheck(lambda a: (a * a).expand(2, 5).as_strided([3, 2], [1, 2]) ** 2, (x,))


def test_hooks_outlive_their_tensor_while_the_graph_lives():
    """The collector finds a tensor and its hook in a cycle of their own; the graph still needs the hook."""
    seen = []

    def result():
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda grad: seen.append((y.shape, grad.sum().item())))
        return x, (y * 3).sum()

    x, loss = result()
    gc.collect()
    loss.backward()
    assert seen == [((2,), 6.0)] and x.grad.tolist() == [6, 6]


def test_a_cycle_through_a_hook_is_collected_with_its_graph():
    class Witness:
        pass

    witness = Witness()
    y = torch.ones(2, requires_grad=True) * 2
    y.register_hook(lambda grad, witness=witness, y=y: None)
    kept = weakref.ref(witness)
    del y, witness
    gc.collect()
    assert kept() is None


def test_nodes_that_are_registered_by_hand():
    functions = torch._C._functions
    x = torch.ones(1, requires_grad=True)
    assert isinstance((x * x).grad_fn.next_functions[0][0], functions.AccumulateGrad)
    functions.UndefinedGrad()(x * 2).backward()
    assert x.grad is None
    with pytest.raises(RuntimeError, match="too late"):
        functions.DelayedError("too late", 1)(x * 2).backward()
    assert torch._C._autograd._saved_tensors_hooks_is_enabled()
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        assert not torch._C._autograd._saved_tensors_hooks_is_enabled()
    with pytest.raises(RuntimeError):
        del x.data


def test_the_collector_leaves_attributes_of_what_a_graph_holds():
    class Marked(torch.Tensor):
        __slots__ = ("mark",)

    for kind in (torch.Tensor, Marked):
        saved = torch.rand(2, requires_grad=True).clone().as_subclass(kind)
        saved.note = saved.mark = "kept"
        with torch._C.DisableTorchFunctionSubclass():  # it would hand out another view
            result = torch.sin(saved)
        cycle = [saved]
        cycle.append(cycle)
        dead = weakref.ref(saved)
        del saved, cycle
        gc.collect()
        found = result.grad_fn._saved_self
        assert type(found) is kind and found.note == found.mark == "kept"
        del found, result
        gc.collect()
        assert dead() is None


def test_the_collector_leaves_cycles_through_what_core_holds():
    """A parameter that knows its module, held by a graph alone; a gradient that knows another tensor."""
    layer = torch.nn.Linear(2, 2)
    layer.weight.owner = layer
    loss = (layer.weight * 2).sum()
    x, y, holder = torch.empty(2), torch.empty(2), torch.empty(2)
    x.other, y.other, holder.grad = y, x, x
    gone = [weakref.ref(layer), weakref.ref(y)]
    del layer, x, y
    gc.collect()
    weight = loss.grad_fn.next_functions[0][0].next_functions[0][0].variable
    assert weight.owner.weight is weight and holder.grad.other.other is holder.grad
    del weight, loss, holder
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_loading_leaves_no_cycles():
    model = torch.nn.LSTM(2, 2)
    state = model.state_dict()
    gc.collect()
    model.load_state_dict(state)
    assert gc.collect() == 0


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8", "bool"])
def test_integers_written_from_a_differentiable_tensor_have_no_gradient(dtype):
    dtype = getattr(torch, dtype)
    x = torch.tensor([1.0, 0.0, 1.0], requires_grad=True)
    writes = [
        lambda t: t.copy_(x),
        lambda t: t[0].copy_(x),
        lambda t: t.diagonal().copy_(x),
        lambda t: t.__setitem__(0, x),
        lambda t: t.__setitem__((slice(None), 1), x[0]),
        lambda t: t[1].fill_(x[0]),
        lambda t: t[1].masked_fill_(x.detach().bool(), x[0]),
    ]
    for i, write in enumerate(writes):
        target = torch.zeros(3, 3, dtype=dtype)
        version = target._version
        write(target)
        assert target.any(), i
        assert target._version > version, i
        assert not target.requires_grad and target.is_leaf and target.grad_fn is None, i
        assert not target[0].requires_grad, i


def test_scattering_a_differentiable_source_into_integers():
    x = torch.ones(3, requires_grad=True)
    for result in (
        torch.zeros(3, 3, dtype=torch.int64).diagonal_scatter(x),
        torch.zeros(3, 3, dtype=torch.int64).select_scatter(x, 0, 0),
        torch.zeros(3, dtype=torch.bool).slice_scatter(x, 0, 0, 3),
        torch.zeros(3, dtype=torch.int64).as_strided_scatter(x, (3,), (1,)),
    ):
        assert not result.requires_grad
        assert result.sum() == 3


def test_layouts_of_gradients():
    def same_layout(**options):
        p = torch.ones(2, 3, 4).permute(2, 0, 1).requires_grad_()
        loss = (p.contiguous() * torch.ones(4, 2, 3)).exp().sum()
        if options:
            with torch.autograd.enforce_grad_layout_policy(**options):
                loss.backward()
        else:
            loss.backward()
        return p.grad.stride() == p.stride()

    assert same_layout() and same_layout(enable=True)
    assert not same_layout(enable=False)
    assert torch._C._is_grad_layout_enforcement_enabled()


def test_scopes_are_copied_and_pickled():
    for scope in (
        torch.no_grad(), torch.enable_grad(), torch.inference_mode(False), torch.set_grad_enabled(True),
    ):  # fmt: skip
        for made in copy.copy(scope), copy.deepcopy(scope), pickle.loads(pickle.dumps(scope)):
            assert type(made) is type(scope) and torch.is_grad_enabled()
            with made:
                assert torch.is_grad_enabled() == (not isinstance(scope, torch.no_grad))
            assert torch.is_grad_enabled()


@pytest.mark.parametrize("power", [2, 2.0, 3, 1, 0])
def test_derivatives_of_powers_go_on_to_where_they_are_zero(power):
    def program(t):
        x = t.tensor([0.5, -2.0, 0.0], requires_grad=True)
        y, found = x**power, []
        for _ in range(5):
            try:
                (y,) = t.autograd.grad(y.sum(), x, create_graph=True)
            except RuntimeError as error:
                found.append(str(error).split(" and ")[0])
                break
            found.append(y.tolist())
        return found

    assert program(torch) == program(pytest.importorskip("torch"))


@pytest.mark.parametrize("name", ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode"])
def test_signatures_of_switches(name):
    oracle = pytest.importorskip("torch")
    ours, theirs = (inspect.signature(getattr(t, name)).parameters.values() for t in (torch, oracle))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]
