"""Process groups: real processes on the loopback interface."""

import threading
from datetime import timedelta

import distributed_programs as programs
import pytest
import spread_programs

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp

needs_gloo = pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)")
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(autouse=True)
def _on_loopback(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")


def _run(program, size, tmp_path):
    mp.spawn(program, args=(size, str(tmp_path / "store")), nprocs=size)


@needs_gloo
@pytest.mark.parametrize(
    "program, size",
    [
        ("collectives", 2),
        ("collectives", 3),
        ("messages", 3),
        ("groups", 4),
        ("derivatives", 2),
        ("data_parallel", 2),
        ("statistics", 2),
        ("accumulation", 2),
        ("unused_parameters", 2),
        ("hooks", 2),
        ("different_models", 2),
        ("checkpoints", 2),
        ("uneven_inputs", 2),
        ("shrinks", 4),
    ],
)
def test_programs(program, size, tmp_path):
    _run(getattr(programs, program), size, tmp_path)


@needs_gloo
@pytest.mark.parametrize("program", ["zero_redundancy", "overlapped_steps", "pipelines", "own_groups"])
def test_spread_programs(program, tmp_path):
    _run(getattr(spread_programs, program), 2, tmp_path)


@needs_gloo
def test_a_late_rank_is_named(tmp_path):
    _run(programs.one_is_late, 2, tmp_path)


@needs_gloo
def test_a_dead_rank_ends_the_others(tmp_path):
    with pytest.raises(mp.ProcessExitedException, match="SIGKILL"):
        _run(programs.one_dies, 2, tmp_path)


@needs_gloo
def test_a_group_of_one():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        assert dist.is_initialized() and dist.get_backend() == "gloo"
        t = torch.tensor([2.0, 3.0])
        dist.all_reduce(t, dist.ReduceOp.AVG)
        assert t.tolist() == [2, 3]
        parts = [torch.empty(2)]
        dist.all_gather(parts, t)
        assert parts[0].tolist() == [2, 3]
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        with pytest.raises(TypeError, match="torch.Tensor"):
            dist.all_reduce([1.0])
        with pytest.raises(ValueError, match="world_size"):
            dist.new_group([0, 3])
    finally:
        dist.destroy_process_group()


@needs_gloo
def test_nothing_is_received_into_read_only_memory():
    constant = torch.frombuffer(bytes(16), dtype=torch.float32)
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        calls = {
            "all_reduce": lambda: dist.all_reduce(constant),
            "reduce": lambda: dist.reduce(constant, 0),
            "scatter": lambda: dist.scatter(constant, [torch.ones(4)], 0),
            "all_gather": lambda: dist.all_gather([constant], torch.ones(4)),
            "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(constant, torch.ones(4)),
            "all_to_all": lambda: dist.all_to_all_single(constant, torch.ones(4)),
        }
        for name, call in calls.items():
            with pytest.raises(RuntimeError, match=f"{name}: the tensor's memory is read-only"):
                call()
        dist.broadcast(constant, 0)  # the root sends
        assert constant.tolist() == [0, 0, 0, 0]
        shared = torch.ones(4)
        clone = shared._lazy_clone()
        dist.all_gather_into_tensor(clone, torch.zeros(4))
        assert shared.sum() == 4 and clone.sum() == 0
    finally:
        dist.destroy_process_group()


def test_what_is_missing_is_said(monkeypatch):
    with pytest.raises(ValueError, match="not been initialized"):
        dist.get_rank()
    with pytest.raises(dist.DistBackendError, match="backend='gloo'"):
        dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
    with pytest.raises(ValueError, match="Invalid backend|has no"):
        dist.init_process_group("glo", store=dist.HashStore(), rank=0, world_size=1)
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")


def _stores(tmp_path):
    short = timedelta(seconds=0.2)
    tcp = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=10))
    file = dist.FileStore(tmp_path / "file", 1)
    return [tcp, file, dist.HashStore(), dist.PrefixStore("prefix", dist.HashStore())], short


