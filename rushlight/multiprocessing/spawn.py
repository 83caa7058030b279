"""Starting a function in several processes, and failing as a whole when one of them fails."""

import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import warnings

from rushlight import _C

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_TERMINATE_WITHIN = 30  # seconds from SIGTERM to SIGKILL

log = logging.getLogger("torch.multiprocessing.spawn")


class ProcessException(Exception):
    """A process of a group failed; ``error_index`` and ``error_pid`` say which."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception; the text holds its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code other than 0."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _wrap(fn, i, args, error_file):
    """What each process runs."""
    _C._set_pdeathsig(signal.SIGINT)  # no process outlives the one that started it
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent ends us, and knows why
    except Exception:
        import traceback

        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


class ProcessContext:
    """A group of running processes."""

    def __init__(self, processes, error_files):
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        return [int(process.pid) for process in self.processes]

    def _join_procs_with_timeout(self, timeout):
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def join(self, timeout=None, grace_period=None):
        """Waits until all processes ended (True), one failed (raises, after ending the others), or something
        else happened (False).

        Args:
            timeout: seconds to wait.
            grace_period: seconds that the others get to end by themselves when one fails, and again between
                SIGTERM and SIGKILL.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout):
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_all(grace_period)
        self._raise_for(failed)

    def _end_all(self, grace_period):
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_procs_with_timeout(_TERMINATE_WITHIN if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                log.warning(
                    "Unable to shutdown process %s via SIGTERM , forcefully exiting via SIGKILL", process.pid
                )
                process.kill()
            process.join()

    def _raise_for(self, index):
        process = self.processes[index]
        if os.access(self.error_files[index], os.R_OK):
            with open(self.error_files[index], "rb") as file:
                trace = pickle.load(file)
            os.unlink(self.error_files[index])
            text = f"\n\n-- Process {index:d} terminated with the following error:\n{trace}"
            raise ProcessRaisedException(text, index, process.pid)
        code = process.exitcode
        name = _signal_name(-code) if code < 0 else None
        how = f"signal {name}" if name else f"exit code {code:d}"
        raise ProcessExitedException(
            f"process {index:d} terminated with {how}",
            error_index=index,
            error_pid=process.pid,
            exit_code=code,
            signal_name=name,
        )


class SpawnContext(ProcessContext):
    """The former name of :class:`ProcessContext`."""

    def __init__(self, processes, error_files):
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def _error_file():
    """The name of a file that does not exist yet: a process that raises leaves its traceback there."""
    with tempfile.NamedTemporaryFile(prefix="rushlight-errorfile-", suffix=".pickle") as file:
        return file.name


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` in ``nprocs`` processes started by any method; see :func:`spawn`."""
    context = multiprocessing.get_context(start_method)
    error_files = [_error_file() for _ in range(nprocs)]
    processes = [
        context.Process(target=_wrap, args=(fn, i, args, error_files[i]), daemon=daemon)
        for i in range(nprocs)
    ]

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(max_workers=max(1, nprocs)) as executor:
            list(executor.map(lambda process: process.start(), processes))
    else:
        for process in processes:
            process.start()
    running = ProcessContext(processes, error_files)
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` for each ``i < nprocs`` in a process of its own.

    When one fails, the others are ended, and an exception that holds its traceback or the signal that ended
    it is raised here. With ``join=False`` the running processes are returned as a :class:`ProcessContext`.
    """
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
