"""Who is stuck: what collectives say when ranks are late, missing, or do not make the same call."""

import json

import pytest
import stuck_programs as programs

import rushlight as torch
from rushlight import distributed as dist
from rushlight import multiprocessing as mp
from rushlight.distributed import _recorder, flight_recorder

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a program of stuck_programs on several ranks; returns the dumps that they left."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")

    def run(program, size):
        server = dist.TCPStore("127.0.0.1", 0, is_master=True)
        mp.spawn(getattr(programs, program), args=(size, str(tmp_path / f"job_{server.port}")), nprocs=size)
        return flight_recorder.read_dumps([tmp_path])

    return run


def test_a_late_rank_is_named_on_all_others(run):
    dumps = run("late", 3)
    assert set(dumps) == {0, 1, 2}
    found = flight_recorder.analyse(dumps)
    assert len(found) == 1 and "group 0, call 2" in found[0], found
    assert "ranks [1] did not make it" in found[0] or "did not finish all_reduce" in found[0]


@pytest.mark.parametrize("program", ["other_operation", "other_shape"])
def test_calls_that_do_not_fit_together_fail_everywhere(run, program):
    found = flight_recorder.analyse(run(program, 2))
    assert len(found) == 1 and "the ranks make different calls" in found[0], found


def test_detail_checks_beforehand(run):
    run("checked_beforehand", 2)


def test_a_rank_that_ended_gives_no_answer(run):
    run("ends", 2)


def test_what_is_recorded(run, tmp_path, capsys):
    dumps = run("recorded", 2)
    assert flight_recorder.analyse(dumps) == []
    page = tmp_path / "timeline.html"
    flight_recorder.main([*(str(p) for p in tmp_path.glob("*dump_[0-9]")), "-o", str(page)])
    assert capsys.readouterr().out == "all calls fit together\n"
    text = page.read_text()
    assert text.count("<rect") == 10 and "rank 1</text>" in text and "float32[8, 2]" in text
    assert text.count('class="done"') == 10


def _dump(rank, calls, ranks=(0, 1)):
    entries = [
        {
            "process_group": ["0", ""],
            "collective_seq_id": number,
            "profiling_name": f"gloo:{what}",
            "input_sizes": [[2]],
            "input_dtypes": ["float32"],
            "frames": [{"filename": "f.py", "line": 1, "name": "f"}],
            "state": state,
            "time_created_ns": number * 1000,
            "time_discovered_started_ns": number * 1000,
            "time_discovered_completed_ns": number * 1000 + 500 if state == "completed" else None,
            "is_p2p": False,
            "error": "<failed>" if state == "failed" else None,
        }
        for number, (what, state) in enumerate(calls, 1)
    ]
    return {"rank": rank, "pg_config": {"0": {"ranks": json.dumps(ranks)}}, "entries": entries}


def test_the_picture_shows_what_failed(tmp_path):
    done, failed = ("all_reduce", "completed"), ("broadcast", "failed")
    dumps = {0: _dump(0, [done, failed]), 1: _dump(1, [done])}
    (found,) = flight_recorder.analyse(dumps)
    assert "call 2: ranks [1] did not make it; rank 0 is in broadcast(float32[2]) at f.py:1" in found
    page = flight_recorder.draw(dumps)
    assert 'class="failed"' in page and "&lt;failed&gt;" in page and "<failed>" not in page
    assert "All calls" in flight_recorder.draw({})
    (tmp_path / "x").write_text("[]")
    with pytest.raises(ValueError, match="not a dump of the flight recorder"):
        flight_recorder.read_dumps([tmp_path / "x"])


def test_old_entries_are_dropped(monkeypatch):
    monkeypatch.setattr(_recorder, "entries", _recorder.deque(maxlen=3))
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        for _ in range(5):
            dist.all_reduce(torch.ones(1))
    finally:
        dist.destroy_process_group()
    assert [e["collective_seq_id"] for e in flight_recorder.contents()["entries"]] == [3, 4, 5]
