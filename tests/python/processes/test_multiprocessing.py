"""Tensors between processes: shared memory through queues, pipes and pools, its counting, groups of
processes."""

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing.reduction import ForkingPickler

import pytest

import rushlight
import rushlight.multiprocessing as mp
from rushlight import _C

METHODS = ["fork", "spawn", "forkserver"]
WAIT = 30  # seconds; a hang fails, it does not stop the tests


@pytest.fixture(autouse=True)
def leaves_nothing():
    yield
    for child in mp.active_children():
        child.kill()
        child.join(WAIT)
        pytest.fail(f"{child} was left behind")


def _start(target, *args, method="fork"):
    process = mp.get_context(method).Process(target=target, args=args, daemon=True)
    process.start()
    return process


def _end(process, code=0):
    process.join(WAIT)
    assert process.exitcode == code


def _until(condition):
    end = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


# --- what arrives


def _echo(inbox, outbox):
    while (thing := inbox.get()) is not None:
        outbox.put(thing)
    outbox.put(None)
    inbox.get()


@pytest.fixture(params=METHODS)
def echo(request):
    context = mp.get_context(request.param)
    inbox, outbox = context.Queue(), context.Queue()
    process = _start(_echo, inbox, outbox, method=request.param)

    def send(thing):
        inbox.put(thing)
        return outbox.get(timeout=WAIT)

    yield send
    inbox.put(None)
    inbox.put(None)
    outbox.get(timeout=WAIT)
    _end(process)


def test_values_and_kinds(echo):
    big = rushlight.arange(12.0).reshape(3, 4)
    assert rushlight.equal(echo(big), big) and echo(big).is_shared()
    for dtype in (rushlight.int8, rushlight.bool, rushlight.bfloat16, rushlight.complex64, rushlight.float64):
        sent = big.to(dtype)
        got = echo(sent)
        assert got.dtype == dtype and rushlight.equal(got, sent)
    assert rushlight.equal(echo(big.t()[1:, ::2]), big.t()[1:, ::2])
    assert echo(rushlight.empty(0, 3)).shape == (0, 3)
    assert echo(rushlight.tensor(5)).item() == 5
    assert echo(rushlight.empty(2, 3, device="meta")).is_meta

    z = rushlight.tensor([1 + 2j])
    for view in (z.conj(), z.conj().imag):
        assert rushlight.equal(echo(view), view)

    leaf = echo(rushlight.ones(2, requires_grad=True))
    assert leaf.requires_grad and leaf.is_leaf
    parameter = rushlight.nn.Parameter(big.clone(), requires_grad=False)
    got = echo({"p": parameter})["p"]
    assert type(got) is rushlight.nn.Parameter and not got.requires_grad
    for sparse in (big.to_sparse(), big.to_sparse_csr()):
        got = echo(sparse)
        assert got.layout == sparse.layout and rushlight.equal(got.to_dense(), big)
    model = rushlight.nn.Linear(4, 2)
    assert rushlight.equal(echo(model)(big), model(big))


def test_views_arrive_sharing_their_storage(echo):
    base = rushlight.zeros(4, 4)
    got, row, storage = echo([base, base[1], base.storage()])
    assert got.untyped_storage()._cdata == row.untyped_storage()._cdata == storage.untyped()._cdata
    row.fill_(3)
    assert got[1].sum() == 12
    assert base[1].sum() == 12, "the sender sees what the receiver writes"


def test_own_tensors_come_back_as_the_same_storage():
    queue = mp.Queue()
    tensor = rushlight.ones(3)
    storage = tensor.untyped_storage()
    queue.put(tensor)
    assert queue.get(timeout=WAIT).untyped_storage() is storage


def _double(tensor):
    return tensor.mul_(2)


def test_pool_pipe_and_simple_queue():
    with mp.Pool(2) as pool:
        sent = [rushlight.full((100,), float(i)) for i in range(8)]
        got = pool.map(_double, sent)
        assert [int(t[0]) for t in got] == [0, 2, 4, 6, 8, 10, 12, 14]
        assert int(sent[3][0]) == 6, "the pool worked on the sender's memory"
        pool.close()
        pool.join()
    a, b = mp.Pipe()
    a.send(rushlight.arange(5))
    assert b.recv().tolist() == [0, 1, 2, 3, 4]
    queue = mp.SimpleQueue()
    queue.put(rushlight.arange(3))
    assert queue.get().tolist() == [0, 1, 2]
    with mp.Manager() as manager:
        shared = manager.dict(x=rushlight.arange(4))
        assert shared["x"].tolist() == [0, 1, 2, 3]


