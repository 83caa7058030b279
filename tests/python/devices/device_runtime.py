"""What programs ask of torch.cuda; test_cuda.py runs each of these functions on the emulated device."""

import gc
import os
import sys

import pytest
from device_helpers import emulated, needs_two, only_emulated, several

import rushlight as torch

MIB = 2**20


@needs_two
def test_streams():
    side, other = torch.cuda.Stream(), torch.cuda.Stream(device=1, priority=-1)
    assert side != torch.cuda.current_stream() == torch.cuda.default_stream() and hash(side) != hash(other)
    assert other.device == torch.device("cuda:1") and other.priority == -1 and side.cuda_stream != 0
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        with torch.cuda.stream(other):  # also selects the device
            assert torch.cuda.current_device() == 1 and torch.cuda.current_stream(0) == side
        assert torch.cuda.current_device() == 0
    assert torch.cuda.current_stream().cuda_stream == 0 and torch.cuda.current_stream().stream_id == 0
    same = torch.cuda.ExternalStream(side.cuda_stream)
    assert same == side and isinstance(same, torch.Stream)
    with torch.Stream("cuda") as s:
        assert torch.cuda.current_stream() == s
    assert torch.Stream(stream_id=side.stream_id, device_index=0, device_type=1) == side
    least, greatest = torch.cuda.Stream.priority_range()
    assert least == 0 > greatest


def test_work_is_late_and_in_order():
    a = torch.ones(1000, device="cuda")
    side = torch.cuda.Stream()
    before = a.sum().item()  # a read waits
    with torch.cuda.stream(side):
        b = a + 1
    assert before == 1000 and (emulated is None or not side.query())
    side.synchronize()
    assert side.query() and b.cpu().eq(2).all()


def test_a_stream_waits_for_another():
    side = torch.cuda.Stream()
    a = torch.zeros(1 << 16, device="cuda")
    for _ in range(20):
        a += 1
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        b = a * 2
    assert b.is_cuda
    side.synchronize()
    with torch.cuda.stream(side):
        assert b.max().item() == 40 and b.min().item() == 40


@only_emulated  # a real device may be quick enough
def test_without_waiting_numbers_are_wrong():
    side = torch.cuda.Stream()
    a = torch.zeros(8, device="cuda")
    torch.cuda.synchronize()
    a += 1
    with torch.cuda.stream(side):
        b = (a * 2).cpu()
    assert b.tolist() == [0] * 8


def test_events():
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert start.query()  # nothing was recorded yet
    with pytest.raises(ValueError, match="must be recorded"):
        start.elapsed_time(end)
    start.record()
    torch.ones(1000, device="cuda").exp_()
    end.record()
    end.synchronize()
    assert end.query() and 0 <= start.elapsed_time(end) < 60_000
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(torch.cuda.Event())
    if several:
        with pytest.raises(RuntimeError, match="does not match recording stream's device"):
            end.record(torch.cuda.Stream(device=1))
    mark = torch.cuda.current_stream().record_event()
    side = torch.cuda.Stream()
    side.wait_event(mark)
    side.synchronize()
    assert mark.query() and isinstance(mark, torch.Event)
    event = torch.Event("cuda")
    event.record(side)
    event.wait()
    event.synchronize()


