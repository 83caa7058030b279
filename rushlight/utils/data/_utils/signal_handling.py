"""Why a worker ended."""

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
