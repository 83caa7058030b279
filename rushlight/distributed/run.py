"""`python -m rushlight.distributed.run [options] program.py [arguments]`: start a job, as torchrun does.

Every process learns from its environment who it is (RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT
and others) and calls `init_process_group()`. The launcher serves the store in which they meet, so no port can
be taken by somebody else in between. When a process fails the others are ended, the first failing one's
traceback is shown, and with `--max-restarts` all are started again.
"""

import argparse
import os
import secrets
import socket
import sys
import time
import uuid
from datetime import timedelta

from ._errors import DistNetworkError
from ._tcp_store import TCPStore
from .elastic.agent import Agent, Worker
from .elastic.multiprocessing.errors import ChildFailedError, record

_RETRY_SECONDS = 5  # to reach a lost store, before we look at why
_STREAMS = {"0": (), "1": ("stdout",), "2": ("stderr",), "3": ("stdout", "stderr")}


def get_args_parser():
    """The options; those with hyphens may be written with underscores too."""
    parser = argparse.ArgumentParser(
        prog="torchrun", description="Start the processes of a distributed job on this host."
    )

    def option(*names, **settings):
        longer = [name for name in names if name.startswith("--")]
        underscored = ["--" + name[2:].replace("-", "_") for name in longer]
        parser.add_argument(*dict.fromkeys([*names, *underscored]), **settings)

    option("--nnodes", default="1:1", help="number of hosts, or least:most")
    option("--nproc-per-node", default="1", help="processes on this host: a number, auto, cpu or gpu")
    option("--rdzv-backend", default="static", help="how hosts meet: static or c10d, both at the endpoint")
    option("--rdzv-endpoint", default="", help="host:port where the hosts meet")
    option("--rdzv-id", default="none", help="the job's name")
    option("--rdzv-conf", default="", help="key=value pairs; timeout and last_call_timeout in seconds")
    option("--standalone", action="store_true", help="a job on this host alone, at a free port")
    option("--max-restarts", type=int, default=0, help="how often to start again after a failure")
    option("--monitor-interval", type=float, default=0.1, help="seconds between looks at the processes")
    option("--start-method", default="spawn", choices=["spawn", "fork", "forkserver"], help="ignored")
    option("--role", default="default", help="the processes' role")
    option("-m", "--module", action="store_true", help="the program is a module's name, as in python -m")
    option("--no-python", action="store_true", help="the program is a command, not a Python file")
    option("--run-path", action="store_true", help="run the program with runpy.run_path")
    option("--log-dir", default=None, help="folder for the processes' output")
    option("-r", "--redirects", default="0", help="write to files: 1 stdout, 2 stderr, 3 both; or rank:1,...")
    option("-t", "--tee", default="0", help="the same, and show it as well")
    option("--local-ranks-filter", default="", help="show only these local ranks' output")
    option("--node-rank", type=int, default=0, help="which host this is (static)")
    option("--master-addr", default="127.0.0.1", help="address of host 0 (static)")
    option("--master-port", type=int, default=29500, help="port on host 0 (static); 0 for a free one")
    option("--local-addr", default=None, help="this host's address, if the others know it by another one")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _hosts(text):
    least, _, most = text.partition(":")
    least = int(least)
    most = int(most or least)
    if not 1 <= least <= most:
        raise SystemExit(f"torchrun: --nnodes {text}: expected a number, or least:most")
    return least, most


def _processes(text):
    if text in ("auto", "cpu"):
        return len(os.sched_getaffinity(0))
    if text == "gpu":
        raise SystemExit("torchrun: --nproc-per-node gpu: this build has no CUDA; use cpu or a number")
    try:
        return int(text)
    except ValueError:
        raise SystemExit(f"torchrun: unsupported nproc_per_node value: {text}") from None


def _streams_of(text, count):
    """For each local rank the streams that an option such as "3" or "0:1,1:3" names."""
    if text in _STREAMS:
        return [_STREAMS[text]] * count
    chosen = dict(part.split(":") for part in text.split(","))
    return [_STREAMS[chosen.get(str(rank), "0")] for rank in range(count)]


