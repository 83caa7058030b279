"""Jobs of four ranks that are hurt at random and must end with the weights of a job that nobody disturbed.

    PYTHONPATH=. python tests/fuzz/surviving_jobs.py --minutes 60 --seed 1

Data parallel, sharded and pipelined models (surviving_ranks.py) train under the launcher, save distributed
checkpoints with the states of loaders and generators, and meanwhile something happens, once or several times
a job: a rank is killed, stopped for good, paused, slowed, loses the worker of its loader; the launcher dies;
the disk is full; the link between two hosts is cut, for a moment or until the job has noticed. Then

* what can go on goes on, or starts again by itself, and at the end the weights, the optimizer's course and
  every loss equal those of the undisturbed job, bit for bit;
* what may not start again (`--max-restarts 0`) says what happened within the time limit, and started by hand
  it ends as above;
* no process, no file beside the checkpoints and no shared memory is left.

All runs in namespaces of its own for processes, mounts and networks (root, or users who may make some), which
end with it. Where there are none, disks are not filled and links not cut.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("surviving_ranks.py")
RANKS = 4
LIMIT = 120  # seconds from a fault to progress, or to the word that there is none
ALONE = "RUSHLIGHT_IN_NAMESPACES"
FILLED = 64 << 20  # bytes of the disk that is filled


def progress(folder, begun=0):
    """The last step that any rank told of in its newest start, and how many lines there are in all."""
    steps, lines = [], 0
    for rank in range(RANKS):
        with contextlib.suppress(FileNotFoundError):
            words = [line.split()[1] for line in (folder / f"progress.{rank}").read_text().splitlines()]
            lines += len(words)
            steps += [int(word) for word in words[-1:] if word != "begun"]
    return max(steps, default=0), lines


def status_of(pid):
    """(parent, state, RANK) of a process; None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return None
    rank = next((int(v[5:]) for v in environ if v.startswith(b"RANK=")), None)
    return int(stat[1]), stat[0], rank


def processes():
    """{pid: (parent, state, rank)} of all."""
    found = {int(pid): status_of(pid) for pid in os.listdir("/proc") if pid.isdigit()}
    return {pid: status for pid, status in found.items() if status and status[1] != "Z"}


def signalled(pid, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


class Hosts:
    """Two hosts: networks with a link between them, which exist as long as two processes of ours."""

    ADDRESSES = "10.231.9.1", "10.231.9.2"

    def __init__(self):
        self.holders = [subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) for _ in self.ADDRESSES]
        own = os.readlink("/proc/self/ns/net")
        for holder in self.holders:
            while os.readlink(f"/proc/{holder.pid}/ns/net") == own:
                time.sleep(0.01)
        first, second = (str(holder.pid) for holder in self.holders)
        link = f"link add link0 netns {first} type veth peer name link0 netns {second}"
        subprocess.run(["ip", *link.split()], check=True)
        for index, address in enumerate(self.ADDRESSES):
            self.on(index, f"ip addr add {address}/24 dev link0")
            self.on(index, "ip link set link0 up")
            self.on(index, "ip link set lo up")

    def command(self, index):
        return ["nsenter", "--target", str(self.holders[index].pid), "--net"]

    def on(self, index, command):
        subprocess.run([*self.command(index), *command.split()], check=True)

    def cut(self):
        self.on(1, "ip link set link0 down")

    def mend(self):
        self.on(1, "ip link set link0 up")

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()


