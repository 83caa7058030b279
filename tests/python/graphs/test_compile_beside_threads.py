"""Functions are compiled while other threads go on: what these change is theirs."""

import sys
import threading

import pytest

import rushlight

pytestmark = pytest.mark.timeout(120)

t = {}  # has the name of a method that `function` calls
worker = threading.current_thread()


@pytest.fixture(autouse=True)
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    rushlight._dynamo.reset()


def function(v):
    return (v @ v.t()).relu().sum(1) * 2 + v[:, 0].exp()


def test_what_other_threads_write_meanwhile_stays():
    t.clear()
    stop = threading.Event()

    def write():
        while not stop.is_set():
            t[len(t)] = len(t)

    def compile_it():
        for rows in range(2, 5):
            x = rushlight.randn(rows, 4)
            assert rushlight.allclose(compiled(x), function(x))

    compiled = rushlight.compile(function)
    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(5):
        rushlight._dynamo.reset()
        seen = len(t)
        compile_it()
        assert len(t) >= seen
    stop.set()
    writer.join()
    assert list(t) == list(range(len(t)))


def test_globals_named_as_methods_are_no_part_of_a_program():
    rushlight._dynamo.reset()
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    compiled, x = rushlight.compile(function, backend=backend), rushlight.randn(3, 4)
    for number in range(3):
        t["changed"] = number
        assert rushlight.allclose(compiled(x), function(x))
    assert len(graphs) == 1


def test_state_of_threads_is_not_held_by_graphs():
    def named(v):
        return v + len(worker.name)

    x = rushlight.ones(3)
    assert rushlight.equal(rushlight.compile(named)(x), named(x))
    with pytest.raises(RuntimeError, match="belongs to threads"):
        rushlight.compile(named, fullgraph=True)(x)


def test_threads_end_while_others_compile():
    def job():
        compiled = rushlight.compile(function)
        for rows in range(2, 5):
            compiled(rushlight.randn(rows, 4))

    global t
    for _ in range(4):
        threads = [threading.Thread(target=job) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not any(thread.is_alive() for thread in threads)
    t = {}
