"""Programs for leaks.py: modules, autograd and its transforms, tensors and what they exchange."""

import contextlib
import copy
import pickle

from leak_base import PROGRAMS, fails, network, program

# --- modules, optimizers, hooks -----------------------------------------------------------------------------


@program
def modules(rl):
    x = rl.randn(5, 3)

    def run():
        net = network(rl)
        net.add_module("more", rl.nn.Dropout(0.5))
        net.register_buffer("kept", rl.zeros(2))
        net.train().eval().to(rl.float64).float().requires_grad_(False).zero_grad()
        net(x)
        repr(net), list(net.named_parameters()), list(net.named_modules()), net.state_dict()
        del net.kept, net.more

    return run


@program
def copies_of_modules(rl):
    def run():
        net = network(rl)
        copy.deepcopy(net).load_state_dict(net.state_dict())
        pickle.loads(pickle.dumps(net))
        copy.copy(net)

    return run


def _optimizer(name):
    def make(rl):
        kind, x = getattr(rl.optim, name), rl.randn(5, 3)

        def run():
            net = rl.nn.Linear(3, 2, bias=name != "Muon")
            if name == "SparseAdam":
                net = rl.nn.Embedding(3, 2, sparse=True)
            optimizer = kind(net.parameters(), lr=0.01)
            schedule = rl.optim.lr_scheduler.StepLR(optimizer, 1)
            given = rl.tensor([0, 1]) if name == "SparseAdam" else x

            def closure():
                optimizer.zero_grad()
                loss = net(given).pow(2).sum()
                loss.backward()
                return loss

            for _ in range(2):
                optimizer.step(closure)
                schedule.step()
            kind(net.parameters(), lr=0.01).load_state_dict(optimizer.state_dict())

        return run

    PROGRAMS[f"optimizer {name}"] = make


for _name in (
    "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam"
).split():
    _optimizer(_name)


@program
def hooks_of_modules(rl):
    x = rl.randn(5, 3, requires_grad=True)

    def run():
        net, seen = network(rl), []
        handles = [
            net.register_forward_pre_hook(lambda m, args: seen.append(m)),
            net.register_forward_hook(lambda m, args, out: out * 2),
            net[0].register_full_backward_hook(lambda m, given, got: seen.append(got)),
            net[3].register_full_backward_pre_hook(lambda m, got: seen.append(got)),
            net.register_state_dict_pre_hook(lambda *given: seen.append(net)),
        ]
        net(x).sum().backward()
        net.state_dict()
        for handle in handles[::2]:
            handle.remove()
        x.grad = None

    return run


@program
def hooks_of_tensors(rl):
    def run():
        x = rl.ones(3, requires_grad=True)
        seen = []
        y = x * 2
        y.retain_grad()
        handle = y.register_hook(lambda g: g * 2)
        x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
        y.grad_fn.register_hook(lambda got, given: seen.append(got))
        y.grad_fn.register_prehook(lambda got: seen.append(got))
        y.sum().backward()
        handle.remove()
        x.mine = seen  # a circle

    return run


@program
def hooks_of_saved_tensors(rl):
    def run():
        x = rl.ones(3, requires_grad=True)
        with rl.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), rl.tensor):
            y = x.exp() * x
        y.sum().backward()
        with rl.autograd.graph.save_on_cpu():
            (x.sin() * x).sum().backward()

    return run


@program
def failing_hooks(rl):
    def broken(*_):
        raise KeyError("broken")

    def run():
        x = rl.ones(5, 3, requires_grad=True)
        y = x * 2
        y.register_hook(broken)
        fails(lambda: y.sum().backward(), KeyError)
        net = network(rl)
        net.register_forward_hook(broken)
        fails(lambda: net(x), KeyError)
        with rl.autograd.graph.saved_tensors_hooks(lambda t: t, broken):
            z = x.exp()
        fails(lambda: z.sum().backward(), KeyError)

    return run


# --- autograd and function transforms -----------------------------------------------------------------------


def _square(rl):
    class Square(rl.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * x, x + 1

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])
            ctx.save_for_forward(inputs[0])
            ctx.mine = [ctx]

        @staticmethod
        def backward(ctx, a, b):
            (x,) = ctx.saved_tensors
            return 2 * x * a + b

        @staticmethod
        def jvp(ctx, t):
            (x,) = ctx.saved_tensors
            return 2 * x * t, t

    return Square