class Job:
    """One job: its folders, launchers, and what is done to it."""

    def __init__(self, folder, options, restarts=20, hosts=None):
        self.folder, self.hosts, self.restarts = Path(folder), hosts, restarts
        self.disk = self.folder / "checkpoints"
        self.disk.mkdir(parents=True)
        (self.folder / "tmp").mkdir()
        self.options = {"folder": str(self.folder), "checkpoints": str(self.disk), **options}
        self.launchers, self.logs, self.port = [], [], 29600
        self.mounted = False

    def small_disk(self):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FILLED}", "tmpfs", str(self.disk)], check=True)
        self.mounted = True

    def start(self, restarts=None):
        """Start the job, or start it again by hand."""
        restarts = self.restarts if restarts is None else restarts
        self.port += 1  # the former one may still be held
        counts = [RANKS // 2] * 2 if self.hosts else [RANKS]
        self.launchers = [self._launch(i, len(counts), count, restarts) for i, count in enumerate(counts)]

    def _launch(self, index, hosts, count, restarts):
        options = ["--nproc-per-node", count, "--max-restarts", restarts]
        network, before = "lo", []
        if hosts > 1:
            options += ["--nnodes", hosts, "--node-rank", index, "--master-addr", Hosts.ADDRESSES[0]]
            options += ["--master-port", self.port]
            network, before = "link0", self.hosts.command(index)
        else:
            options += ["--standalone"]
        command = [*before, sys.executable, "-m", "rushlight.distributed.run", *map(str, options)]
        command += [str(PROGRAM), json.dumps(self.options)]
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": network, "TMPDIR": str(self.folder / "tmp")}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        self.logs.append(self.folder / f"log.{len(self.logs)}")
        with open(self.logs[-1], "w") as log:
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def ranks(self):
        """{rank: pid} of those that run."""
        known = processes()
        ours = {launcher.pid for launcher in self.launchers}
        return {rank: pid for pid, (parent, _, rank) in known.items() if rank is not None and parent in ours}

    def words(self):
        return "\n".join(log.read_text(errors="replace")[-3000:] for log in self.logs[-2:])

    def ended(self):
        return all(launcher.poll() is not None for launcher in self.launchers)

    def wait(self, wanted, limit=LIMIT):
        """Whether something comes true in time."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            if wanted():
                return True
            time.sleep(0.02)
        return False

    def final(self):
        found = [self.folder / f"final.{rank}" for rank in range(RANKS)]
        return [json.loads(path.read_text()) for path in found] if all(p.exists() for p in found) else None

    def not_saved(self):
        return sum(len(p.read_text().splitlines()) for p in self.folder.glob("not_saved.*"))

    def close(self):
        """End what runs; the names of what should not have been there."""
        for pid in self.ranks().values():
            signalled(pid, signal.SIGKILL)
        for launcher in self.launchers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launcher.pid, signal.SIGKILL)
            launcher.wait()
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=True)


# --- what happens to a job ----------------------------------------------------------------------------------


def _victim(job, chance):
    ranks = job.ranks()
    return chance.choice(sorted(ranks.items())) if ranks else (None, None)


def _send(number):
    def fault(job, chance):
        rank, pid = _victim(job, chance)
        if pid is None:
            return "nobody was there"
        signalled(pid, number)
        return f"rank {rank}"

    return fault


def _pause(job, chance, times=1, longest=1.5):
    rank, pid = _victim(job, chance)
    if pid is None:
        return "nobody was there"
    for _ in range(times):
        signalled(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(0.05, longest))
        signalled(pid, signal.SIGCONT)
        time.sleep(0.02)
    return f"rank {rank}"


def _slow(job, chance):
    return _pause(job, chance, times=12, longest=0.3)


def _worker(job, chance):
    """A worker of a rank's loader dies."""
    rank, pid = _victim(job, chance)
    children = [child for child, (parent, _, _) in processes().items() if parent == pid]
    for child in children[:1]:
        signalled(child, signal.SIGKILL)
    return f"of rank {rank}" if children else f"rank {rank} had none"


def _everybody(job, chance):
    for pid in job.ranks().values():
        signalled(pid, signal.SIGKILL)
    return "at once"


def _launcher(job, chance):
    """Its ranks must end by themselves; then the job is started by hand."""
    which = chance.randrange(len(job.launchers))
    orphans = list(job.ranks().values())
    signalled(job.launchers[which].pid, signal.SIGKILL)
    if not job.wait(job.ended):
        raise Found(f"a launcher did not end after the one of host {which} was killed")
    if not job.wait(lambda: not set(orphans) & set(processes())):
        raise Found("ranks went on without their launcher")
    job.start()
    return f"of host {which}"


def _full(job, chance):
    """No byte is left on the disk of the checkpoints until a save has failed."""
    before = job.not_saved()
    filler = job.disk / ".filler"
    try:
        with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(1 << 12))
        job.wait(lambda: job.not_saved() > before or job.ended(), 20)
        time.sleep(chance.uniform(0, 3))
    finally:
        filler.unlink(missing_ok=True)
    return f"{job.not_saved() - before} saves failed"


def _blink(job, chance):
    job.hosts.cut()
    time.sleep(seconds := chance.uniform(0.1, 2.0))
    job.hosts.mend()
    return f"for {seconds:.1f} s"


