"""What a fuzzer may take of the machine: a case without end or bound ends its own process alone."""

import faulthandler
import resource
import signal
from pathlib import Path

SPARE_MEMORY = 4 << 30
SECONDS = 120  # of the processor, for one step of a case


def limit_memory(spare=SPARE_MEMORY):
    """Who asks for more than `spare` bytes beside what the process maps now gets an error."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if used < 1 << 38:  # the address sanitizer maps terabytes; it has an option of its own
        limit = used + spare if hard == resource.RLIM_INFINITY else min(used + spare, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


def start_clock(seconds=SECONDS):
    """What begins now ends the process, once it has computed so long or waited five times as long.

    The stack is told. The signals' own action is taken, so that a loop within a kernel ends too.
    """
    for timer, number, factor in (
        (signal.ITIMER_PROF, signal.SIGPROF, 1),
        (signal.ITIMER_REAL, signal.SIGALRM, 5),
    ):
        faulthandler.register(number, chain=True)
        signal.setitimer(timer, seconds * factor)
