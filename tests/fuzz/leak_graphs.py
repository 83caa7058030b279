"""Programs for leaks.py: graphs, files, loaders, threads and processes."""

import gc
import io
import os
import pickle
import tempfile
import threading

from leak_base import fails, network, program

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
def attributes_of_what_graphs_hold(rl):
    """A parameter that knows its module, held by a graph alone when the collector runs."""

    def run():
        layer = rl.nn.Linear(2, 2)
        layer.weight.owner = layer
        loss = (layer.weight * 2).sum()
        del layer
        gc.collect(0)
        loss.backward()

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
