"""Views whose conjugation or negation is pending, written through within every transform: as without one."""

import pytest
from function_module import FunctionModule

import rushlight
from rushlight._command.names import is_aliased
from rushlight._subclasses.fake_tensor import FakeTensorMode
from rushlight.export import load_file, save_file
from rushlight.func import functionalize, grad, jvp, vjp, vmap
from rushlight.fx.experimental.proxy_tensor import make_fx
from rushlight.utils._python_dispatch import TorchDispatchMode

FORMS = {
    "conj": lambda x: x.conj(),
    "_conj": lambda x: x._conj(),
    "_neg_view": lambda x: x._neg_view(),
    "mH": lambda x: x.mH,
    "H": lambda x: x.H,
    "adjoint": lambda x: x.adjoint(),
    "transposed": lambda x: x.conj().T,
    "imaginary part": lambda x: x.conj().imag,
    "real part": lambda x: x.conj().real,
    "row": lambda x: x.conj()[0],
    "conjugate of a row": lambda x: x[0].conj(),
    "one of unbind": lambda x: x.conj().unbind(0)[1],
    "flat": lambda x: x.conj().view(-1),
    "reshaped": lambda x: x.conj().reshape(9),
    "permuted": lambda x: x.mH.permute(1, 0),
    "diagonal": lambda x: x.mH.diagonal(),
    "detached": lambda x: x.conj().detach(),
    "contiguous": lambda x: x.conj().contiguous(),
    "resolved": lambda x: x.conj().resolve_conj(),  # a copy
    "conjugate twice": lambda x: x.conj().conj(),
    "negative conjugate": lambda x: x.conj()._neg_view(),
    "negative imaginary part": lambda x: x.conj().imag._neg_view(),
    "part of the imaginary part": lambda x: x.conj().imag[1:].conj(),
    "pairs": lambda x: x.conj().conj().view(-1).real,
}


def _copy(view):
    numbers = view.new_tensor(range(view.numel()), dtype=rushlight.float64).reshape(view.shape)
    view.copy_(numbers * 1j if view.is_complex() else numbers)


def _set(view):
    view[0] = 5 + 2j if view.is_complex() else 5


WRITES = {
    "mul_": lambda v: v.mul_(2 + 1j if v.is_complex() else 2),
    "copy_": _copy,
    "v[0] =": _set,
    "zero_": lambda v: v.zero_(),
    "square_": lambda v: v.square_(),
    "add_": lambda v: v.add_(3),
    "fill_": lambda v: v.fill_(7j if v.is_complex() else 7),
    "lerp_": lambda v: v.lerp_(rushlight.ones_like(v), 0.5),
    "index_fill_": lambda v: v.index_fill_(0, rushlight.tensor([0]), 4),
    "masked_fill_": lambda v: v.masked_fill_(rushlight.ones(v.shape, dtype=rushlight.bool), 2),
    "_foreach_mul_": lambda v: rushlight._foreach_mul_([v], 2),
}


def numbers(seed=0, shape=(3, 3)):
    g = rushlight.Generator().manual_seed(seed)
    parts = [rushlight.rand(shape, generator=g, dtype=rushlight.float64) for _ in range(2)]
    return rushlight.complex(*parts)


def program(view_of, write, behind):
    """The form written through, or looked at after its base was written."""

    def f(x):
        x = x * (1 + 0.5j)
        view = view_of(x)
        write(x if behind else view)
        return x * 1, view * 1, view.abs().square()

    return f


def programs(writes=WRITES):
    for form, view_of in FORMS.items():
        for write in writes:
            yield f"{form}, {write}", program(view_of, WRITES[write], behind=False)
            yield f"{write} behind {form}", program(view_of, WRITES[write], behind=True)


FEW = ("mul_", "copy_", "v[0] =", "square_")


def plain(values):
    return [v.detach().resolve_conj().resolve_neg().tolist() for v in values]


def loss(values):
    return sum((v.abs() ** 2 * (0.1 + i)).sum() for i, v in enumerate(values))


def close(ours, wanted):
    assert len(ours) == len(wanted)
    for a, b in zip(ours, wanted):
        rushlight.testing.assert_close(a.resolve_conj().resolve_neg(), b.resolve_conj().resolve_neg())


def gradient(f, x):
    x = x.detach().requires_grad_()
    loss(f(x)).backward()
    return x.grad


def agree(run, wanted, writes=WRITES, but=()):
    failed = []
    for name, f in programs(writes):
        if any(word in name for word in but):
            continue
        try:
            close(run(f), wanted(f))
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[:3]}")
    assert not failed, f"{len(failed)}:\n" + "\n".join(failed[:40])


def test_vmap():
    x = numbers(shape=(2, 3, 3))
    each = lambda f: [rushlight.stack(parts) for parts in zip(*(f(row) for row in x))]
    agree(lambda f: vmap(f)(x), each)
    agree(lambda f: vmap(f, in_dims=2)(x.movedim(0, 2)), each)