def reused_too_early(with_record):
    """Reads of a side stream from memory that its tensor gave up."""
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    a = torch.full((1 << 20,), 7.0, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        b = a + 0  # not run yet
    if with_record:
        a.record_stream(side)
    address = a.data_ptr()
    del a
    c = torch.full((1 << 20,), 9.0, device="cuda")
    torch.cuda.current_stream().synchronize()
    with torch.cuda.stream(side):
        return b.cpu().unique().tolist(), c.data_ptr() == address


def test_record_stream():
    if not emulated:  # the side stream may be done before the memory is asked for
        assert reused_too_early(True)[0] == [7.0]
        return
    assert reused_too_early(True) == ([7.0], False)
    assert reused_too_early(False) == ([9.0], True)


def test_pinned_memory_and_late_copies():
    x = torch.arange(1000.0).pin_memory()
    assert x.is_pinned() and not torch.arange(3).is_pinned() and x[5:].is_pinned() and x.pin_memory() is x
    g = x.to("cuda", non_blocking=True)
    if emulated:
        assert not torch.cuda.current_stream().query()
    back = torch.empty(1000).pin_memory()
    back.copy_(g, non_blocking=True)
    torch.cuda.synchronize()
    assert back.equal(x)
    # Memory of a copy under way is not given to others.
    address = back.data_ptr()
    back.copy_(g, non_blocking=True)
    del back
    again = torch.empty(1000).pin_memory()
    if emulated:  # on a real device the copy may be done by now
        assert again.data_ptr() != address
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        g.pin_memory()
    torch.cuda.synchronize()
    assert torch.cuda.host_memory_stats()["allocated_bytes.all.current"] >= 4000


def test_pageable_copies_wait():
    a = torch.ones(1000, device="cuda")
    x = torch.empty(1000)
    x.copy_(a, non_blocking=True)
    assert x.eq(1).all()
    source = torch.zeros(1000)
    b = source.to("cuda", non_blocking=True)
    source.fill_(5)
    assert b.sum().item() == 0


@needs_two
def test_copies_between_devices():
    a = torch.zeros(1 << 16, device="cuda:0")
    a += 3
    b = a.to("cuda:1")
    b += 1
    a.zero_()
    assert b.cpu().eq(4).all() and b.to("cuda:0").cpu().eq(4).all()
    assert torch.cuda.comm.broadcast(b, [0, 1])[0].device.index == 0
    halves = torch.cuda.comm.scatter(b, [0, 1])
    assert [h.device.index for h in halves] == [0, 1]
    assert torch.cuda.comm.gather(halves, destination=0).cpu().equal(b.cpu())
    assert torch.cuda.comm.reduce_add([b, b.to("cuda:0")], 1).sum().item() == b.sum().item() * 2


def test_devices():
    facts = torch.cuda.get_device_properties(0)
    assert torch.cuda.get_device_name() == facts.name and facts.name in repr(facts)
    assert torch.cuda.get_device_capability() == (facts.major, facts.minor)
    assert facts.total_memory > 0 < facts.multi_processor_count
    assert torch.cuda.is_initialized()
    assert torch.cuda.current_device() == 0
    with pytest.raises(AssertionError, match="Invalid device id"):
        torch.cuda.get_device_properties(7)
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.cuda.set_device(7)
    with pytest.raises(ValueError, match="Expected a cuda device"):
        torch.cuda.synchronize("cpu")
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "cuda"
    assert torch.accelerator.current_stream() == torch.cuda.current_stream()
    assert isinstance(torch.ones(1, device="cuda"), torch.cuda.FloatTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)


@needs_two
def test_a_second_device():
    assert torch.cuda.can_device_access_peer(0, 1)
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        with torch.cuda.device_of(torch.ones(1, device="cuda:0")):
            assert torch.cuda.current_device() == 0
    assert torch.cuda.current_device() == 0
    with torch.accelerator.device_index(1):
        assert torch.accelerator.current_device_index() == 1
    assert torch.cuda.memory_allocated(1) == torch.accelerator.memory_allocated(1)
    torch.cuda.manual_seed_all(9)
    assert torch.cuda.default_generators[1].initial_seed() == 9


def test_memory_statistics():
    torch.cuda.synchronize()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = torch.cuda.memory_allocated()
    a = torch.empty(5 * MIB, dtype=torch.uint8, device="cuda")
    assert torch.cuda.memory_allocated() == start + 5 * MIB
    assert torch.cuda.memory_reserved() >= start + 20 * MIB
    del a
    assert torch.cuda.memory_allocated() == start and torch.cuda.max_memory_allocated() == start + 5 * MIB
    stats = torch.cuda.memory_stats()
    assert stats["allocation.large_pool.peak"] >= 1 and stats["num_ooms"] >= 0
    assert list(stats) == sorted(stats)
    assert "memory summary, device ID 0" in torch.cuda.memory_summary()
    reserved = torch.cuda.memory_reserved()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < reserved
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total
    address = torch.cuda.caching_allocator_alloc(1000)
    assert torch.cuda.memory_allocated() == start + 1024
    torch.cuda.caching_allocator_delete(address)
    assert torch.cuda.memory_allocated() == start
    with pytest.raises(RuntimeError, match="invalid device pointer"):
        torch.cuda.caching_allocator_delete(address)


@only_emulated
def test_steady_state_needs_no_driver():
    model = torch.nn.Linear(64, 64).cuda()
    x = torch.ones(32, 64, device="cuda")

    def step():
        model.zero_grad()
        (model(x) ** 2).sum().backward()

    step()
    step()
    calls = emulated.emulated_allocations()
    for _ in range(10):
        step()
    assert emulated.emulated_allocations() == calls


def test_out_of_memory():
    kept = torch.zeros(3 * MIB, device="cuda") * 2
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.01)
    assert torch.cuda.get_per_process_memory_fraction() == 0.01
    with pytest.raises(torch.cuda.OutOfMemoryError) as found:
        torch.empty(10**12, dtype=torch.uint8, device="cuda")
    text = str(found.value)
    assert text.startswith("CUDA out of memory. Tried to allocate 931.32 GiB. GPU 0 has a total capacity of")
    assert "12.00 MiB (mul)" in text and "the limit is" in text and "expandable_segments" not in text
    torch.cuda.set_per_process_memory_fraction(1.0)
    assert kept.sum().item() == 0  # nothing was lost
    with pytest.raises(ValueError, match="Allowed range: 0~1"):
        torch.cuda.set_per_process_memory_fraction(2.0)
    if emulated:  # a refusal that a flush repairs
        held = torch.empty(100 * MIB, dtype=torch.uint8, device="cuda")
        del held
        emulated.emulated_refuse_allocations(1)
        retries = torch.cuda.memory_stats()["num_alloc_retries"]
        torch.empty(150 * MIB, dtype=torch.uint8, device="cuda")
        assert torch.cuda.memory_stats()["num_alloc_retries"] == retries + 1


