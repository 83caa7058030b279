"""torch.jit, torch.compiler and torch.futures: what programs ask of them in plain Python."""

import threading
import typing

import pytest

import rushlight as torch


def test_decorations_change_nothing_in_python():
    class M(torch.nn.Module):
        @torch.jit.export
        def a(self):
            return 1

        @torch.jit.ignore
        def b(self):
            return 2

        @torch.jit.ignore(drop=True)
        def c(self):
            return 3

        @torch.jit.unused
        def d(self):
            return 4

        @property
        @torch.jit.unused
        def e(self):
            return 5

    m = M()
    assert (m.a(), m.b(), m.c(), m.d(), m.e) == (1, 2, 3, 4, 5)
    assert not isinstance(m, torch.jit.ScriptModule)
    assert torch.jit.annotate(int, 3) == 3
    with pytest.raises(TypeError, match="expected a function"):
        torch.jit.script(3)
    with pytest.raises(ZeroDivisionError):
        torch.jit.trace(lambda x: 1 / 0, (torch.ones(1),))


def test_refined_isinstance():
    is_a = torch.jit.isinstance
    assert is_a([1, 2], typing.List[int])  # noqa: UP006 - what programs write
    assert not is_a([1, "a"], list[int])
    assert is_a({"a": 1}, dict[str, int])
    assert is_a((1, "a"), tuple[int, str])
    assert not is_a((1,), tuple[int, str])
    assert is_a(None, typing.Optional[int])  # noqa: UP045
    assert is_a(torch.ones(1), torch.Tensor)


def test_what_the_compiler_is_told():
    compiler = torch.compiler
    assert not compiler.is_compiling()
    assert not compiler.is_dynamo_compiling()
    assert not compiler.is_exporting()

    def f(x):
        return x

    assert compiler.disable(f)(1) == compiler.disable(recursive=False)(f)(1) == 1
    assert compiler.allow_in_graph(f) is f
    with compiler.set_stance("force_eager"):
        assert torch.compile(f)(1) == 1
    with pytest.raises(RuntimeError, match="invalid torch.compile stance"):
        compiler.set_stance("sideways")


def test_wrap_numpy():
    numpy = pytest.importorskip("numpy")
    twice = torch.compiler.wrap_numpy(lambda a: (numpy.add(a, a), "x"))
    result, text = twice(torch.ones(3))
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [2, 2, 2]
    assert text == "x"


def test_futures():
    future = torch.futures.Future()
    chained = future.then(lambda f: f.value() + 1)
    thread = threading.Timer(0.05, future.set_result, [41])
    thread.start()
    assert chained.wait() == 42
    assert future.done()
    thread.join(5)
    with pytest.raises(RuntimeError, match="complete again"):
        future.set_result(1)
    failing = torch.futures.Future()
    failing.set_exception(ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        failing.wait()
    assert torch.futures.wait_all([future, chained]) == [41, 42]
    assert torch.jit.wait(torch.jit.fork(lambda a: a * 2, 4)) == 8


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_distributed_sampler(shuffle, drop_last):
    oracle = pytest.importorskip("torch")
    data = list(range(11))
    for rank in range(3):
        shares = []
        for module in (torch, oracle):
            sampler = module.utils.data.DistributedSampler(
                data, num_replicas=3, rank=rank, shuffle=shuffle, seed=5, drop_last=drop_last
            )
            sampler.set_epoch(2)
            shares.append((list(sampler), len(sampler)))
        assert shares[0] == shares[1]
    with pytest.raises(ValueError, match="Invalid rank 3"):
        torch.utils.data.DistributedSampler(data, num_replicas=3, rank=3)
