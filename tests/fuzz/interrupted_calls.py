"""Calls operators with counts and sizes that take forever, and interrupts them as Ctrl-C does.

    PYTHONPATH=. python tests/fuzz/interrupted_calls.py --only '^linalg'

The samples are those of operator_samples.py. One integer of a call, or one size of a tensor that repeats an
element, becomes a large count. A call may end, fail, or be interrupted: half a second later a signal's
handler raises KeyboardInterrupt, which has to arrive within two seconds of the processor.
"""

import argparse
import mmap
import os
import re
import resource
import signal
import struct
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from damage import EXPECTED  # noqa: E402
from hostile import describe, limit_memory  # noqa: E402
from operator_samples import Translator, database, functions, samples_of  # noqa: E402

BEFORE, WITHIN = 0.5, 2.0  # seconds of the processor
COUNTS = (10**6, 10**9, 10**12, 2**62)
SAMPLES = 4  # of an operator


def places(rl, value, path=()):
    """Where integers and tensors lie in arguments."""
    if isinstance(value, bool):
        return
    if isinstance(value, int) or (isinstance(value, rl.Tensor) and value.dim()):
        yield path
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from places(rl, part, (*path, key))
    elif isinstance(value, (list, tuple)):
        for at, part in enumerate(value):
            yield from places(rl, part, (*path, at))


def repeated(value, at, count):
    """A tensor whose dimension `at` is one element again and again, without memory."""
    return value.detach().narrow(at, 0, 1).expand(*value.shape[:at], count, *value.shape[at + 1 :])


def replaced(rl, value, path, count, at):
    if not path:
        return count if isinstance(value, int) else repeated(value, at, count)
    key, *rest = path
    if isinstance(value, dict):
        return {k: replaced(rl, v, rest, count, at) if k == key else v for k, v in value.items()}
    changed = [replaced(rl, v, rest, count, at) if i == key else v for i, v in enumerate(value)]
    return type(value)(changed) if type(value) in (list, tuple) else changed


def looked_up(value, path):
    for key in path:
        value = value[key]
    return value


class Search:
    def __init__(self, options):
        import torch

        import rushlight as rl

        warnings.simplefilter("ignore")
        rl.set_num_threads(1)
        torch.set_num_threads(1)
        self.rl, self.options = rl, options
        self.translator = Translator(rl, torch)
        self.names = [n for n in sorted(database()) if re.search(options.only, n) and n[0] != "_"]
        self.progress = mmap.mmap(-1, 16384)  # shared: calls, interrupted, the text of the call
        self.findings = []

    def run(self):
        """(calls, interrupted)"""
        calls = interrupted = 0
        for name in self.names:
            known = set()
            while True:
                self.progress[:16] = struct.pack("qq", 0, 0)
                pid = os.fork()
                if pid == 0:
                    self.work(name, known)
                    os._exit(0)
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                more, stopped, length = struct.unpack("qqq", self.progress[:24])
                calls, interrupted = calls + more, interrupted + stopped
                if not status:
                    break
                where, _, text = self.progress[24 : 24 + length].decode(errors="replace").partition("\n")
                known.add(where)
                reason = "not interrupted" if status == -signal.SIGVTALRM else f"ended with {status}"
                self.findings.append(f"{reason}: {text}")
                print("FOUND", self.findings[-1], flush=True)
        return calls, interrupted

    def cases(self, name):
        rl = self.rl
        text, function = functions(rl, name)[0]
        samples = samples_of(name, "float32", 64) or samples_of(name, "int64", 64)
        samples = [s for s in samples if self.translates(s)]
        for sample in samples[:: max(1, len(samples) // SAMPLES)][:SAMPLES]:

            def made(sample=sample):
                return self.translator.value(((sample.input, *sample.args), sample.kwargs))

            for path in list(places(rl, made())):
                value = looked_up(made(), path)
                ways = range(value.dim()) if isinstance(value, rl.Tensor) else [0]
                for at in ways:
                    if isinstance(value, rl.Tensor) and value.shape[at] < 1:
                        continue
                    for count in COUNTS:
                        place = path, count, at
                        make = lambda made=made, place=place: replaced(rl, made(), *place)
                        yield f"{path} {at}", text, function, make

    def translates(self, sample):
        try:
            self.translator.value(((sample.input, *sample.args), sample.kwargs))
            return True
        except EXPECTED:
            return False

    def work(self, name, known):
        if not functions(self.rl, name):
            return
        signal.signal(signal.SIGPROF, signal.default_int_handler)
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        cases = list(self.cases(name))
        limit_memory()
        calls = stopped = 0
        for where, text, function, make in cases:
            if where in known:
                continue
            try:
                args, kwargs = make()
            except EXPECTED:
                continue
            calls += 1
            words = f"{where}\n{self.words(text, args, kwargs)}"[:12000].encode()
            self.progress[: 24 + len(words)] = struct.pack("qqq", calls, stopped, len(words)) + words
            signal.setitimer(signal.ITIMER_VIRTUAL, BEFORE + WITHIN)
            signal.setitimer(signal.ITIMER_PROF, BEFORE)
            try:
                try:
                    function(*args, **kwargs)
                except EXPECTED:
                    pass
                signal.setitimer(signal.ITIMER_PROF, 0)
            except KeyboardInterrupt:
                stopped += 1
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        self.progress[:16] = struct.pack("qq", calls, stopped)

    def words(self, text, args, kwargs):
        parts = []
        for value in [*args, *kwargs.items()]:
            try:
                parts.append(describe(self.rl, value)[:300])
            except Exception:
                parts.append(f"<{type(value).__name__}>")
        return f"{text}({', '.join(parts)})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="regular expression for names of operators")
    search = Search(parser.parse_args())
    started = time.time()
    calls, interrupted = search.run()
    seconds = time.time() - started
    print(f"{calls} calls, {interrupted} interrupted, {len(search.findings)} findings, {seconds:.0f} s")
    return 1 if search.findings else 0


if __name__ == "__main__":
    sys.exit(main())
