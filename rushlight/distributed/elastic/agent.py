"""One host's part of a job: starts its processes, watches them, and starts them again after a failure."""

import os
import signal
import string
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

from ._launcher import LAUNCHER
from .multiprocessing.errors import ChildFailedError, ProcessFailure

_GRACE_SECONDS = 30


@dataclass
class Worker:
    """One process to start: its command, environment and where its output goes (None: ours)."""

    rank: int
    local_rank: int
    command: list
    environment: dict
    files: dict = field(default_factory=dict)  # "stdout", "stderr" -> path
    tee: tuple = ()  # which of them are shown as well
    process: subprocess.Popen | None = None
    error_file: str = ""


class Agent:
    """Runs `workers_of_round(number) -> list of Worker` until one round succeeds.

    Args:
        name: of the program, for messages.
        workers_of_round: called once all hosts are ready for round 0, 1, ...
        max_restarts: how many rounds may fail before the last one counts.
        interval: seconds between looks at the processes.
        failed_elsewhere: asked in every look whether another host gave the round up.
    """

    def __init__(self, name, workers_of_round, max_restarts=0, interval=0.1, failed_elsewhere=lambda: False):
        self._name, self._workers_of_round = name, workers_of_round
        self._max_restarts, self._interval = max_restarts, interval
        self._failed_elsewhere = failed_elsewhere
        self._workers, self._signal = [], None
        self._folder = tempfile.TemporaryDirectory(prefix="rushlight-run-")
        self._readers = []

    def run(self):
        """Return when all processes ended well; raises ChildFailedError, or SystemExit after a signal."""
        handled = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
        previous = {number: signal.signal(number, self._on_signal) for number in handled}
        try:
            for number in range(self._max_restarts + 1):
                failures = self._round(number)
                if failures is None:
                    return
                if number < self._max_restarts:
                    said = f"{len(failures)} process(es) failed" if failures else "another host failed"
                    print(f"{self._name}: {said}, starting again ({number + 1} of {self._max_restarts})",
                          file=sys.stderr, flush=True)  # fmt: skip
            if failures:
                raise ChildFailedError(self._name, failures)
            raise SystemExit(f"{self._name}: another host gave up")
        finally:
            self._stop(signal.SIGTERM)
            self._folder.cleanup()
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _on_signal(self, number, _):
        self._signal = number

    def _round(self, number):
        """Run one round; None when it went well, else the failures by rank (of this host)."""
        self._workers = self._workers_of_round(number)
        for worker in self._workers:
            self._start(worker, number)
        while True:
            if self._signal is not None:
                number, self._signal = self._signal, None
                self._stop(number)
                raise SystemExit(128 + number)
            codes = {worker.rank: worker.process.poll() for worker in self._workers}
            failed = {w.rank: self._failure(w) for w in self._workers if codes[w.rank] not in (None, 0)}
            if failed or self._failed_elsewhere():
                self._stop(signal.SIGTERM)
                return failed
            if all(code == 0 for code in codes.values()):
                self._finish_output()
                return None
            time.sleep(self._interval)

    def _start(self, worker, number):
        if worker.error_file:
            os.makedirs(os.path.dirname(worker.error_file), exist_ok=True)
        else:
            worker.error_file = os.path.join(self._folder.name, f"{worker.rank}-{number}.json")
        environment = {
            **worker.environment,
            "TORCHELASTIC_RESTART_COUNT": str(number),
            "TORCHELASTIC_MAX_RESTARTS": str(self._max_restarts),
            "TORCHELASTIC_ERROR_FILE": worker.error_file,
            LAUNCHER: str(os.getpid()),
        }
        streams = {}
        for stream in ("stdout", "stderr"):
            path = worker.files.get(stream)
            if path is not None:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            if stream in worker.tee:
                streams[stream] = subprocess.PIPE
            elif path is not None:
                streams[stream] = open(path, "wb")
        worker.process = subprocess.Popen(worker.command, env=environment, start_new_session=True, **streams)
        for stream, target in streams.items():
            if target is not subprocess.PIPE:
                target.close()
                continue
            reader = threading.Thread(target=_copy_lines, args=(worker, stream), daemon=True)
            reader.start()
            self._readers.append(reader)

    def _failure(self, worker):
        failure = ProcessFailure(
            worker.local_rank, worker.process.pid, worker.process.returncode, worker.error_file, worker.rank
        )
        try:  # the file's time tells who was first better than our looking does
            failure.timestamp = os.path.getmtime(worker.error_file)
        except OSError:
            failure.timestamp = time.time()
        return failure

    def _stop(self, number):
        """End what still runs, together with what it started, at the latest after half a minute."""
        running = [w.process for w in self._workers if w.process and w.process.poll() is None]
        for process in running:
            _signal_group(process, number)
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in running:
            try:
                process.wait(max(deadline - time.monotonic(), 0.1))
            except subprocess.TimeoutExpired:
                _signal_group(process, signal.SIGKILL)
                process.wait()
        self._finish_output()

    def _finish_output(self):
        for reader in self._readers:
            reader.join(5)
        self._readers = []


def _signal_group(process, number):
    try:
        os.killpg(process.pid, number)
        os.killpg(process.pid, signal.SIGCONT)  # who was stopped gets signals when it goes on
    except ProcessLookupError:
        pass


def _copy_lines(worker, stream):
    """Show a process's output line by line, each with whose it is, and keep it in its file."""
    template = os.environ.get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE") or "[${role_name}${local_rank}]:"
    role = worker.environment.get("ROLE_NAME", "default")
    prefix = string.Template(template).safe_substitute(
        role_name=role, rank=worker.rank, local_rank=worker.local_rank
    )
    source, target = getattr(worker.process, stream), getattr(sys, stream)
    path = worker.files.get(stream)
    with open(path or os.devnull, "wb") as file, source:
        for line in source:
            file.write(line)
            target.write(prefix + line.decode(errors="replace"))
            target.flush()