def _cut(job, chance):
    """The link is cut until the job has noticed."""
    ranks = set(job.ranks().values())
    job.hosts.cut()
    began = time.monotonic()
    noticed = job.wait(lambda: not ranks & set(job.ranks().values()) or job.ended())
    job.hosts.mend()
    if not noticed:
        raise Found("ranks did not notice that the link between them was cut")
    return f"noticed after {time.monotonic() - began:.1f} s"


FAULTS = {
    "kill": _send(signal.SIGKILL),
    "terminate": _send(signal.SIGTERM),
    "stop": _send(signal.SIGSTOP),
    "pause": _pause,
    "slow": _slow,
    "worker": _worker,
    "everybody": _everybody,
    "launcher": _launcher,
    "full": _full,
    "blink": _blink,
    "cut": _cut,
}
NEED_NAMESPACES = {"full", "blink", "cut"}
HARMLESS = {"pause", "slow", "blink"}  # after which a job goes on


class Found(Exception):
    """What should not have happened."""


# --- one job after the other --------------------------------------------------------------------------------


class Search:
    def __init__(self, options, base):
        self.options, self.base = options, Path(base)
        self.references, self.outcomes = {}, collections.Counter()
        self.jobs = self.faults = self.found = 0

    def reference(self, options):
        """What the undisturbed job ends with."""
        key = json.dumps({name: options[name] for name in ("kind", "seed", "steps")})
        if key not in self.references:
            job = Job(self.base / f"undisturbed{len(self.references)}", options)
            try:
                job.start()
                if not job.wait(job.ended, 2 * LIMIT) or job.final() is None:
                    raise RuntimeError(f"the undisturbed job fails: {job.words()}")
                self.references[key] = job.final()
            finally:
                job.close()
                shutil.rmtree(job.folder)
        return self.references[key]

    def job(self, number, options, names, chance, last=False):
        """One job with these faults; `last`: the launcher may not start it again."""
        expected = self.reference(options)
        two = any(name in ("blink", "cut") for name in names)
        hosts = Hosts() if two else None
        job = Job(self.base / f"job{number}", options, 0 if last else 20, hosts)
        self.jobs += 1
        title = f"job {number} ({options['kind']}, seed {options['seed']}{', two hosts' if two else ''})"
        try:
            if "full" in names:
                job.small_disk()
            job.start()
            for name in names:
                self.fault(job, name, options, chance, title)
            if not job.wait(job.ended):
                raise Found("the job does not end")
            self.compare(job, expected)
        except Found as error:
            self.found += 1
            print(f"FOUND {title}: {error}\n{job.words()}", flush=True)
        finally:
            job.close()
            if hosts:
                hosts.close()
            self.left(job, title)
            shutil.rmtree(job.folder, ignore_errors=True)

    def fault(self, job, name, options, chance, title):
        """Let one thing happen at a moment by chance, and see that the job goes on, or says why not."""
        first = progress(job.folder)[0]
        when = first + chance.randrange(0, max(1, (options["steps"] - first) // 2))
        job.wait(lambda: progress(job.folder)[0] >= when or job.ended(), LIMIT)
        time.sleep(chance.uniform(0, 2 * options["seconds"] if when > first else 2.0))
        if job.ended():
            return self.tell(title, name, when, "", "the job had ended")
        began, lines = time.monotonic(), progress(job.folder)[1]
        said = FAULTS[name](job, chance)
        self.faults += 1
        if not job.wait(lambda: job.ended() or progress(job.folder)[1] > lines + 2 * RANKS):
            raise Found(f"{name} at step {when} ({said}): nothing in {LIMIT} s")
        seconds = time.monotonic() - began
        outcome = "went on"
        if job.ended() and job.final() is None:
            outcome = f"ended after {seconds:.1f} s"
            self.said_why(job, name)
            job.start(restarts=20)
            job.wait(lambda: job.ended() or progress(job.folder)[1] > lines + 2 * RANKS)
        elif name not in HARMLESS:
            outcome = f"progress after {seconds:.1f} s"
        self.tell(title, name, when, said, outcome)

    def said_why(self, job, name):
        if any(launcher.returncode == 0 for launcher in job.launchers) and len(job.launchers) == 1:
            raise Found("a launcher whose job failed ended with status 0")
        if name in HARMLESS:
            raise Found(f"{name} ended the job")
        if job.restarts:
            raise Found(f"{name} ended a job that could have started again")
        if "FAILED" not in job.words() and "gave up" not in job.words():
            raise Found("the launcher did not say what happened")

    def tell(self, title, name, when, said, outcome):
        self.outcomes[name, outcome.split(" after")[0]] += 1
        print(f"{title}: {name} at step {when}: {said}: {outcome}", flush=True)

    def compare(self, job, expected):
        found = job.final()
        if any(launcher.returncode for launcher in job.launchers) or found is None:
            raise Found(f"the job failed ({[launcher.returncode for launcher in job.launchers]})")
        for rank, (own, wanted) in enumerate(zip(found, expected, strict=True)):
            wrong = [name for name in wanted if own.get(name) != wanted[name]]
            if wrong:
                raise Found(f"rank {rank} ends with other values: {', '.join(wrong[:5])}")

    def left(self, job, title):
        """No process and no shared memory of a job outlives it."""
        marked = str(job.folder).encode()

        def ours():
            for pid in processes():
                with contextlib.suppress(OSError):
                    if marked in Path(f"/proc/{pid}/cmdline").read_bytes():
                        yield pid

        if not job.wait(lambda: not list(ours()), 20):
            self.found += 1
            print(f"FOUND {title}: processes are left: {list(ours())}", flush=True)
            for pid in ours():
                signalled(pid, signal.SIGKILL)
        shared = [name for name in os.listdir("/dev/shm") if name.startswith(("torch_", "rushlight"))]
        if shared:
            self.found += 1
            print(f"FOUND {title}: shared memory is left: {shared}", flush=True)

    def at_random(self, number):
        chance = random.Random(f"{self.options.seed} {number}")
        seed = chance.randrange(3)
        options = {
            "kind": chance.choice(self.options.kinds.split(",")),
            "seed": seed,
            "steps": self.options.steps,
            "seconds": 0.05,
            "timeout": self.options.timeout,
            "place": chance.choice(["steps", "same"]),
            "save": chance.choice(["now", "now", "beside"]),
            "full": chance.choice(["raise", "pass"]),
        }
        names = chance.choices(self.options.faults, k=chance.choice([1, 2, 2, 3]))
        self.job(number, options, names, chance, last=len(names) == 1 and chance.random() < 0.4)

    def in_order(self):
        """The faults one after the other in one job."""
        options = {"kind": self.options.kinds.split(",")[0], "seed": self.options.seed, "seconds": 0.02}
        options |= {
            "steps": self.options.steps,
            "timeout": self.options.timeout,
            "place": "steps",
            "save": "now",
            "full": "raise",
        }
        self.job(0, options, self.options.faults, random.Random(self.options.seed))


def work(options):
    begun = time.monotonic()
    if os.environ.get(ALONE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    else:
        print("no namespaces here: no disk is filled and no link cut", flush=True)
        options.faults = [name for name in options.faults if name not in NEED_NAMESPACES]
    with tempfile.TemporaryDirectory(prefix="surviving-") as base:
        search = Search(options, base)
        if options.in_order:
            search.in_order()
        number = 0
        while not options.in_order and time.monotonic() < begun + 60 * options.minutes:
            search.at_random(number)
            number += 1
    for (name, outcome), count in sorted(search.outcomes.items()):
        print(f"{name:10} {outcome:16} {count}")
    print(f"{search.jobs} jobs, {search.faults} faults, {search.found} found")
    return 1 if search.found else 0


def namespaces():
    """The command before a program that has processes, mounts and networks of its own; None without."""
    if not (shutil.which("unshare") and shutil.which("ip") and shutil.which("nsenter")):
        return None
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for user in ([], ["--user", "--map-root-user"]):
        trial = [*command, *user, "sh", "-c", "ip link set lo up && mount -t tmpfs tmpfs /dev/shm"]
        if subprocess.run(trial, capture_output=True).returncode == 0:
            return [*command, *user, "sh", "-c", '"$@"; exit $?', "sh"]
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--timeout", type=float, default=6, help="seconds of a collective")
    parser.add_argument("--kinds", default="ddp,fsdp,pipeline,ddp+fsdp+pipeline")
    parser.add_argument("--faults", default=",".join(FAULTS), help="of which to choose")
    parser.add_argument("--in-order", action="store_true", help="these faults once, in one job")
    options = parser.parse_args()
    options.faults = options.faults.split(",")
    before = None if os.environ.get(ALONE) else namespaces()
    if before is not None:
        command = [*before, sys.executable, *sys.argv]
        return subprocess.run(command, env={**os.environ, ALONE: "1"}).returncode
    return work(options)


if __name__ == "__main__":
    sys.exit(main())
