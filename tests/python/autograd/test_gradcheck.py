"""The Python side of autograd: backward and grad with their messages, switches, gradcheck, functional
derivatives."""

import pytest

import rushlight

autograd = rushlight.autograd


def _vector(lib, n=2, dtype="float64"):
    return lib.arange(1.0, n + 1, dtype=getattr(lib, dtype)).requires_grad_()


def _wrong(lib, factor=3.0, dtype=None):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a

        @staticmethod
        def backward(ctx, grad):
            (a,) = ctx.saved_tensors
            grad = grad * a * factor
            return grad if dtype is None else grad.to(dtype)

    return Square.apply


PASSING = {
    "product": lambda lib: (lambda a, b: a * b, (_vector(lib), _vector(lib))),
    "two outputs": lambda lib: (lambda a: (a * 2, a.exp()), (_vector(lib),)),
    "scalar": lambda lib: (lambda a: a.sum(), (_vector(lib),)),
    "constant input": lambda lib: (lambda a, b: a * b, (_vector(lib), lib.ones(2, dtype=lib.float64))),
    "complex": lambda lib: (
        lambda a: a * a.conj(),
        (_vector(lib).detach().to(lib.complex128).requires_grad_(),),
    ),
    "complex to real": lambda lib: (lambda a: (a * (1 + 2j)).abs(), (_vector(lib),)),
    "not contiguous": lambda lib: (
        lambda a: a.t() @ a,
        (_vector(lib, 6).detach().reshape(2, 3).t().requires_grad_(),),
    ),
    "integer output": lambda lib: (lambda a: (a * 2).to(lib.int64), (_vector(lib),)),
}


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("name", PASSING)
def test_gradcheck_passes(name, fast):
    function, inputs = PASSING[name](rushlight)
    assert autograd.gradcheck(function, inputs, fast_mode=fast)


@pytest.mark.parametrize("name", ["product", "two outputs", "scalar", "complex"])
def test_gradgradcheck_passes(name):
    function, inputs = PASSING[name](rushlight)
    assert autograd.gradgradcheck(function, inputs)


FAILING = {
    "wrong": lambda lib: lib.autograd.gradcheck(_wrong(lib), (_vector(lib),)),
    "detached": lambda lib: lib.autograd.gradcheck(lambda a: a.detach() * 2, (_vector(lib),)),
    "nothing to check": lambda lib: lib.autograd.gradcheck(lambda a: a, (lib.ones(2),)),
    "stride 0": lambda lib: lib.autograd.gradcheck(
        lambda a: a * 2, (lib.ones(1, dtype=lib.float64).expand(2).requires_grad_(),)
    ),
    "dtype": lambda lib: lib.autograd.gradcheck(
        _wrong(lib, 2.0, lib.float32), (_vector(lib),), check_grad_dtypes=True
    ),
}


@pytest.mark.parametrize("name", ["wrong", "detached", "nothing to check", "stride 0"])
def test_gradcheck_messages(torch, name):
    texts = []
    for lib in (rushlight, torch):
        with pytest.raises((RuntimeError, ValueError)) as info:
            FAILING[name](lib)
        texts.append((info.type.__name__, str(info.value)))
    assert texts[0] == texts[1]


def test_gradcheck_returns_false_when_asked():
    assert autograd.gradcheck(_wrong(rushlight), (_vector(rushlight),), raise_exception=False) is False
    assert (
        autograd.gradcheck(_wrong(rushlight), (_vector(rushlight),), raise_exception=False, fast_mode=True)
        is False
    )


def test_gradcheck_restores_inputs():
    x = _vector(rushlight)
    autograd.gradcheck(lambda a: a * a, (x,))
    assert x.tolist() == [1.0, 2.0] and x.grad is None