def test_share_memory_moves_everything_that_looks_at_it():
    tensor = rushlight.arange(6.0)
    view, array = tensor[2:], tensor.numpy()
    assert not tensor.is_shared()
    assert tensor.share_memory_() is tensor and view.is_shared()
    view.zero_()
    assert tensor.tolist() == [0, 1, 0, 0, 0, 0]
    assert array.tolist() == [0, 1, 2, 3, 4, 5], "an array made before keeps the memory it had"
    content = memoryview(rushlight.UntypedStorage([1, 2, 3]))
    content.obj.share_memory_()
    assert list(content) == [1, 2, 3]
    with pytest.raises(RuntimeError, match="not resizable"):
        tensor.resize_(1000)
    assert rushlight.empty(0).share_memory_().is_shared()
    assert rushlight.nn.Linear(2, 2).share_memory().weight.is_shared()
    made = tensor.new(tensor._typed_storage()._new_shared(12)).resize_(3, 4)
    assert made.is_shared() and made.shape == (3, 4)
    with pytest.raises(RuntimeError, match="only available on CPU"):
        rushlight.empty(2, device="meta").share_memory_()


def test_refuses_what_cannot_cross():
    inner = rushlight.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(inner)
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage"):
        ForkingPickler.dumps(rushlight.UntypedStorage(4, device="meta"))


def test_ordinary_pickles_copy():
    shared = rushlight.ones(3).share_memory_()
    copy = pickle.loads(pickle.dumps(shared))
    assert not copy.is_shared() and copy.tolist() == [1, 1, 1]


# --- counting


def _message(tensor):
    return bytes(ForkingPickler.dumps(tensor))


def test_a_message_keeps_memory_and_is_good_once():
    tensor = rushlight.arange(4)
    message = _message(tensor)
    del tensor
    got = pickle.loads(message)
    assert got.tolist() == [0, 1, 2, 3]
    assert pickle.loads(message).data_ptr() == got.data_ptr(), "while somebody holds it, it may be read again"
    del got
    others = [rushlight.ones(4, dtype=rushlight.int64).share_memory_() for _ in range(3)]
    with pytest.raises(RuntimeError, match="memory of a received tensor is gone"):
        pickle.loads(message)
    assert len(others) == 3


@pytest.mark.parametrize(
    "handle",
    [
        (b"x" * 16, 4096, 8, 1),
        (b"short", 4096, 8, 1),
        ("slab", 2**63, 8, 1),
        ("slab", 4097, 8, 1),
        ("slab", 0, 8, 1),
        ("slab", 2**64 - 64, 2**64 - 1, 1),
        ("slab", 8192, 2**62, 1),
        ("slab", 1 << 33, 8, 1),
        (),
        None,
    ],
)
def test_hostile_handles_raise(handle):
    storage = rushlight.ones(2).share_memory_().untyped_storage()
    true, _ = _C._shared_send(storage)
    _C._shared_abandon(true)
    if handle and handle[0] == "slab":
        handle = (true[0], *handle[1:])
    with pytest.raises((RuntimeError, TypeError)):
        _C._shared_receive(handle)


def _take_and_drop(inbox, outbox, n):
    for _ in range(n):
        outbox.put(int(inbox.get()[0]))


def test_memory_is_used_again_and_descriptors_stay_few():
    inbox, outbox = mp.Queue(), mp.Queue()
    process = _start(_take_and_drop, inbox, outbox, 100)
    _C._shared_release_idle()
    before, descriptors = _C._shared_stats()["reserved_bytes"], len(os.listdir("/proc/self/fd"))
    for i in range(100):
        inbox.put(rushlight.full((300_000,), i))
        assert outbox.get(timeout=WAIT) == i
    _end(process)
    assert _C._shared_stats()["reserved_bytes"] - before <= 40 << 20, "100 tensors of 2.4 MB took turns"
    kept = [rushlight.full((10,), i).share_memory_() for i in range(2000)]
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1
    assert [int(t[0]) for t in kept] == list(range(2000))


