"""What the workers of test_rpc.py run; each function is called as program(rank, size, port)."""

import os
import threading
import time

import rushlight as torch
from rushlight.distributed import autograd as dist_autograd
from rushlight.distributed import rpc
from rushlight.distributed.optim import DistributedOptimizer


def join(rank, size, port, **options):
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), TORCHELASTIC_USE_AGENT_STORE="True")
    settings = rpc.TensorPipeRpcBackendOptions(**options)
    rpc.init_rpc(f"worker{rank}", rank=rank, world_size=size, rpc_backend_options=settings)


def who():
    return rpc.get_worker_info().name


def fails(text):
    raise KeyError(text)


def slow(seconds):
    time.sleep(seconds)
    return seconds


def through(name):
    """Asks back at the caller, while that waits."""
    return who() + "<-" + rpc.rpc_sync(name, who)


@rpc.functions.async_execution
def added_elsewhere(to, x, y, z):
    return rpc.rpc_async(to, torch.add, (x, y)).then(lambda future: future.wait() + z)


class Counter:
    def __init__(self, start):
        self.value = start

    def add(self, n):
        self.value += n
        return self.value

    @rpc.functions.async_execution
    def later(self, to):
        return rpc.rpc_async(to, who)


def value_of(rref):
    return rref.to_here().value


def kept():
    from rushlight.distributed.rpc import _rref

    return len(_rref.owned)


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("the call should have failed")


def gathers(rank, size, port):
    join(rank, size, port)
    assert rpc.api._is_current_rpc_agent_set() and rpc.api._require_initialized(who)() == f"worker{rank}"
    for turn in range(3):
        found = rpc.api._all_gather((rank, torch.full((2,), turn)))
        assert list(found) == [f"worker{r}" for r in range(size)]
        assert all(
            found[f"worker{r}"][0] == r and found[f"worker{r}"][1].sum() == 2 * turn for r in range(size)
        )
    if rank < 2:
        some = rpc.api._all_gather(rank, {"worker0", "worker1"})
        assert some == {"worker0": 0, "worker1": 1}
        rpc.api._barrier(["worker0", "worker1"])
    else:
        error = raised(lambda: rpc.api._all_gather(rank, {"worker0", "worker1"}))
        assert "is not one of the workers" in str(error)
    rpc.shutdown()


def calls(rank, size, port):
    join(rank, size, port)
    if rank == 0:
        assert rpc.rpc_sync("worker1", who) == "worker1" == rpc.rpc_sync(1, who)
        assert rpc.rpc_sync("worker0", who) == "worker0"
        assert rpc.get_worker_info("worker1").id == 1 and str(rpc.get_worker_info()).endswith("name=worker0)")
        sums = [rpc.rpc_async(i % size, torch.add, (torch.arange(3), i), {"alpha": 2}) for i in range(40)]
        assert [s.wait().tolist() for s in sums] == [[2 * i, 2 * i + 1, 2 * i + 2] for i in range(40)]
        big = torch.rand(1000, 700)
        back = rpc.rpc_sync("worker1", torch.Tensor.t, (big[:, ::7],))
        assert back.equal(big[:, ::7].t())
        empty = rpc.rpc_sync("worker1", torch.zeros, (0, 3), {"dtype": torch.int16})
        assert empty.shape == (0, 3) and empty.dtype == torch.int16
        assert rpc.rpc_sync("worker1", through, ("worker0",)) == "worker1<-worker0"
        assert rpc.rpc_sync("worker1", added_elsewhere, ("worker2", 1, 2, 3)) == 6
        error = raised(lambda: rpc.rpc_sync("worker1", fails, ("lost key",)))
        assert type(error) is KeyError and "On WorkerInfo(id=1, name=worker1)" in str(error), error
        assert "in fails" in str(error)
        assert "Unknown destination worker nobody" in str(raised(lambda: rpc.rpc_sync("nobody", who)))
        assert type(raised(lambda: rpc.rpc_sync("worker1", 3))) is TypeError
        assert "pickle" in str(raised(lambda: rpc.rpc_sync("worker1", lambda: 1)))
        started = time.monotonic()
        error = raised(lambda: rpc.rpc_sync("worker1", slow, (3,), timeout=0.2))
        assert "RPC ran for more than set timeout (200 ms)" in str(error) and time.monotonic() - started < 2
    rpc.shutdown()
    assert type(raised(lambda: rpc.rpc_sync(0, who))) is RuntimeError