@program
def functions_of_autograd(rl):
    kind = _square(rl)

    def run():
        x = rl.ones(3, requires_grad=True)
        a, b = kind.apply(x)
        (a * b).sum().backward(create_graph=True)
        x.grad.sum().backward()
        rl.func.vmap(lambda v: kind.apply(v)[0])(x.detach())
        rl.func.jvp(lambda v: kind.apply(v), (x.detach(),), (x.detach(),))
        x.grad = None

    return run


@program
def classes_of_functions(rl):
    def run():
        kind = _square(rl)
        kind.apply(rl.ones(2, requires_grad=True))[0].sum().backward()

    return run


@program
def failing_functions(rl):
    class Broken(rl.autograd.Function):
        @staticmethod
        def forward(ctx, x, where):
            ctx.save_for_backward(x)
            if where == "forward":
                raise KeyError(where)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if g[0] > 1:
                return g, None, g
            raise KeyError("backward")

    def run():
        x = rl.ones(2, requires_grad=True)
        fails(lambda: Broken.apply(x, "forward"), KeyError)
        y = Broken.apply(x, "")
        fails(lambda: y.sum().backward(retain_graph=True), KeyError)
        fails(lambda: (y * 2).sum().backward(), RuntimeError)
        fails(lambda: rl.func.vmap(lambda v: v.item())(x), RuntimeError)
        fails(lambda: rl.func.grad(lambda v: v)(x), RuntimeError)
        fails(lambda: rl.autograd.gradcheck(lambda v: v * v.detach(), (x.double(),)))

    return run


@program
def transforms(rl):
    x = rl.randn(3)
    net = rl.nn.Linear(3, 2)

    def run():
        f = lambda v: (v.sin() * v.exp()).sum()  # noqa: E731
        rl.func.hessian(f)(x), rl.func.jacfwd(f)(x), rl.func.vmap(rl.func.grad(f))(x.expand(2, 3))
        rl.func.vjp(f, x)[1](rl.ones(()))
        rl.func.linearize(f, x)[1](x)
        state = dict(net.named_parameters())
        rl.func.grad(lambda p: rl.func.functional_call(net, p, (x,)).sum())(state)
        rl.autograd.functional.jacobian(lambda v: v * 2, x)
        with rl.autograd.forward_ad.dual_level():
            rl.autograd.forward_ad.unpack_dual(rl.autograd.forward_ad.make_dual(x, x).exp())

    return run


@program
def graphs_of_autograd(rl):
    def run():
        x = rl.ones(3, requires_grad=True)
        y = x.view(3, 1).expand(3, 2)
        z = y.clone().mul_(2)
        z[0].add_(1)
        node = z.sum().grad_fn
        node.next_functions, node.name(), node.metadata
        rl.autograd.grad(z.sum(), x, create_graph=True)
        rl.utils.checkpoint.checkpoint(lambda v: v.exp().sin(), x, use_reentrant=False).sum().backward()
        rl.utils.checkpoint.checkpoint(lambda v: v.exp().sin(), x, use_reentrant=True).sum().backward()
        with rl.autograd.detect_anomaly(check_nan=False):
            x.exp().sum().backward()
        fails(lambda: rl.autograd.backward([y]))
        held = x.exp()
        held.sum()

    return run


@program
def deep_graphs(rl):
    def run():
        x = y = rl.ones(1, requires_grad=True)
        for _ in range(300):
            y = y * 2
        del x, y

    return run