def _hold(inbox, outbox):
    held = inbox.get()
    outbox.put(len(held))
    time.sleep(10 * WAIT)


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_receiver_gives_its_memory_back(method):
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    process = _start(_hold, inbox, outbox, method=method)
    pending = _C._shared_stats()["pending_blocks"]
    inbox.put([rushlight.ones(1000) for _ in range(5)])
    assert outbox.get(timeout=WAIT) == 5
    _until(lambda: _C._shared_stats()["pending_blocks"] == pending + 5)
    process.kill()
    _end(process, -signal.SIGKILL)
    _C._shared_release_idle()
    assert _C._shared_stats()["pending_blocks"] == pending


def _send_and_wait(outbox):
    outbox.put(rushlight.arange(1000))
    time.sleep(10 * WAIT)


def test_memory_outlives_a_killed_sender():
    outbox = mp.SimpleQueue()
    process = _start(_send_and_wait, outbox)
    tensor = outbox.get()
    process.kill()
    _end(process, -signal.SIGKILL)
    assert tensor.sum() == 499500
    tensor.add_(1)
    queue = mp.SimpleQueue()
    queue.put(tensor)
    assert queue.get().data_ptr() == tensor.data_ptr(), "and may be passed on"
    slabs = _C._shared_stats()["slabs"]
    del tensor
    _C._shared_release_idle()
    assert _C._shared_stats()["slabs"] == slabs - 1


def _send_and_end(outbox):
    outbox.put(rushlight.ones(3))


def test_a_sender_that_ended_too_early_is_named():
    outbox = mp.SimpleQueue()
    process = _start(_send_and_end, outbox)
    _end(process)
    with pytest.raises(FileNotFoundError, match=f"process {process.pid}, which sent it, has ended"):
        outbox.get()


def _pass_on(inbox, outbox, done):
    outbox.put(inbox.get())
    done.wait(WAIT)


def test_a_third_process_may_be_reached_through_a_second():
    a, b, done = mp.SimpleQueue(), mp.SimpleQueue(), mp.Event()
    process = _start(_pass_on, a, b, done, method="fork")
    tensor = rushlight.arange(5)
    a.put(tensor)
    got = b.get()
    done.set()
    _end(process)
    assert got.data_ptr() == tensor.data_ptr()


# --- fork


def _in_child(work):
    """Whether `work` is true in a forked child, within the time allowed."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def test_fork_shares_and_counts():
    shared = rushlight.zeros(1000).share_memory_()
    assert _in_child(lambda: shared.fill_(4) is shared)
    assert shared.sum() == 4000
    assert _in_child(lambda: rushlight.ones(5).share_memory_().is_shared()), "the child has a slab of its own"
    pending = _C._shared_stats()["pending_blocks"]
    for _ in range(100):  # more children than a slab has places
        assert _in_child(lambda: shared[0] == 4)
    shared.set_()
    _C._shared_release_idle()
    assert _C._shared_stats()["pending_blocks"] == pending, "dead children hold nothing"


def test_fork_after_threads_ran():
    big = rushlight.rand(2_000_000)
    expected = big.exp().sum()
    weight = rushlight.rand(300, 300, requires_grad=True)
    (weight @ weight).sum().backward()

    def work():
        (weight @ weight).sum().backward()
        return rushlight.allclose(big.exp().sum(), expected) and rushlight.rand(10).numel() == 10

    assert _in_child(work)


def test_fork_while_another_thread_works():
    import threading

    stop = threading.Event()
    big = rushlight.rand(200_000)

    def plan(n):
        image, kernel = rushlight.rand(1, 3, 8 + n % 50, 9), rushlight.rand(2, 3, 3, 3)
        return rushlight.fft.fft(rushlight.rand(9 + n % 99)), rushlight.conv2d(image, kernel)

    def busy():
        n = 0
        while not stop.is_set():
            rushlight.rand(200_000).add_(big).exp().share_memory_()
            plan(n := n + 1)

    def work():
        plan(1)
        return rushlight.rand(1000).share_memory_().add(1).sum() > 1000

    assert work(), "and everything is imported"

    threads = [threading.Thread(target=busy) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(30):
            assert _in_child(work)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


# --- limits


_UNDER_LIMITS = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import rushlight, rushlight.multiprocessing as mp

def send(queue, done):
    for i in range(2000):
        queue.put(rushlight.full((100,), i))
    done.wait(60)

if __name__ == "__main__":
    queue, done = mp.Queue(), mp.Event()
    process = mp.Process(target=send, args=(queue, done))
    process.start()
    kept = [queue.get(timeout=30) for _ in range(2000)]
    assert [int(t[0]) for t in kept] == list(range(2000))
    done.set()
    process.join()
    assert process.exitcode == 0
    assert len(os.listdir("/proc/self/fd")) < 40
    assert kept[1999].sum() == 199900
"""