def test_nondeterminism_is_found():
    def noisy(lib):
        class Noisy(lib.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 1

            @staticmethod
            def backward(ctx, grad):
                return grad * (1 + 1e-6 * lib.rand(2, dtype=lib.float64))

        return Noisy.apply

    with pytest.raises(RuntimeError, match="not reentrant"):
        autograd.gradcheck(noisy(rushlight), (_vector(rushlight),))
    assert autograd.gradcheck(noisy(rushlight), (_vector(rushlight),), nondet_tol=1e-4)


MISTAKES = {
    "not scalar": lambda lib, x, y: y.backward(),
    "shape": lambda lib, x, y: y.backward(lib.ones(3)),
    "grad not scalar": lambda lib, x, y: lib.autograd.grad(y, x),
    "no requires_grad": lambda lib, x, y: lib.autograd.grad(y.sum(), lib.ones(1)),
    "unused": lambda lib, x, y: lib.autograd.grad(y.sum(), lib.ones(1, requires_grad=True)),
    "no graph": lambda lib, x, y: lib.ones(1).backward(),
    "no graph, grad": lambda lib, x, y: lib.autograd.grad(lib.ones(1), x),
    "empty inputs": lambda lib, x, y: lib.autograd.backward(y, inputs=[]),
    "empty grad inputs": lambda lib, x, y: lib.autograd.grad(y.sum(), []),
    "complex grad": lambda lib, x, y: lib.autograd.grad(y, x, lib.ones(2, dtype=lib.complex64)),
    "complex scalar": lambda lib, x, y: (y * 1j).sum().backward(),
    "grad_outputs type": lambda lib, x, y: lib.autograd.grad(y, x, ["a"]),
    "materialize": lambda lib, x, y: lib.autograd.grad(
        y.sum(), x, allow_unused=False, materialize_grads=True
    ),
    "twice": lambda lib, x, y: [(y * y).sum().backward() for _ in range(2)] or None,
}


@pytest.mark.parametrize("name", [n for n in MISTAKES if n != "twice"])
def test_messages_of_backward_and_grad(torch, name):
    texts = []
    for lib in (rushlight, torch):
        x = lib.ones(2, requires_grad=True)
        with pytest.raises((RuntimeError, TypeError, ValueError)) as info:
            MISTAKES[name](lib, x, x * 2)
        texts.append((info.type, str(info.value)))
    assert texts[0] == texts[1]


def test_second_backward_names_the_way_out(torch):
    texts = []
    for lib in (rushlight, torch):
        x = lib.ones(2, requires_grad=True)
        y = (x * x).sum()
        y.backward()
        with pytest.raises(RuntimeError) as info:
            y.backward()
        texts.append(str(info.value))
    assert texts[0] == texts[1]


def test_grad_forms():
    x, z = _vector(rushlight), _vector(rushlight)
    y = x * x
    assert autograd.grad(y.sum(), {"x": x}, retain_graph=True)["x"].tolist() == [2.0, 4.0]
    assert autograd.grad(y.sum(), z, allow_unused=True, retain_graph=True) == (None,)
    assert autograd.grad(y.sum(), z, materialize_grads=True, retain_graph=True)[0].tolist() == [0.0, 0.0]
    batch = rushlight.eye(2, dtype=rushlight.float64)
    (rows,) = autograd.grad(y, x, batch, is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]


def test_switches():
    x = rushlight.ones(1, requires_grad=True)
    with rushlight.no_grad():
        assert not (x * 2).requires_grad
        with rushlight.enable_grad():
            assert (x * 2).requires_grad
    with rushlight.set_grad_enabled(False):
        assert not rushlight.is_grad_enabled()
    rushlight.set_grad_enabled(False)
    assert not rushlight.is_grad_enabled()
    rushlight.set_grad_enabled(True)
    with rushlight.inference_mode():
        assert (x * 2).is_inference()
    assert rushlight.is_grad_enabled()
    with pytest.raises(TypeError, match="must be bool"):
        rushlight.set_grad_enabled(1)


def test_switches_decorate():
    @rushlight.no_grad
    def bare():
        return rushlight.is_grad_enabled()

    @rushlight.no_grad()
    def called(n):
        """doc"""
        return rushlight.is_grad_enabled(), n

    @rushlight.set_grad_enabled(False)
    def set_off():
        return rushlight.is_grad_enabled()

    @rushlight.inference_mode
    def inference():
        return rushlight.is_inference_mode_enabled()

    assert bare() is False and called(3) == (False, 3) and set_off() is False and inference() is True
    assert called.__doc__ == "doc" and rushlight.is_grad_enabled()


def test_decorated_generator_keeps_its_switch_to_itself():
    seen = []

    @rushlight.no_grad()
    def numbers():
        try:
            got = yield rushlight.is_grad_enabled()
            seen.append((got, rushlight.is_grad_enabled()))
            yield rushlight.is_grad_enabled()
        except KeyError:
            yield "caught"
        finally:
            seen.append(rushlight.is_grad_enabled())

    generator = numbers()
    assert next(generator) is False and rushlight.is_grad_enabled()
    assert generator.send("x") is False and rushlight.is_grad_enabled()
    assert generator.throw(KeyError()) == "caught"
    with pytest.raises(StopIteration):
        next(generator)
    assert seen == [("x", False), False] and rushlight.is_grad_enabled()


FUNCTIONAL = {
    "jacobian": lambda f, lib, x, v: f.jacobian(lambda a: a.exp() * a.sum(), x),
    "jacobian tuples": lambda f, lib, x, v: f.jacobian(lambda a, b: (a * b, b.sum()), (x, v)),
    "hessian": lambda f, lib, x, v: f.hessian(lambda a: (a**3).sum(), x),
    "hessian tuples": lambda f, lib, x, v: f.hessian(lambda a, b: (a * b * b).sum(), (x, v)),
    "vjp": lambda f, lib, x, v: f.vjp(lambda a: a**2, x, v),
    "jvp": lambda f, lib, x, v: f.jvp(lambda a: a**2 * a.sum(), x, v),
    "vhp": lambda f, lib, x, v: f.vhp(lambda a: (a**3).sum() * a[0], x, v),
    "hvp": lambda f, lib, x, v: f.hvp(lambda a: (a**3).sum() * a[0], x, v),
}

FUNCTIONAL_MISTAKES = {
    "vector size": lambda f, lib, x, v: f.vjp(lambda a: a, x, lib.ones(5)),
    "vector length": lambda f, lib, x, v: f.vjp(lambda a: a, x, (v, v)),
    "no vector": lambda f, lib, x, v: f.vjp(lambda a: a, x),
    "no vector, jvp": lambda f, lib, x, v: f.jvp(lambda a: a, x),
    "input type": lambda f, lib, x, v: f.jacobian(lambda a: a, 3),
    "not a number": lambda f, lib, x, v: f.hessian(lambda a: a, x),
    "strict": lambda f, lib, x, v: f.jacobian(lambda a: v * 2, x, strict=True),
    "strict input": lambda f, lib, x, v: f.jacobian(lambda a, b: a * 2, (x, v), strict=True),
    "strategy": lambda f, lib, x, v: f.jacobian(lambda a: a, x, strategy="other"),
}


def _tolist(value):
    return [_tolist(v) for v in value] if isinstance(value, tuple) else value.tolist()


def _leaves(value):
    if not isinstance(value, list):
        yield value
        return
    yield len(value)
    for v in value:
        yield from _leaves(v)


@pytest.mark.parametrize("name", FUNCTIONAL)
def test_functional(torch, name):
    results = []
    for lib in (rushlight, torch):
        x, v = _vector(lib, 3).detach(), _vector(lib, 3).detach() - 0.5
        results.append(_tolist(FUNCTIONAL[name](lib.autograd.functional, lib, x, v)))
    assert list(_leaves(results[0])) == pytest.approx(list(_leaves(results[1])), rel=1e-12)


@pytest.mark.parametrize("name", FUNCTIONAL_MISTAKES)
def test_functional_messages(torch, name):
    texts = []
    for lib in (rushlight, torch):
        x, v = _vector(lib, 3).detach(), _vector(lib, 3).detach()
        with pytest.raises(Exception) as info:
            FUNCTIONAL_MISTAKES[name](lib.autograd.functional, lib, x, v)
        texts.append((info.type, str(info.value)))
    assert texts[0] == texts[1]


def test_functional_create_graph():
    x = _vector(rushlight, 3)
    jacobian = autograd.functional.jacobian(lambda a: a**2, x, create_graph=True)
    jacobian.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


def test_once_differentiable():
    class Double(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        @autograd.function.once_differentiable
        def backward(ctx, grad):
            return grad * 2

    x = _vector(rushlight)
    (grad,) = autograd.grad((Double.apply(x) * x).sum(), x, create_graph=True)
    assert grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function"):
        autograd.grad(grad.sum(), x)


@pytest.mark.parametrize("masked", [True, False])
@pytest.mark.parametrize("fast_mode", [True, False])
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_sparse_inputs(layout, fast_mode, masked):
    blocks = (2, 2) if "bs" in layout else None
    dense = rushlight.rand(4, 4, dtype=rushlight.float64)
    x = dense.to_sparse(layout=getattr(rushlight, layout), blocksize=blocks).requires_grad_()
    assert autograd.gradcheck(lambda s: s.sum(), x, masked=masked, fast_mode=fast_mode)


def test_sparse_inputs_beside_dense_ones():
    a = rushlight.rand(2, 2, dtype=rushlight.float64, requires_grad=True)
    b = rushlight.eye(2, dtype=rushlight.float64).to_sparse().requires_grad_()
    assert autograd.gradcheck(lambda x, y: x * y.coalesce().to_dense(), (a, b), masked=True)

    class Wrong(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.to_dense() * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.to_sparse() * 3

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        autograd.gradcheck(Wrong.apply, b, masked=True)
    with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
        autograd.gradcheck(lambda y: y * y, b)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_outputs_must_not_change_shape_or_type_with_the_values(fast_mode):
    x = rushlight.ones(1, dtype=rushlight.float64, requires_grad=True)

    def doubled(x):
        return rushlight.cat([x, x]) if bool((x >= 1).all()) else x * 1

    def narrowed(x):
        return x.float() if bool((x >= 1).all()) else x * 1

    for function, what in ((doubled, "shape"), (narrowed, "dtype")):
        with pytest.raises(AssertionError, match=f"same {what} when inputs are perturbed"):
            autograd.gradcheck(function, (x,), fast_mode=fast_mode)


class Unsteady(rushlight.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad * (1 + 1e-6 * rushlight.rand_like(grad))


@pytest.mark.parametrize("fast_mode", [False, True])
def test_backward_passes_must_repeat(fast_mode):
    x = rushlight.ones(3, dtype=rushlight.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Backward is not reentrant"):
        autograd.gradcheck(Unsteady.apply, (x,), fast_mode=fast_mode)
    assert autograd.gradcheck(Unsteady.apply, (x,), fast_mode=fast_mode, nondet_tol=1e-4)


def test_a_wrong_backward_pass_is_told_before_a_wrong_tangent():
    class Wrong(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, tangent):
            raise RuntimeError("forward")

        @staticmethod
        def backward(ctx, grad):
            raise RuntimeError("backward")

    x = rushlight.ones(2, dtype=rushlight.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="^backward"):
        autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True)
    with pytest.raises(RuntimeError, match="^forward"):
        autograd.gradcheck(Wrong.apply, (x,), check_forward_ad=True, check_backward_ad=False)


def test_what_runs_not_under_vmap_fails_the_batched_check():
    class NoBatches(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2 if grad.sum().item() is not None else None

    x = rushlight.ones(2, dtype=rushlight.float64, requires_grad=True)
    assert autograd.gradcheck(NoBatches.apply, (x,))
    with pytest.raises(RuntimeError, match="failed while testing batched gradient"):
        autograd.gradcheck(NoBatches.apply, (x,), check_batched_grad=True)


def test_jacobians_by_the_older_functions():
    from rushlight.autograd.gradcheck import get_analytical_jacobian, get_numerical_jacobian

    a = rushlight.rand(2, dtype=rushlight.float64, requires_grad=True)
    b = rushlight.rand(2, dtype=rushlight.float64, requires_grad=True)
    twice, once = 2 * rushlight.eye(2, dtype=rushlight.float64), rushlight.eye(2, dtype=rushlight.float64)

    def f(values):
        return 2 * values[0] + values[1], values[0] + 2 * values[1]

    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part"):
        both = get_numerical_jacobian(f, (a, b), eps=1e-6)
    with pytest.warns(FutureWarning, match="private API"):
        (one,) = get_numerical_jacobian(f, (a, b), target=b, eps=1e-6)
    for found, expected in ((both[0], twice), (both[1], once), (one, once)):
        rushlight.testing.assert_close(found, expected)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part"):
        found, reentrant, *_ = get_analytical_jacobian((a, b), f((a, b))[0])
    assert reentrant
    rushlight.testing.assert_close(found[0], twice)
    for function in (get_numerical_jacobian, get_analytical_jacobian):
        with pytest.warns(FutureWarning), pytest.raises(ValueError, match="Expected grad_out to be 1.0"):
            function(f, (a, b), grad_out=2.0)


def test_a_batch_of_sparse_gradients_is_refused():
    x = rushlight.rand(4, dtype=rushlight.float64, requires_grad=True).to_sparse()
    with pytest.raises(RuntimeError, match="sparse tensors have no dimension of examples"):
        rushlight.autograd.grad(
            x.to_dense(), x, rushlight.zeros(2, 4, dtype=rushlight.float64), is_grads_batched=True
        )
    with pytest.raises(RuntimeError, match="while testing batched gradient"):
        autograd.gradcheck(lambda x: x.to_dense(), (x,), masked=True, check_batched_grad=True)


def test_missing_gradients_that_are_not_handled_are_warned_of():
    def raises(x):
        y = x.clone()

        def hook(grad):
            if grad is None:
                raise RuntimeError("no gradient")

        y.register_hook(hook)
        return y

    x = rushlight.ones(1, dtype=rushlight.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        assert not autograd.gradcheck(raises, (x,), raise_exception=False)


def test_forward_mode_is_run_once_for_all_outputs():
    calls = []

    class Two(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y * 2

        @staticmethod
        def jvp(ctx, x, y):
            calls.append(1)
            return x.clone(), y * 2

    x, y = (rushlight.rand(1, dtype=rushlight.float64, requires_grad=True) for _ in range(2))
    options = {"check_forward_ad": True, "check_backward_ad": False}
    assert autograd.gradcheck(Two.apply, (x, y), check_undefined_grad=False, **options)
    assert len(calls) == 2
    assert autograd.gradcheck(Two.apply, (x, y), **options)
    assert len(calls) == 8  # as often again, and twice for each input with and without its tangent


def test_fast_mode_leaves_the_random_state_alone():
    layer = rushlight.nn.RReLU(0.1, 0.9)
    x = -rushlight.rand(3, 4, dtype=rushlight.float64) - 0.1

    def function(x):
        state = rushlight.get_rng_state()
        try:
            return layer(x)
        finally:
            rushlight.set_rng_state(state)

    before = rushlight.get_rng_state()
    assert autograd.gradcheck(function, (x.requires_grad_(),), fast_mode=True)
    assert rushlight.equal(rushlight.get_rng_state(), before)


def test_forward_mode_runs_on_inputs_that_require_no_gradient():
    seen = []

    class Identity(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(x.requires_grad)
            return x.clone()

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.clone()

    x = rushlight.rand(1, dtype=rushlight.float64, requires_grad=True)
    assert autograd.gradcheck(Identity.apply, (x,), check_forward_ad=True, check_backward_ad=False)
    assert seen[0] is True
    assert False in seen


def test_no_tangent_must_be_a_tangent_of_zeros():
    class Wrong(rushlight.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx, a, b):
            return (
                a + b if a is not None and b is not None else rushlight.ones(1, dtype=rushlight.float64) * 9
            )

    inputs = tuple(rushlight.rand(1, dtype=rushlight.float64, requires_grad=True) for _ in range(2))
    with pytest.raises(RuntimeError, match="Mismatch in tangent values"):
        autograd.gradcheck(Wrong.apply, inputs, check_forward_ad=True, check_backward_ad=False)


def test_jacobians_by_finite_differences_have_pytorchs_private_name():
    from rushlight.autograd.gradcheck import _get_numerical_jacobian, _iter_tensors

    x, y = (rushlight.rand(2, dtype=rushlight.float64, requires_grad=True) for _ in range(2))
    of_x, of_y = _get_numerical_jacobian(lambda a, b: (a * b, a.sum()), (x, y), eps=1e-6)
    rushlight.testing.assert_close(of_x[0], y.detach().diag())
    rushlight.testing.assert_close(of_x[1], rushlight.ones(2, 1, dtype=rushlight.float64))
    rushlight.testing.assert_close(of_y[0], x.detach().diag())
    assert _get_numerical_jacobian(lambda a: a * y, x, target=y)[0][0].shape == (2, 2)
    assert list(map(id, _iter_tensors([x, (y, 1)]))) == [id(x), id(y)]
    assert list(_iter_tensors([x.detach()], True)) == []