def _command(args, local_rank):
    rank = [f"--local-rank={local_rank}"] if getattr(args, "pass_local_rank", False) else []
    program = [args.training_script, *rank, *args.training_script_args]
    if args.no_python:
        return program
    python = [sys.executable, "-u"]
    if args.run_path:
        return [*python, "-c", "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], "
                "run_name='__main__')", *program]  # fmt: skip
    return [*python, "-m", *program] if args.module else [*python, *program]


class _Meeting:
    """Where the hosts of a job meet, and how many they are.

    Round by round every host says how many processes it has; the first to come in a round leads it. With
    fewer than `most` hosts the round begins when the least number is here and nobody came for a while.
    """

    def __init__(self, args):
        self._least, self._most = _hosts(args.nnodes)
        self._lost = False
        self._single = args.standalone or (self._most == 1 and not args.rdzv_endpoint and args.node_rank == 0)
        conf = dict(pair.split("=") for pair in args.rdzv_conf.split(",") if pair)
        self._limit = timedelta(seconds=float(conf.get("timeout", 900)))
        self._last_call = float(conf.get("last_call_timeout", 30))
        self.address, port = args.master_addr, args.master_port
        if args.rdzv_endpoint:
            self.address, _, endpoint_port = args.rdzv_endpoint.partition(":")
            port = int(endpoint_port or 29400)
        if args.standalone:
            self.address, port = "127.0.0.1", 0
        # Several hosts agree on a token by their environments; one host makes its own.
        own = secrets.token_hex() if self._single else None
        self.token = os.environ.get("RUSHLIGHT_STORE_TOKEN") or own
        self.store = self._open(port, args.node_rank == 0)
        self.port = self.store.port
        self._node_rank = args.node_rank if args.rdzv_backend == "static" and self._most > 1 else None

    def _open(self, port, first):
        where = (self.token, self.address, port)
        if self._single or (first and _is_here(self.address)):
            try:
                return TCPStore._with_token(*where, is_master=True, timeout=self._limit)
            except RuntimeError:
                if self._single:
                    raise
        return TCPStore._with_token(*where, timeout=self._limit)

    def join(self, number, processes):
        """(this host's place, all hosts' numbers of processes) of round `number`."""
        if self._single:
            return 0, [processes]
        try:
            return self._meet(number, processes)
        except DistNetworkError:
            self._reconnect()
            return self._meet(number, processes)

    def _meet(self, number, processes):
        here = f"round/{number}"
        place = self.store.add(f"{here}/hosts", 1) - 1 if self._node_rank is None else self._node_rank
        if self._node_rank is not None:
            self.store.add(f"{here}/hosts", 1)
        self.store.set(f"{here}/host/{place}", str(processes))
        if place == 0:
            self._close(here)
        count = int(self.store.get(f"{here}/closed"))
        if place >= count:
            raise SystemExit(f"torchrun: the job began with {count} hosts before this one came")
        return place, [int(self.store.get(f"{here}/host/{i}")) for i in range(count)]

    def _reconnect(self):
        """Reach the store again after the network was gone; whose host answers that there is none is lost."""
        deadline = time.monotonic() + self._limit.total_seconds()
        while True:
            try:
                where = (self.token, self.address, self.port)
                self.store = TCPStore._with_token(*where, timeout=timedelta(seconds=_RETRY_SECONDS))
                self.store.set_timeout(self._limit)
                self._lost = False
                return
            except DistNetworkError as error:
                if isinstance(error.__context__, ConnectionRefusedError) or time.monotonic() > deadline:
                    raise

    def _close(self, here):
        for place in range(self._least):
            self.store.wait([f"{here}/host/{place}"])
        count = self._least
        while count < self._most:
            try:
                self.store.wait([f"{here}/host/{count}"], timedelta(seconds=self._last_call))
                count += 1
            except RuntimeError:
                break
        self.store.set(f"{here}/closed", str(count))

    def give_up(self, number):
        if self._single or self._lost:
            return
        try:
            self.store.set(f"round/{number}/failed", "1")
        except DistNetworkError:
            self._lost = True

    def was_given_up(self, number):
        """A store that is out of reach says nothing: the processes here fail or finish by themselves."""
        if self._single or self._lost:
            return False
        try:
            return self.store.check([f"round/{number}/failed"])
        except DistNetworkError:
            self._lost = True
            return False