def test_snapshots(tmp_path):
    torch.cuda.memory._record_memory_history(max_entries=100)
    a = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
    found = torch.cuda.memory._snapshot()
    torch.cuda.memory._record_memory_history(enabled=None)
    blocks = [b for s in found["segments"] for b in s["blocks"] if b["address"] == a.data_ptr()]
    assert len(blocks) == 1 and blocks[0]["state"] == "active_allocated" and blocks[0]["size"] >= 3 * MIB
    assert any(frame["name"] == "test_snapshots" for frame in blocks[0]["frames"])
    entry = [e for e in found["device_traces"][0] if e["action"] == "alloc" and e["addr"] == a.data_ptr()][-1]
    assert entry["frames"] == blocks[0]["frames"] and entry["size"] == blocks[0]["size"]
    for segment in torch.cuda.memory_snapshot():
        assert sum(b["size"] for b in segment["blocks"]) == segment["total_size"]
    torch.cuda.memory._dump_snapshot(tmp_path / "snapshot.pickle")
    assert (tmp_path / "snapshot.pickle").stat().st_size > 100


def test_private_pools():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        a = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
    address = a.data_ptr()
    del a
    assert torch.empty(4 * MIB, dtype=torch.uint8, device="cuda").data_ptr() != address
    assert [s["segment_pool_id"] for s in pool.snapshot()] == [pool.id]
    with torch.cuda.use_mem_pool(pool):
        assert torch.empty(4 * MIB, dtype=torch.uint8, device="cuda").data_ptr() == address
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    assert pool.snapshot()
    del pool
    torch.cuda.empty_cache()
    assert not [s for s in torch.cuda.memory_snapshot() if s["segment_pool_id"] != (0, 0)]


def test_random_state():
    torch.manual_seed(5)
    assert torch.cuda.initial_seed() == 5
    generator = torch.cuda.default_generators[0]
    assert generator.device == torch.device("cuda:0") and generator.get_offset() == 0
    state = torch.cuda.get_rng_state()
    assert state.dtype == torch.uint8 and state.numel() == 16 and state.device.type == "cpu"
    generator.set_offset(8)
    with pytest.raises(RuntimeError, match="multiple of 4"):
        generator.set_offset(6)
    torch.cuda.set_rng_state(state)
    assert generator.get_offset() == 0 and len(torch.cuda.get_rng_state_all()) == torch.cuda.device_count()
    torch.cuda.manual_seed_all(9)
    assert torch.cuda.initial_seed() == 9
    own = torch.Generator(device="cuda").manual_seed(3)
    assert own.device.type == "cuda" and own.clone_state().initial_seed() == 3
    with torch.random.fork_rng():
        torch.cuda.manual_seed(11)
    assert torch.cuda.initial_seed() == 9


def test_a_forked_child_may_not_use_the_device():
    torch.ones(1, device="cuda")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        assert torch.cuda._is_in_bad_fork() and not torch.cuda.is_initialized()
        try:
            torch.ones(1, device="cuda")
            os.write(write, b"no error")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(read, 1000).decode()
    assert text.startswith("Cannot re-initialize CUDA in forked subprocess"), text


if __name__ == "__main__":
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", __file__, *sys.argv[1:]]))
