"""What a process knows of the launcher that started it."""

import os
import signal

LAUNCHER = "RUSHLIGHT_LAUNCHER_PID"


def end_with_launcher() -> None:
    """In a process that a launcher started: end when it is gone, for nobody would start the job again."""
    from rushlight._C import _set_pdeathsig

    launcher = os.environ.get(LAUNCHER)
    if launcher is None or int(launcher) != os.getppid():
        return
    _set_pdeathsig(signal.SIGTERM)
    if int(launcher) != os.getppid():
        os.kill(os.getpid(), signal.SIGTERM)
