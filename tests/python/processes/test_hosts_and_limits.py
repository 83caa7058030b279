"""Jobs under the conditions of real machines: several hosts, containers, schedulers, and things that die."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from running_processes import processes_with

from rushlight import distributed as dist
from rushlight.distributed import _job_environment as job

pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="this build has no Gloo (libgloo-dev)"),
    pytest.mark.timeout(300),
]
LAUNCH = [sys.executable, "-m", "rushlight.distributed.run"]


def _written(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def _gone(text, seconds=20):
    deadline = time.monotonic() + seconds
    while processes_with(text) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not processes_with(text)


# --- containers

_IN_A_CONTAINER = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
import rushlight as torch
from rushlight import multiprocessing as mp
from rushlight.utils.data import DataLoader, TensorDataset
import warnings
warnings.simplefilter("ignore")

def give(queue, count):
    for i in range(count):
        queue.put(torch.full((1000,), float(i)))
    queue.put(None)
    done.wait()

data = TensorDataset(torch.arange(400.0).view(400, 1).expand(400, 65536).contiguous()[:160])
loader = DataLoader(data, 1, num_workers=4, prefetch_factor=4)
kept = [batch for batch, in loader]
assert [int(b[0, 0]) for b in kept] == list(range(160)) and sum(b.nbytes for b in kept) > 40e6
context = mp.get_context("fork")
queue, done = context.Queue(), context.Event()
process = context.Process(target=give, args=(queue, 600))
process.start()
tensors = list(iter(queue.get, None))
done.set()
process.join()
assert len(tensors) == 600 and all(int(t[0]) == i for i, t in enumerate(tensors))
assert len(os.listdir("/proc/self/fd")) < 60
used = os.statvfs("/dev/shm")
print("free in /dev/shm:", used.f_bavail * used.f_frsize, "of", used.f_blocks * used.f_frsize)
"""


def test_small_shared_memory_and_few_descriptors(tmp_path):
    """64 MB in /dev/shm, where the system lets us have our own, and 256 descriptors."""
    program = _written(tmp_path, _IN_A_CONTAINER)
    command = [sys.executable, program]
    mount = "mount -t tmpfs -o size=64m tmpfs /dev/shm"
    alone = (
        shutil.which("unshare")
        and not subprocess.run(["unshare", "-m", "sh", "-c", mount], capture_output=True).returncode
    )
    if alone:
        command = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh", *command]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
    if alone:
        free, size = (int(word) for word in run.stdout.split() if word.isdigit())
        assert size == 64 << 20 and free > 60 << 20, run.stdout


# --- hosts

_ON_HOSTS = """
import os, sys, time
from datetime import timedelta
import rushlight as torch, rushlight.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo", timeout=timedelta(seconds=4))
total = torch.ones(1)
dist.all_reduce(total)
print("together", int(total), flush=True)
began = time.monotonic()
try:
    while True:
        dist.all_reduce(torch.ones(1000))
        time.sleep(0.01)
except dist.DistBackendError as error:
    print("parted after", round(time.monotonic() - began, 1), flush=True)
"""


@pytest.fixture
def hosts():
    """The commands that run something on two hosts: network namespaces with a link between them."""
    names = [f"rl{os.getpid() % 10000}{end}" for end in "ab"]
    steps = [f"ip netns add {name}" for name in names]
    steps += [f"ip link add v{names[0]} netns {names[0]} type veth peer name v{names[1]} netns {names[1]}"]
    for number, name in enumerate(names, 1):
        steps += [
            f"ip -n {name} addr add 10.231.7.{number}/24 dev v{name}",
            f"ip -n {name} link set v{name} up",
            f"ip -n {name} link set lo up",
        ]
    try:
        for step in steps:
            run = subprocess.run(step.split(), capture_output=True, text=True) if shutil.which("ip") else None
            if run is None or run.returncode:
                pytest.skip(f"no network namespaces here: {run.stderr.strip() if run else 'no ip command'}")
        yield names
    finally:
        for name in names:
            if shutil.which("ip"):
                subprocess.run(["ip", "netns", "del", name], capture_output=True)


