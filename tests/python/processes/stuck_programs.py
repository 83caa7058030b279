"""What the ranks of test_stuck.py run: jobs in which somebody is late, missing, or makes another call."""

import os
import time
from datetime import timedelta

import rushlight as torch
from rushlight import distributed as dist


def join(rank, size, file, seconds):
    torch.set_num_threads(1)
    os.environ["TORCH_FR_DUMP_TEMP_FILE"] = f"{file}_dump_"
    dist.init_process_group(
        "gloo",
        store=dist.TCPStore("127.0.0.1", int(file.rpartition("_")[2]), is_master=False),
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=seconds),
    )


def message_of(call):
    try:
        call()
    except dist.DistBackendError as error:
        return str(error)
    raise AssertionError("the call should have failed")


def busy_elsewhere():
    time.sleep(6)  # here


def late(rank, size, file):
    join(rank, size, file, 2)
    dist.all_reduce(torch.ones(1))
    started = time.monotonic()
    if rank == 1:
        busy_elsewhere()
        message_of(lambda: dist.all_reduce(torch.ones(3, 4)))
        return
    said = message_of(lambda: dist.all_reduce(torch.ones(3, 4)))
    assert time.monotonic() - started < 5.9, "not within the limit"
    assert "all_reduce (float32[3, 4]; call number 2 of rank" in said and "stuck_programs.py:" in said, said
    assert "Missing ranks: 1\n" in said, said
    assert "rank 1 is in no call of this group; its last was all_reduce (call number 1) at" in said, said
    assert "in busy_elsewhere" in said, said
    assert f"rank {2 - rank} has been in all_reduce (float32[3, 4]; call number 2)" in said, said


def other_operation(rank, size, file):
    join(rank, size, file, 2)
    t = torch.zeros(5)
    said = message_of(lambda: dist.all_reduce(t) if rank else dist.broadcast(t, 0))
    other = "broadcast" if rank else "all_reduce"
    # Both wait as long: the one that looks later finds that the other has just given up.
    waits = f"rank {1 - rank} has been in {other} (float32[5]; call number 1) at"
    gave_up = f"rank {1 - rank} is in no call of this group; its last was {other} (call number 1) at"
    assert waits in said or gave_up in said, said
    assert t.tolist() == [0] * 5


def other_shape(rank, size, file):
    join(rank, size, file, 2)
    said = message_of(lambda: dist.all_reduce(torch.ones(4 + rank)))
    assert f"Missing ranks: {1 - rank}\n" in said and f"(float32[{5 - rank}]; call number 1)" in said, said


def checked_beforehand(rank, size, file):
    join(rank, size, file, 60)
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    started = time.monotonic()
    dist.all_reduce(torch.ones(2))
    out = torch.empty(2)
    dist.all_to_all_single(out, torch.ones(2))
    said = message_of(lambda: dist.all_reduce(torch.ones(2, dtype=(torch.float32, torch.int64)[rank])))
    assert "Detected mismatch between collectives on ranks" in said, said
    assert "float32[2]" in said and "int64[2]" in said and time.monotonic() - started < 20, said
    dist.all_reduce(torch.ones(1))  # the group goes on


def ends(rank, size, file):
    join(rank, size, file, 20)
    dist.all_reduce(torch.ones(1))
    if rank == 1:
        os._exit(0)
    said = message_of(lambda: dist.all_reduce(torch.ones(2)))
    assert "rank 1 gave no answer: it has ended" in said, said


def recorded(rank, size, file):
    from rushlight.distributed import flight_recorder

    join(rank, size, file, 60)
    works = [dist.all_reduce(torch.ones(8, 2), async_op=True) for _ in range(3)]
    for work in works:
        work.wait()
    dist.barrier()
    (dist.send if rank else dist.recv)(torch.ones(3), 1 - rank)
    entries = flight_recorder.contents()["entries"]
    assert [e["profiling_name"] for e in entries[:4]] == ["gloo:all_reduce"] * 3 + ["gloo:barrier"]
    assert entries[4]["is_p2p"] and entries[4]["peer"] == 1 - rank
    first = entries[0]
    assert first["input_sizes"] == [[8, 2]] and first["input_dtypes"] == ["float32"]
    assert first["collective_seq_id"] == 1 and first["state"] == "completed" and first["retired"]
    assert first["frames"][0]["name"].endswith("recorded.<locals>.<listcomp>") or "recorded" in str(
        first["frames"]
    )
    assert first["frames"][0]["filename"] == __file__
    assert (
        first["time_created_ns"]
        <= first["time_discovered_started_ns"]
        <= first["time_discovered_completed_ns"]
    )
    flight_recorder.dump(f"{file}_dump_{rank}")
