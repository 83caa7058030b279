"""Why a worker ended, and loaders from elsewhere, which are told of it by a signal."""

_HINTS = {
    "SIGKILL": " If nobody killed it, the system did, because memory ran out.",
    "SIGBUS": " It read memory that is not there any more, such as the end of a file that was cut.",
}


def describe_exit(process):
    """One or two sentences about a process that should not have ended."""
    code = process.exitcode
    if code is None:
        return f"DataLoader worker (pid {process.pid}) exited unexpectedly: it closed its connection."
    if code < 0:
        import signal

        number = -code
        name = signal.strsignal(number) or f"Unknown signal {number}"
        hints = {getattr(signal, key): hint for key, hint in _HINTS.items()}
        return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}.{hints.get(number, '')}"
    return (
        f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Something in it "
        "called exit, or its initialisation failed; see what it printed."
    )


# --- what loaders of other packages call

_watched: "dict[int, tuple[int, ...]]" = {}  # a loader's key -> its workers
_listening = False


def _set_worker_pids(key, pids):
    if key in _watched:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    _watched[key] = tuple(pids)


def _remove_worker_pids(key):
    if key not in _watched:
        raise ValueError("Cannot find worker information for _BaseDataLoaderIter with id " + str(key))
    del _watched[key]


def _error_if_any_worker_fails():
    """Raises if a worker was killed or ended with an error, which stays to be waited for."""
    import os
    from types import SimpleNamespace

    for key, pids in list(_watched.items()):
        for pid in pids:
            try:
                ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # waited for by its owner
                continue
            if ended is None or not ended.si_status:
                continue
            code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
            _watched[key] = ()  # one report is enough
            raise RuntimeError(describe_exit(SimpleNamespace(pid=pid, exitcode=code)))


def _set_SIGCHLD_handler():
    """Lets the main thread raise as soon as a worker fails."""
    global _listening
    import signal
    import threading

    if _listening or threading.current_thread() is not threading.main_thread():
        return
    before = signal.getsignal(signal.SIGCHLD)

    def handler(number, frame):
        _error_if_any_worker_fails()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGCHLD, handler)
    _listening = True


def _set_worker_signal_handlers():
    """A worker that dies of a bad access says where it was."""
    import faulthandler

    faulthandler.enable()