def references(rank, size, port):
    join(rank, size, port)
    if rank == 0:
        counter = rpc.remote("worker1", Counter, (5,))
        assert counter.owner_name() == "worker1" and not counter.is_owner()
        assert counter.rpc_sync().add(2) == 7 and counter.rpc_async().add(1).wait() == 8
        assert counter.remote().add(1).to_here() == 9
        assert counter.rpc_sync().later("worker2") == "worker2"
        assert rpc.rpc_sync("worker2", value_of, (counter,)) == 9 == counter.to_here().value
        assert "can't call localValue() on user" in str(raised(counter.local_value))
        error = raised(lambda: rpc.remote("worker1", fails, ("key",)).to_here())
        assert type(error) is KeyError, error
        mine = rpc.RRef(Counter(1))
        assert mine.is_owner() and rpc.rpc_sync("worker2", value_of, (mine,)) == 1
        assert rpc.remote("worker0", who).to_here() == "worker0"
        import pickle

        assert "rref can only be pickled when using RPC" in str(raised(lambda: pickle.dumps(mine)))
        del counter, mine, error
        import gc

        gc.collect()
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and (kept() or rpc.rpc_sync("worker1", kept)):
            time.sleep(0.02)
        assert kept() == 0 and rpc.rpc_sync("worker1", kept) == 0
    rpc.shutdown()


def dies(rank, size, port):
    join(rank, size, port)
    if rank == 1:
        threading.Timer(0.5, os._exit, (0,)).start()
        time.sleep(30)
    started = time.monotonic()
    error = raised(lambda: rpc.rpc_sync("worker1", slow, (100,)))
    assert "worker1 has ended, or is out of reach" in str(error) and time.monotonic() - started < 10, error
    assert "worker1" in str(raised(lambda: rpc.rpc_sync("worker1", who)))
    rpc.shutdown(graceful=False)


# --- gradients

weights: dict = {}


def weight(name):
    if name not in weights:
        generator = torch.Generator().manual_seed(len(name))
        weights[name] = torch.rand(3, 3, generator=generator).requires_grad_()
    return weights[name]


def layer(name, x):
    return (x @ weight(name)).tanh()


def pingpong(name, x, depth, to):
    """Applies a layer here, the next ones elsewhere, and this one once more."""
    x = layer(name, x)
    if depth:
        x = x + rpc.rpc_sync(to, pingpong, (name + "x", x, depth - 1, rpc.get_worker_info().name))
        x = layer(name, x)
    return x


def loss_of_all(x):
    """The same as `gradients` computes, on one worker."""

    def play(name, x, depth):
        x = layer(name, x)
        if depth:
            x = x + play(name + "x", x, depth - 1)
            x = layer(name, x)
        return x

    branch = layer("side", x)
    return (play("w", x, 3) * branch).sum() + layer("side", branch).sum()


def gradients_here(context_id):
    return {
        name: dist_autograd.get_gradients(context_id)[w]
        for name, w in weights.items()
        if w in dist_autograd.get_gradients(context_id)
    }


def gradients(rank, size, port):
    join(rank, size, port)
    if rank == 0:
        x = torch.rand(2, 3, generator=torch.Generator().manual_seed(9)).requires_grad_()
        with dist_autograd.context() as context_id:
            for turn in (1, 2):
                branch = rpc.rpc_sync("worker1", layer, ("side", x))
                main = rpc.remote("worker1", pingpong, ("w", x, 3, "worker0")).to_here()
                unused = rpc.rpc_sync("worker1", layer, ("unused", x))
                loss = (main * branch).sum() + rpc.rpc_sync("worker1", layer, ("side", branch)).sum()
                dist_autograd.backward(context_id, [loss])
                found = {"x": dist_autograd.get_gradients(context_id)[x]}
                found |= gradients_here(context_id) | rpc.rpc_sync("worker1", gradients_here, (context_id,))
                assert x.grad is None and unused.requires_grad and "unused" not in found
                names = ["w", "wx", "wxx", "wxxx", "side"]
                expected = torch.autograd.grad(loss_of_all(x), [x, *map(weight, names)])
                assert set(found) == {"x", *names}
                for name, gradient in zip(["x", *names], expected):
                    assert torch.allclose(found[name], turn * gradient, atol=1e-6), (name, turn)
            error = raised(lambda: dist_autograd.backward(context_id, [x]))
            assert "all roots need to be scalar" in str(error)
        assert "Could not find autograd context" in str(
            raised(lambda: dist_autograd.get_gradients(context_id))
        )
        assert not rpc.rpc_sync("worker1", torch.add, (x.detach(), 1)).requires_grad
    rpc.shutdown()


def loss_at_owner(w, x):
    return (w.local_value() * x).sum()


def make(n):
    return torch.full((n,), 2.0, requires_grad=True)


def training(rank, size, port):
    join(rank, size, port)
    if rank == 0:
        parameters = [rpc.remote(i, make, (2,)) for i in range(size)]
        optimizer = DistributedOptimizer(torch.optim.SGD, parameters, lr=0.5)
        for _ in range(3):
            with dist_autograd.context() as context_id:
                losses = [
                    rpc.rpc_sync(p.owner(), loss_at_owner, (p, torch.tensor([1.0, i])))
                    for i, p in enumerate(parameters)
                ]
                dist_autograd.backward(context_id, [sum(losses)])
                optimizer.step(context_id)
        for i, parameter in enumerate(parameters):
            assert parameter.to_here().tolist() == [0.5, 2 - 1.5 * i]
    rpc.shutdown()
