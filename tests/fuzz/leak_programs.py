"""The programs that leaks.py repeats: `PROGRAMS` maps a name to what makes one, given the library.

Each makes what it needs anew and lets it go; what it opens it closes. Those that end in an error take it, as
a program would that goes on.
"""

import contextlib
import copy
import io
import os
import pickle
import tempfile
import threading

PROGRAMS = {}


def program(make):
    PROGRAMS[make.__name__.replace("_", " ")] = make
    return make


def network(rl, width=4):
    nn = rl.nn
    return nn.Sequential(nn.Linear(3, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 2))


def fails(work, *kinds):
    """Runs what has to raise."""
    try:
        work()
    except Exception as error:
        if kinds and not isinstance(error, kinds):
            raise
        return
    raise AssertionError("no error")


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


# --- programs as graphs -------------------------------------------------------------------------------------


@program
def compiled(rl):
    x = rl.ones(3, requires_grad=True)

    def run():
        @rl.compile
        def f(v, n):
            if n > 1:
                return v.sin() * n
            return [v + i for i in range(3)]

        f(x, 2).sum().backward()
        f(x, 1), f(x.detach(), 2)
        x.grad = None

    return run


@program
def compiled_modules(rl):
    x = rl.ones(5, 3)

    def run():
        net = rl.compile(network(rl))
        net(x).sum().backward()
        with rl.no_grad():
            net(x)

    return run


@program
def calls_of_a_compiled_function(rl):
    f = rl.compile(lambda v: (v.sin() * 2 + v).sum())
    x = rl.ones(6, requires_grad=True)

    def run():
        f(x).backward()
        x.grad = None
        fails(lambda: f("a"))

    return run


@program
def exported(rl):
    x = rl.ones(5, 3)

    def run():
        held = rl.export.export(network(rl).eval(), (x,))
        held.module()(x)
        str(held.graph_module.code)
        fails(lambda: held.module()(rl.ones(5, 4)))
        fails(lambda: rl.export.export(_Branch(rl), (x,)))

    return run