def test_stores(tmp_path):
    stores, short = _stores(tmp_path)
    for store in stores:
        store.set("key", "value")
        assert store.get("key") == b"value" and store.check(["key"]) and not store.check(["other"])
        assert store.add("count", 2) == 2 and store.add("count", 3) == 5 and store.get("count") == b"5"
        assert store.compare_set("key", "value", "new") == b"new"
        assert store.compare_set("key", "value", "newer") == b"new"
        store.append("key", "er")
        assert store.get("key") == b"newer" and store.multi_get(["key", "count"]) == [b"newer", b"5"]
        assert store.delete_key("key") and not store.delete_key("key")
        with pytest.raises(dist.DistStoreError, match="wait timeout after 200ms"):
            store.wait(["nobody sets this"], short)
        threading.Timer(0.1, store.clone().set, ("late", b"\0\xff")).start()
        assert store.get("late") == b"\0\xff"


def test_stores_refuse_what_is_no_text_and_no_interval(tmp_path):
    for store in _stores(tmp_path)[0]:
        store.set("key", b"value")
        for write in (store.set, store.append):
            with pytest.raises(TypeError):
                write("key", 5)  # not five zero bytes
        assert store.get("key") == b"value"
        for timeout in (1e30, 5, "x"):
            with pytest.raises(TypeError, match="datetime.timedelta"):
                store.set_timeout(timeout)
            with pytest.raises(TypeError, match="datetime.timedelta"):
                store.wait(["key"], timeout)
    for timeout in (1e30, -1, "x", None):
        with pytest.raises(TypeError, match="datetime.timedelta"):
            dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timeout)


@needs_gloo
def test_questions_about_groups_that_are_none():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        gone = dist.new_group([0])
        assert dist.get_rank(gone) == 0 and dist.get_group_rank(gone, 0) == 0
        dist.destroy_process_group(gone)
        for unknown in ("x", gone):
            for question in (dist.get_rank, dist.get_backend):
                with pytest.raises(ValueError, match="is not registered"):
                    question(unknown)
            for question in (dist.get_group_rank, dist.get_global_rank):
                with pytest.raises(ValueError, match="is not registered"):
                    question(unknown, 0)
            with pytest.raises(ValueError, match="Invalid process group specified"):
                dist.destroy_process_group(unknown)
        # of the default group nothing is looked up, as in PyTorch
        assert dist.get_group_rank(dist.group.WORLD, 5) == dist.get_global_rank(dist.group.WORLD, 5) == 5
        assert str(dist.get_debug_level()) == "DebugLevel.OFF"
    finally:
        dist.destroy_process_group()


def test_store_of_several_clients():
    server = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=10))
    clients = [dist.TCPStore("127.0.0.1", server.port, timeout=timedelta(seconds=10)) for _ in range(8)]

    def count(client):
        for _ in range(50):
            client.add("n", 1)

    threads = [threading.Thread(target=count, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.get("n") == b"400"
    server.queue_push("q", "first")
    assert clients[0].queue_len("q") == 1 and clients[1].queue_pop("q") == b"first"
    with pytest.raises(dist.QueueEmptyError):
        clients[2].queue_pop("q", block=False)


def test_nobody_serves():
    with pytest.raises(dist.DistNetworkError, match="timed out after 300ms"):
        dist.TCPStore("127.0.0.1", 1, timeout=timedelta(seconds=0.3))


def test_reduce_ops():
    assert str(dist.ReduceOp.SUM) == "RedOpType.SUM" and repr(dist.ReduceOp.MAX) == "<RedOpType.MAX: 4>"
    assert dist.ReduceOp(dist.ReduceOp.MIN) == dist.ReduceOp.MIN
    assert dist.supports_complex(dist.ReduceOp.SUM) and not dist.supports_complex(dist.ReduceOp.MAX)
