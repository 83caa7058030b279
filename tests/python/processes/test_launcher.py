"""python -m rushlight.distributed.run: real jobs on the loopback interface."""

import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

from rushlight import distributed as dist

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(180),
]

PROGRAM = """
    import os, sys, time
    import rushlight as torch, rushlight.distributed as dist
    torch.set_num_threads(1)
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    what, rank = sys.argv[1], int(os.environ["RANK"])
    dist.init_process_group()
    total = torch.ones(1)
    dist.all_reduce(total)
    print(f"rank {rank} of {int(total)}, attempt {attempt}", flush=True)
    if rank == 1 and (what == "fail" or (what == "fail once" and attempt == "0")):
        raise ValueError("this rank is unwell")
    if rank == 1 and what == "kill":
        os.kill(os.getpid(), 9)
    if what == "sleep":
        time.sleep(60)
    dist.barrier()
    dist.destroy_process_group()
"""


def _start(tmp_path, *arguments):
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    arguments = [str(program) if a == "PROGRAM" else a for a in arguments]
    temporary = tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-m", "rushlight.distributed.run", *arguments],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process):
    output, errors = process.communicate(timeout=120)
    return process.returncode, output, errors


def _reports(output):
    """What the ranks printed; those that write to one pipe may break each other's lines."""
    return sorted(re.findall(r"rank \d of \d, attempt \d", output))


def _run(tmp_path, *arguments):
    result = _finish(_start(tmp_path, *arguments))
    assert not os.listdir(tmp_path / "temporary")  # the launcher leaves nothing behind
    return result


def test_a_job(tmp_path):
    status, output, errors = _run(tmp_path, "--standalone", "--nproc-per-node", "2", "PROGRAM", "-")
    assert status == 0, errors
    assert _reports(output) == ["rank 0 of 2, attempt 0", "rank 1 of 2, attempt 0"]


def test_the_first_failure_is_shown(tmp_path):
    status, _, errors = _run(tmp_path, "--standalone", "--nproc_per_node=2", "PROGRAM", "fail")
    assert status == 1
    cause = errors[errors.index("Root cause") :]
    assert "rank: 1 (local_rank: 1), exitcode: 1" in cause and "ValueError: this rank is unwell" in cause


def test_a_signal_is_named(tmp_path):
    status, _, errors = _run(tmp_path, "--standalone", "--nproc-per-node", "2", "PROGRAM", "kill")
    assert status == 1 and "exitcode: -9" in errors and "Signal 9 (SIGKILL)" in errors


def test_starting_again_with_logs(tmp_path):
    status, output, errors = _run(
        tmp_path,
        *("--standalone", "--nproc-per-node", "2", "--max-restarts", "1"),
        *("--tee", "0:1", "--redirects", "1", "--log-dir", str(tmp_path / "logs"), "--rdzv-id", "job"),
        *("PROGRAM", "fail once"),
    )
    assert status == 0, errors
    assert "starting again (1 of 1)" in errors
    assert "[default0]:rank 0 of 2, attempt 1" in output
    logs = tmp_path / "logs" / "job"
    assert (logs / "attempt_1" / "1" / "stdout.log").read_text() == "rank 1 of 2, attempt 1\n"
    assert [path.name for path in logs.glob("attempt_0/*/error.json")] == ["error.json"]
    assert not list(logs.glob("attempt_1/*/error.json"))


def test_lines_begin_as_the_template_says(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${role_name} ${rank}> ")
    options = ("--standalone", "--nproc-per-node", "1", "--role", "trainer", "--tee", "3")
    status, output, errors = _run(tmp_path, *options, "PROGRAM", "well")
    assert status == 0 and "<trainer 0> rank 0 of 1, attempt 0" in output, errors


def test_signals_are_passed_on(tmp_path):
    process = _start(tmp_path, "--standalone", "--nproc-per-node", "2", "PROGRAM", "sleep")
    assert "attempt" in process.stdout.readline()
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    status, _, _ = _finish(process)
    assert status == 128 + signal.SIGTERM and time.monotonic() - started < 30


def test_two_hosts(tmp_path):
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port = trial.getsockname()[1]
    hosts = [
        _start(
            tmp_path,
            *("--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}"),
            *("--nproc-per-node", str(1 + host), "--max-restarts", "1", "PROGRAM", "fail once"),
        )
        for host in range(2)
    ]
    results = [_finish(host) for host in hosts]
    assert [status for status, _, _ in results] == [0, 0], results
    reports = _reports("".join(output for _, output, _ in results))
    assert [r for r in reports if r.endswith("1")] == [f"rank {rank} of 3, attempt 1" for rank in range(3)]


def test_help_and_mistakes(tmp_path):
    status, output, _ = _run(tmp_path, "--help")
    assert status == 0 and "--nproc-per-node" in output and "--max-restarts" in output
    status, _, errors = _run(tmp_path, "--nproc-per-node", "many", "PROGRAM", "-")
    assert status == 1 and errors.strip() == "torchrun: unsupported nproc_per_node value: many"