def _Branch(rl):  # noqa: N802
    class Branch(rl.nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    return Branch()


@program
def scripted(rl):
    x = rl.ones(5, 3)

    def run():
        f = rl.jit.script(_scripted)
        f(x, 2)
        rl.jit.trace(lambda v: v * 2, (x,))(x)
        buffer = io.BytesIO()
        rl.jit.save(rl.jit.script(network(rl).eval()), buffer)
        buffer.seek(0)
        rl.jit.load(buffer)(x)
        fails(lambda: rl.jit.load(io.BytesIO(buffer.getvalue()[:500])))

    return run


def _scripted(x, n: int):
    for _ in range(n):
        x = x * 2
    return x


@program
def traced_by_fx(rl):
    def run():
        graph = rl.fx.symbolic_trace(network(rl))
        graph.recompile()
        graph(rl.ones(5, 3))
        for node in list(graph.graph.nodes):
            str(node), node.users

    return run


@program
def onnx(rl):
    folder = tempfile.mkdtemp()
    x = rl.ones(5, 3)

    def run():
        path = os.path.join(folder, "net.onnx")
        rl.onnx.export(network(rl).eval(), (x,), path, dynamo=True)
        rl.onnx.load(path)(x)

    return run


@program
def custom_operators(rl):
    with rl.library._scoped_library("leaks", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")

    def run():
        with rl.library._scoped_library("leaks", "FRAGMENT") as library:
            library.define("once(Tensor x) -> Tensor")
            library.impl("once", lambda x: x.clone(), "CompositeExplicitAutograd")
            rl.ops.leaks.once(rl.ones(2))

    return run


# --- files --------------------------------------------------------------------------------------------------


@program
def files(rl):
    folder = tempfile.mkdtemp()

    def run():
        net = network(rl)
        path = os.path.join(folder, "state.pt")
        for values in ({}, {"_use_new_zipfile_serialization": False}):
            rl.save(net.state_dict(), path, **values)
            rl.load(path)
            rl.load(path, mmap="_use_new_zipfile_serialization" not in values)
            with open(path, "r+b") as file:
                file.truncate(300)
            fails(lambda: rl.load(path))
        buffer = io.BytesIO()
        rl.save(net, buffer)
        buffer.seek(0)
        rl.load(buffer, weights_only=False)
        buffer.seek(0)
        fails(lambda: rl.load(buffer), pickle.UnpicklingError)
        rl.safetensors.save_file(net.state_dict(), path)
        rl.safetensors.load_file(path)
        fails(lambda: rl.load(os.path.join(folder, "none")), FileNotFoundError)

    return run


@program
def one_file(rl):
    folder = tempfile.mkdtemp()
    x = rl.ones(5, 3)

    def run():
        path = os.path.join(folder, "net.rl")
        rl.export.save_file(network(rl).eval(), path, (x,))
        held = rl.export.load_file(path)
        held(x), repr(held)
        fails(lambda: held(rl.ones(5, 4)))
        with open(path, "r+b") as file:
            file.truncate(200)
        fails(lambda: rl.export.load_file(path))

    return run


@program
def checkpoints(rl):
    folder = tempfile.mkdtemp()

    def run():
        state = network(rl).state_dict()
        rl.distributed.checkpoint.save(state, checkpoint_id=folder, no_dist=True)
        rl.distributed.checkpoint.load(state, checkpoint_id=folder, no_dist=True)

    return run


# --- data, threads, processes -------------------------------------------------------------------------------


@program
def loaders(rl):
    data = rl.utils.data
    held = data.TensorDataset(rl.arange(12.0).view(6, 2), rl.arange(6))

    class Broken(data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            if i == 2:
                raise KeyError(i)
            return rl.ones(2)

    def run():
        for _ in data.DataLoader(held, batch_size=2, shuffle=True):
            pass
        next(iter(data.DataLoader(held, batch_size=4)))  # left in the middle
        fails(lambda: list(data.DataLoader(Broken(), batch_size=2)), KeyError)
        data.random_split(held, [2, 4])

    return run


@program
def loaders_with_workers(rl):
    data = rl.utils.data
    held = data.TensorDataset(rl.arange(12.0).view(6, 2), rl.arange(6))

    def run():
        for _ in data.DataLoader(held, batch_size=2, num_workers=1):
            pass
        next(iter(data.DataLoader(held, batch_size=2, num_workers=1)))

    return run


@program
def threads(rl):
    def work():
        x = rl.ones(40, 40, requires_grad=True)
        (x @ x).sin().sum().backward()
        with rl.no_grad(), rl.autocast("cpu"):
            x @ x
        rl.func.vmap(rl.func.grad(lambda v: v.exp().sum()))(x.detach())

    def run():
        started = [threading.Thread(target=work) for _ in range(3)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    return run


@program
def stores(rl):
    dist, path = rl.distributed, os.path.join(tempfile.mkdtemp(), "store")

    def run():
        server = dist.TCPStore("127.0.0.1", 0, 1, is_master=True)
        client = dist.TCPStore("127.0.0.1", server.port, 1)
        client.set("a", b"1")
        server.get("a"), client.add("n", 2), client.delete_key("a"), client.check(["b"])
        dist.PrefixStore("p", client).set("c", "d")
        held = dist.HashStore()
        held.set("a", "b")
        dist.FileStore(path, 1).set("a", "b")  # which removes the file at its end
        del client, server

    return run


@program
def process_groups(rl):
    dist = rl.distributed

    def run():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        x = rl.ones(3)
        dist.all_reduce(x), dist.broadcast(x, 0), dist.barrier()
        net = rl.nn.parallel.DistributedDataParallel(rl.nn.Linear(3, 2))
        net(x).sum().backward()
        del net
        dist.destroy_process_group()

    return run


@program
def profiles(rl):
    x = rl.ones(4, requires_grad=True)

    def run():
        with rl.profiler.profile(record_shapes=True) as found, rl.profiler.record_function("mine"):
            x.exp().sum().backward()
        found.key_averages().table()
        x.grad = None

    return run


@program
def parametrized(rl):
    def run():
        net = rl.nn.Linear(3, 2)
        rl.nn.utils.parametrizations.weight_norm(net)
        net(rl.ones(3)).sum().backward()
        rl.nn.utils.parametrize.remove_parametrizations(net, "weight")
        rl.nn.utils.prune.random_unstructured(net, "weight", 0.5)
        rl.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        rl.optim.swa_utils.AveragedModel(rl.nn.Linear(3, 2)).update_parameters(rl.nn.Linear(3, 2))

    return run


@program
def recurrent_and_attention(rl):
    x = rl.randn(2, 4, 8)

    def run():
        rl.nn.LSTM(8, 4, batch_first=True)(x)[0].sum().backward()
        rl.nn.GRU(8, 4)(x)
        layer = rl.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        layer(x).sum().backward()
        with rl.no_grad():
            layer.eval()(x)

    return run