def _on(name, program, rank):
    options = [
        "--nnodes",
        "2",
        "--node-rank",
        str(rank),
        "--master-addr",
        "10.231.7.1",
        "--master-port",
        "29511",
    ]
    return subprocess.Popen(
        ["ip", "netns", "exec", name, *LAUNCH, *options, "--nproc-per-node", "1", program],
        env={**os.environ, "GLOO_SOCKET_IFNAME": f"v{name}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_two_hosts_and_a_cut_between_them(hosts, tmp_path):
    program = _written(tmp_path, _ON_HOSTS)
    running = [_on(name, program, rank) for rank, name in enumerate(hosts)]
    for process in running:
        assert process.stdout.readline() == "together 2\n"
    time.sleep(0.5)
    subprocess.run(f"ip -n {hosts[1]} link set v{hosts[1]} down".split(), check=True)
    started = time.monotonic()
    try:
        outputs = [process.communicate(timeout=90)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert time.monotonic() - started < 80
    assert all("parted after" in output for output in outputs), outputs
    assert _gone(program)


# --- schedulers


def test_slurm_and_mpirun_say_who_we_are(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("SLURM_", "OMPI_", "PMI_", "PMIX_")):
            monkeypatch.delenv(name)
    assert job.from_job() == {}
    with monkeypatch.context() as m:
        m.setenv("PMI_RANK", "2")
        m.setenv("PMI_SIZE", "4")
        found = job.from_job()
        assert (found["rank"], found["world_size"], found["master_addr"]) == ("2", "4", "127.0.0.1")
    with monkeypatch.context() as m:
        values = {
            "PROCID": 5,
            "NTASKS": 8,
            "LOCALID": 1,
            "JOB_ID": 77,
            "STEP_ID": 0,
            "STEP_NODELIST": "gpu[03-06]",
        }
        for name, value in values.items():
            m.setenv(f"SLURM_{name}", str(value))
        found = job.from_job()
        assert (found["rank"], found["world_size"], found["local_rank"]) == ("5", "8", "1")
        assert found["master_addr"] == "gpu03" and 20000 <= int(found["master_port"]) < 32000
        assert dist.get_node_local_rank(0) == 1
        m.setenv("SLURM_STEP_ID", str(0xFFFFFFFB))  # a batch script is no process of the job
        assert job.from_job() == {}
    hosts = {"a[1,3-5],b": "a1", "node7": "node7", "x-01,y": "x-01", "n[10-12]": "n10"}
    assert {text: job.first_host(text) for text in hosts} == hosts


def test_a_job_under_the_variables_of_mpirun(tmp_path):
    program = _written(
        tmp_path,
        """
        import rushlight as torch, rushlight.distributed as dist
        dist.init_process_group("gloo")
        t = torch.tensor([float(dist.get_rank())])
        dist.all_reduce(t)
        print(int(t), dist.get_node_local_rank())
        """,
    )
    kept = {
        k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    }
    running = []
    for rank in range(2):
        own = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank, "LOCAL_SIZE": 2}
        environment = {**kept, **{f"OMPI_COMM_WORLD_{k}": str(v) for k, v in own.items()}}
        environment |= {"PMIX_NAMESPACE": f"job-{os.getpid()}", "GLOO_SOCKET_IFNAME": "lo"}
        running.append(
            subprocess.Popen([sys.executable, program], env=environment, stdout=subprocess.PIPE, text=True)
        )
    assert [p.communicate(timeout=60)[0] for p in running] == ["1 0\n", "1 1\n"]


# --- many jobs, and jobs that die

_SMALL_JOB = """
import rushlight as torch, rushlight.distributed as dist
dist.init_process_group()
t = torch.ones(1)
dist.all_reduce(t)
assert int(t) == dist.get_world_size()
"""


def test_many_jobs_at_once(tmp_path):
    """No two jobs meet at one port."""
    count = int(os.environ.get("RUSHLIGHT_LAUNCHES", 8))
    command = [*LAUNCH, "--standalone", "--nproc-per-node", "2", _written(tmp_path, _SMALL_JOB)]
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    for begin in range(0, count, 25):
        running = [
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
            for _ in range(min(25, count - begin))
        ]
        for process in running:
            _, errors = process.communicate(timeout=250)
            assert process.returncode == 0, errors


_TRAINING = """
import os, sys
import rushlight as torch, rushlight.distributed as dist
from rushlight import nn
torch.set_num_threads(1)
dist.init_process_group()
print(f"<rank {os.environ['RANK']} is {os.getpid()}>", flush=True)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(50, 50), nn.ReLU(), nn.Linear(50, 1)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    model(torch.rand(8, 50)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("seed", range(int(os.environ.get("RUSHLIGHT_KILLS", 2))))
def test_a_rank_killed_at_any_moment(tmp_path, seed):
    """The launcher says which, and nothing is left."""
    program, chance = _written(tmp_path, _TRAINING), random.Random(seed)
    process = subprocess.Popen(
        [*LAUNCH, "--standalone", "--nproc-per-node", "2", program],
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids, text = {}, ""
    while len(pids) < 2:
        line = process.stdout.readline()
        assert line, process.communicate(timeout=60)
        text += line  # those that write to one pipe may break each other's lines
        pids = dict(re.findall(r"<rank (\d) is (\d+)>", text))
    time.sleep(chance.random() * 0.6)
    rank = chance.choice("01")
    os.kill(int(pids[rank]), signal.SIGKILL)
    started = time.monotonic()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and time.monotonic() - started < 60
    assert f"rank: {rank} (local_rank: {rank}), exitcode: -9" in errors, errors
    assert _gone(program)