def test_vmap_within_vmap():
    x = numbers(shape=(2, 2, 3, 3))
    each = lambda f: [rushlight.stack(parts) for parts in zip(*(f(row) for row in x.flatten(0, 1)))]
    agree(lambda f: [r.flatten(0, 1) for r in vmap(vmap(f))(x)], each, FEW)


def test_gradients():
    x = numbers()
    refused = ("unbind",)  # written views of several must not be recorded
    agree(lambda f: [grad(lambda y: loss(f(y)))(x)], lambda f: [gradient(f, x)], but=refused)
    agree(lambda f: vjp(f, x)[0], lambda f: f(x), but=refused)


def test_gradients_of_examples():
    x = numbers(shape=(2, 3, 3))
    each = lambda f: [rushlight.stack([gradient(f, row) for row in x])]
    agree(lambda f: [vmap(grad(lambda y: loss(f(y))))(x)], each, FEW, but=("unbind",))
    agree(lambda f: [grad(lambda y: loss(vmap(f)(y)))(x)], each, FEW, but=("unbind",))


def test_tangents():
    x, direction = numbers(), numbers(seed=1)

    def along(f):
        """The difference quotient: the programs are polynomials and absolute values."""
        step = 1e-6
        ahead, behind = f(x + step * direction), f(x - step * direction)
        return [(a - b) / (2 * step) for a, b in zip(ahead, behind)]

    def close_tangents(f):
        values, tangents = jvp(f, (x,), (direction,))
        close(values, f(x))
        for mine, wanted in zip(tangents, along(f)):
            mine = mine.resolve_conj().resolve_neg()
            rushlight.testing.assert_close(mine, wanted, rtol=1e-5, atol=1e-6)
        return ()

    agree(close_tangents, lambda f: (), but=("detached",))  # what is written there has no tangent


class _Watching(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_dispatch_modes():
    def watched(f):
        with _Watching():
            return f(numbers())

    agree(watched, lambda f: f(numbers()))


def test_functionalized():
    agree(lambda f: functionalize(f)(numbers()), lambda f: f(numbers()))
    traced = lambda f: make_fx(functionalize(f))(numbers())(numbers(seed=3))
    agree(traced, lambda f: f(numbers(seed=3)), FEW)


def test_traced():
    agree(lambda f: make_fx(f)(numbers())(numbers(seed=3)), lambda f: f(numbers(seed=3)))


def test_fakes_know_what_is_pending():
    with FakeTensorMode() as mode:
        for view_of in FORMS.values():
            fake, real = view_of(mode.from_tensor(numbers())), view_of(numbers())
            assert (fake.is_conj(), fake.is_neg()) == (real.is_conj(), real.is_neg())


@pytest.mark.parametrize("dynamic", [None, True])
def test_compiled(dynamic):
    def compiled(f):
        rushlight._dynamo.reset()
        g = rushlight.compile(f, dynamic=dynamic)
        g(numbers()), g(numbers())
        return g(numbers(seed=3))

    agree(compiled, lambda f: f(numbers(seed=3)), FEW)


def test_exported():
    export = lambda f: rushlight.export.export(FunctionModule(f), (numbers(),))
    wanted = lambda f: f(numbers(seed=3))
    agree(lambda f: export(f).module()(numbers(seed=3)), wanted, FEW)
    agree(lambda f: export(f).run_decompositions().module()(numbers(seed=3)), wanted, FEW)


def test_in_one_file(tmp_path):
    def from_file(f):
        save_file(FunctionModule(f), str(tmp_path / "program.rl"), (numbers(),))
        return load_file(str(tmp_path / "program.rl"))(numbers(seed=3))

    agree(from_file, lambda f: f(numbers(seed=3)), FEW)


def test_argument_that_is_pending():
    """What is given to a transform may be such a view: writes reach its base."""
    x, wanted = numbers(), numbers()
    vmap(lambda row: row.mul_(2 + 1j))(x.conj())
    wanted.conj().mul_(2 + 1j)
    close([x], [wanted])


def test_forms_like_pytorch():
    if is_aliased():
        pytest.skip("PyTorch cannot be imported beside an alias of its name")
    torch = pytest.importorskip("torch")
    for form, view_of in FORMS.items():
        ours, theirs = numbers(), torch.tensor(numbers().tolist(), dtype=torch.complex128)
        for x in (ours, theirs):
            view_of(x).mul_(2)
        mine, other = view_of(ours), view_of(theirs)
        assert plain([ours, mine]) == plain([theirs, other]), form
        assert (mine.is_conj(), mine.is_neg()) == (other.is_conj(), other.is_neg()), form


@pytest.mark.parametrize("name", ["swapaxes_", "swapdims_", "transpose_"])
def test_functionalized_geometry(name):
    def f(x):
        x = x * 1
        view = x.conj()
        getattr(view, name)(0, 1)
        view[0].mul_(2j)
        return x * 1, view * 1

    x = numbers(shape=(3, 2))
    close(make_fx(functionalize(f))(x)(x), f(x))