def test_few_descriptors_are_enough(tmp_path):
    script = tmp_path / "limits.py"
    script.write_text(_UNDER_LIMITS)
    subprocess.run([sys.executable, script], check=True, timeout=120, env=_environment())


def test_a_small_address_space_is_enough(tmp_path):
    script = tmp_path / "space.py"
    script.write_text(
        "import resource, rushlight\n"
        "now = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + (600 << 20), now + (600 << 20)))\n"
        "kept = [rushlight.ones(1 << 18).share_memory_() for _ in range(100)]\n"
        "assert all(t.is_shared() for t in kept)\n"
    )
    subprocess.run([sys.executable, script], check=True, timeout=120, env=_environment())


def test_senders_share_a_small_address_space(tmp_path):
    script = tmp_path / "senders.py"
    script.write_text(
        "import resource, rushlight\n"
        "from rushlight.utils.data import DataLoader\n"
        "now = int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "resource.setrlimit(resource.RLIMIT_AS, (now + (3 << 30), now + (3 << 30)))\n"
        "loader = DataLoader(rushlight.arange(64.0), batch_size=8, num_workers=3)\n"
        "assert sum(batch.sum().item() for batch in loader) == 2016\n"
    )
    subprocess.run([sys.executable, script], check=True, timeout=120, env=_environment())


def _environment():
    root = os.path.dirname(os.path.dirname(rushlight.__file__))
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}


# --- groups of processes


def _raise(i):
    if i == 1:
        raise KeyError("no such thing")
    time.sleep(10 * WAIT)


def _exit(i, code):
    if i == 0:
        os._exit(code)


def _die(i):
    faulthandler.disable()
    os.kill(os.getpid(), signal.SIGSEGV)


def _add_rank(i, tensor):
    tensor[i] += i + 1


def test_spawn_shares_its_arguments():
    tensor = rushlight.zeros(3)
    assert mp.spawn(_add_rank, (tensor,), nprocs=3) is None
    assert tensor.tolist() == [1, 2, 3]


@pytest.mark.parametrize("method", METHODS)
def test_an_exception_ends_the_group(method):
    with pytest.raises(mp.ProcessRaisedException, match="-- Process 1 terminated") as info:
        mp.start_processes(_raise, nprocs=2, start_method=method)
    assert info.value.error_index == 1 and info.value.error_pid > 0
    assert "no such thing" in str(info.value) and "in _raise" in str(info.value)
    assert isinstance(pickle.loads(pickle.dumps(info.value)), mp.ProcessRaisedException)


def test_exit_codes_and_signals_are_reported():
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 7") as info:
        mp.start_processes(_exit, (7,), nprocs=2, start_method="fork")
    assert info.value.exit_code == 7 and info.value.signal_name is None
    with pytest.raises(mp.ProcessExitedException, match="terminated with signal SIGSEGV") as info:
        mp.start_processes(_die, nprocs=1, start_method="fork")
    assert info.value.exit_code == -signal.SIGSEGV and info.value.signal_name == "SIGSEGV"


def test_a_group_can_be_joined_later():
    group = mp.start_processes(_exit, (0,), nprocs=2, join=False, start_method="fork")
    assert isinstance(group, mp.ProcessContext) and len(group.pids()) == 2
    while not group.join(timeout=WAIT):
        pass
    assert group.join()


def test_names():
    import multiprocessing

    assert all(hasattr(mp, name) for name in multiprocessing.__all__)
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy"):
        mp.set_sharing_strategy("pigeons")
    mp._set_thread_name("renamed")
    assert mp._get_thread_name() == "renamed"