@program
def modes(rl):
    class Functions(rl.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Dispatched(rl.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Broken(rl.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError(func)

    def run():
        x = rl.ones(2, 2, requires_grad=True)
        with Functions():
            (x @ x).sum()
        with Dispatched():
            (x @ x + 1).sum().backward()
        with Broken():
            fails(lambda: x + 1, KeyError)
        with rl.autocast("cpu", rl.bfloat16):
            (x @ x).sum().backward()
        with rl.inference_mode(), rl.device("meta"):
            rl.ones(3) + 1
        with rl.random.fork_rng():
            rl.rand(2)

    return run


@program
def subclasses(rl):
    class Mine(rl.Tensor):
        pass

    class Logged(rl.Tensor):
        @staticmethod
        def __new__(cls, inner):
            made = rl.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
            made.inner = inner
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            bare = [a.inner if isinstance(a, Logged) else a for a in args]
            return Logged(func(*bare, **(kwargs or {})))

    def run():
        x = rl.ones(3).as_subclass(Mine)
        (x + 1).sin()
        x.mine = x
        Logged(rl.ones(3)) * 2

        class Local(rl.Tensor):
            pass

        rl.ones(3).as_subclass(Local) + 1

    return run


# --- tensors and what they exchange -------------------------------------------------------------------------


@program
def tensors(rl):
    def run():
        x = rl.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        x.mine, x.names_of = [x], {}
        str(x), repr(x.sum()), x.tolist(), list(x.unbind()), x[0, 1].item(), hash(x), bool(x[0, 0] > 0)
        x.data = rl.zeros(3)
        y = rl.empty(0)
        y.set_(x.detach().untyped_storage(), 0, (3,), (1,))
        y.resize_(5), y.untyped_storage().resize_(40), bytes(y.untyped_storage())
        x.grad = rl.ones(3)
        with contextlib.suppress(Exception):
            x.grad = rl.ones(4)
        rl.tensor([1, 2, 3])[rl.tensor([True, False, True])]
        rl.ones(4).share_memory_()
        copy.deepcopy(x), pickle.loads(pickle.dumps(x))
        rl.float32.itemsize, str(rl.int8), rl.Size([1, 2]).numel(), rl.device("cpu", 0), rl.finfo(rl.half)

    return run


@program
def exchange_with_numpy(rl):
    import numpy

    def run():
        a = numpy.ones((2, 3), numpy.float32)
        x = rl.from_numpy(a)
        x.numpy(), numpy.asarray(x), rl.as_tensor(a), rl.tensor(a), numpy.add(x, 1), x.__array__()
        rl.from_dlpack(a), numpy.from_dlpack(x), rl.utils.dlpack.from_dlpack(rl.utils.dlpack.to_dlpack(x))
        rl.utils.dlpack.to_dlpack(x)  # dropped
        rl.frombuffer(bytearray(8), dtype=rl.float32), rl.tensor(numpy.float32(2)), x + numpy.float32(1)
        fails(lambda: rl.from_numpy(numpy.array(["a"])), TypeError)
        fails(lambda: rl.ones(2, requires_grad=True).numpy(), RuntimeError)

    return run


@program
def sparse_nested_quantized(rl):
    def run():
        x = rl.eye(3)
        s = x.to_sparse()
        (s + s).coalesce().to_dense(), s @ x, x.to_sparse_csr().values()
        rl.nested.nested_tensor([rl.ones(2), rl.ones(3)], layout=rl.jagged) * 2
        rl.quantize_per_tensor(x, 0.1, 0, rl.quint8).dequantize()
        rl.nn.utils.rnn.pack_padded_sequence(rl.ones(3, 2, 4), [3, 2])
        rl.masked.masked_tensor(x, x > 0) + 1

    return run


@program
def distributions(rl):
    def run():
        normal = rl.distributions.Normal(rl.zeros(2), rl.ones(2))
        normal.log_prob(normal.rsample())
        rl.distributions.kl_divergence(normal, normal)
        rl.distributions.Categorical(probs=rl.ones(3)).sample()
        fails(lambda: rl.distributions.Normal(rl.zeros(2), -rl.ones(2)), ValueError)
        g = rl.Generator()
        g.set_state(g.get_state())
        rl.rand(2, generator=g)

    return run


@program
def wrong_calls(rl):
    x = rl.ones(2, 3)

    def run():
        fails(lambda: x @ x, RuntimeError)
        fails(lambda: rl.add(x), TypeError)
        fails(lambda: rl.add(x, "a"), TypeError)
        fails(lambda: rl.add(x, x, bogus=1), TypeError)
        fails(lambda: x[5], IndexError)
        fails(lambda: x.view(7), RuntimeError)
        fails(lambda: rl.tensor([[1], [2, 3]]), ValueError)
        fails(lambda: rl.zeros(-1), RuntimeError)
        fails(lambda: rl.cat([x, "a"]), TypeError)
        fails(lambda: rl.nn.functional.conv2d(x, x), RuntimeError)
        fails(lambda: rl.nn.Linear(2, 2)(x), RuntimeError)
        fails(lambda: x.no_such_thing, AttributeError)
        fails(lambda: rl.einsum("ij,jk", x), Exception)
        fails(lambda: network(rl).load_state_dict({"a": x}), RuntimeError)
        fails(lambda: rl.zeros(2**40, 2**20), RuntimeError)

    return run