def _is_here(address):
    """Whether an address is one of this host's."""
    try:
        for *_, where in socket.getaddrinfo(address, None, type=socket.SOCK_STREAM):
            with socket.socket(socket.AF_INET6 if ":" in str(where[0]) else socket.AF_INET) as trial:
                trial.bind((where[0], 0))
                return True
    except OSError:
        pass
    return False


class _Job:
    """Makes the processes of each round out of the options."""

    def __init__(self, args):
        self.args, self.count = args, _processes(args.nproc_per_node)
        self.meeting, self.number = _Meeting(args), -1
        self.id = args.rdzv_id if args.rdzv_id != "none" or not args.standalone else str(uuid.uuid4())

    def workers(self, number):
        if self.number >= 0:
            self.meeting.give_up(self.number)
        self.number = number
        place, counts = self.meeting.join(number, self.count)
        first, world = sum(counts[:place]), sum(counts)
        args = self.args
        redirects, tees = _streams_of(args.redirects, self.count), _streams_of(args.tee, self.count)
        shown = args.local_ranks_filter.split(",") if args.local_ranks_filter else None
        workers = []
        for local in range(self.count):
            streams = set(redirects[local]) | set(tees[local])
            hidden = shown is not None and str(local) not in shown
            kept = ("stdout", "stderr") if hidden else streams
            workers.append(
                Worker(
                    first + local,
                    local,
                    _command(args, local),
                    self._environment(first + local, local, world, place, len(counts)),
                    {stream: self._log(number, local, f"{stream}.log") for stream in kept},
                    () if hidden else tees[local],
                    error_file=self._log(number, local, "error.json") if args.log_dir else "",
                )
            )
        return workers

    def _log(self, number, local, name):
        if self.args.log_dir is None:
            return os.devnull
        return os.path.join(self.args.log_dir, self.id, f"attempt_{number}", str(local), name)

    def _environment(self, rank, local, world, place, hosts):
        own = {
            "RANK": rank,
            "LOCAL_RANK": local,
            "WORLD_SIZE": world,
            "LOCAL_WORLD_SIZE": self.count,
            "GROUP_RANK": place,
            "GROUP_WORLD_SIZE": hosts,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": world,
            "ROLE_NAME": self.args.role,
            "MASTER_ADDR": self.meeting.address,
            "MASTER_PORT": self.meeting.port,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RUN_ID": self.id,
        }
        if self.meeting.token:
            own["RUSHLIGHT_STORE_TOKEN"] = self.meeting.token
        if self.count > 1:  # a process's threads would only stand in the others' way
            own["OMP_NUM_THREADS"] = os.environ.get("OMP_NUM_THREADS", "1")
        return {**os.environ, **{name: str(value) for name, value in own.items()}}


def run(args):
    """Run the job that parsed options describe; raises ChildFailedError when it fails."""
    job = _Job(args)
    agent = Agent(
        args.training_script,
        job.workers,
        args.max_restarts,
        args.monitor_interval,
        lambda: job.meeting.was_given_up(job.number),
    )
    try:
        agent.run()
    except BaseException:
        job.meeting.give_up(job.number)
        raise


@record
def main(args=None):
    """The command line; ends with status 1 and the first failing process's traceback when the job fails."""
    try:
        run(get_args_parser().parse_args(args))
    except ChildFailedError as failed:
        print(failed, file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
