"""Who is stuck: when a collective fails, every rank says where it is.

Each process has a thread that waits for an alarm in the store of the job. A rank whose collective failed
raises the alarm; the others answer with their unfinished collectives, the last one they finished, and what
their main thread is doing. So the error tells which ranks are missing and where they are.
"""

import json
import sys
import threading
import time
from datetime import timedelta

from rushlight._command.names import is_own_frame

from . import _recorder
from ._errors import DistError
from ._recorder import ENDED, GROUP, NUMBER, TENSORS, WHAT

_PATIENCE = 3.0  # seconds to wait for the others' answers
_FRAMES = 3  # of the main thread's stack


def _here():
    """The innermost frames of the main thread, as file:line in function."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    places = []
    while frame is not None and len(places) < _FRAMES:
        code = frame.f_code
        if code.co_filename != threading.__file__ and not is_own_frame(frame):
            places.append(f"{code.co_filename}:{frame.f_lineno} in {code.co_name}")
        frame = frame.f_back
    return places


def _said_of(entry):
    return {
        "what": entry[WHAT],
        "number": entry[NUMBER],
        "tensors": _recorder.described(entry[TENSORS][:4]),
        "where": _recorder.place(entry),
        "seconds": (time.time_ns() - entry[_recorder.CREATED]) / 1e9,
    }


def _own_state():
    """By group, the unfinished calls and the last finished one; and where the main thread is."""
    by_group: dict = {}
    for entry in list(_recorder.entries):
        group = by_group.setdefault(entry[GROUP], {"open": [], "last": None})
        if entry[ENDED] is None:
            group["open"].append(_said_of(entry))
        else:
            group["last"] = _said_of(entry)
    return {"groups": by_group, "stack": _here()}


def _answer(store, alarm, rank):
    """What a rank said at an earlier alarm: it may have ended since, with an error of its own."""
    key = f"alarm/{alarm}/rank/{rank}"
    return json.loads(store.get(key)) if alarm >= 0 and store.check([key]) else None


class Watch:
    """The thread of one process, and the reports of those who raise the alarm.

    `store` is asked through handles of its own, for the program's may be blocked."""

    def __init__(self, store, rank, size):
        self._store, self.rank, self._size = store, rank, size
        self._next, self._ended = 0, threading.Event()
        self._ranks = {}  # group name -> global ranks
        self._handle = store.clone()
        self._thread = threading.Thread(target=self._serve, daemon=True, name="rushlight-watch")
        self._thread.start()

    def add_group(self, name, ranks):
        self._ranks[name] = list(ranks)

    def close(self):
        self._ended.set()
        shut = getattr(self._handle, "_disconnect", None)
        if shut is not None:
            shut()
        if threading.current_thread() is not self._thread:
            self._thread.join(1)

    def _serve(self):
        while not self._ended.is_set():
            alarm = f"alarm/{self._next}"
            try:
                if not self._wait(alarm):
                    continue
                self._next += 1
                self._handle.set(f"{alarm}/rank/{self.rank}", json.dumps(_own_state()))
                _recorder.dump_if_wanted(self.rank)
            except (DistError, OSError, RuntimeError):
                return  # the store is gone, and with it the job

    def _wait(self, key):
        if hasattr(self._handle, "_disconnect"):  # the server tells at once
            try:
                self._handle.wait([key], timedelta(hours=1))
            except DistError:
                return self._handle.check([key])
            return True
        self._ended.wait(0.25)
        return self._handle.check([key])

    def report(self, group, entry):
        """What the other ranks of the group are doing; called by a rank whose call `entry` failed."""
        ranks = self._ranks.get(group)
        if ranks is None:
            return ""
        try:
            states = self._states()
        except (DistError, OSError, RuntimeError) as error:
            return f".\nWhere the other ranks are is not known, as the store is gone ({error})"
        lines = [self._line(rank, index, states.get(rank), group, entry) for index, rank in enumerate(ranks)]
        missing = [str(r) for r, line in zip(ranks, lines) if line and not line[0]]
        named = f".\nMissing ranks: {', '.join(missing)}" if missing else ""
        return named + "".join(f"\n  {text}" for _, text in filter(None, lines))

    def _states(self):
        """Raise the alarm and read the answers of all ranks, as far as they come in time."""
        store, number = self._store.clone(), self._next
        alarm = f"alarm/{number}"
        store.set(alarm, b"1")
        deadline, states = time.monotonic() + _PATIENCE, {}
        for rank in range(self._size):
            key = f"{alarm}/rank/{rank}"
            try:
                store.wait([key], timedelta(seconds=max(deadline - time.monotonic(), 0.05)))
                states[rank] = json.loads(store.get(key))
            except DistError:
                states[rank] = _answer(store, number - 1, rank)
        getattr(store, "_disconnect", lambda: None)()
        return states

    def _line(self, rank, index, state, group, entry):
        """Whether a rank is in the same call as we, and what to say of it; None for ourselves."""
        if rank == self.rank:
            return None
        name = f"rank {index}" if index == rank else f"rank {index} (global rank {rank})"
        if state is None:
            return False, f"{name} gave no answer: it has ended, or is out of reach"
        known = state["groups"].get(group, {"open": [], "last": None})
        for call in known["open"]:
            text = f"{call['what']} ({call['tensors']}; call number {call['number']}) at {call['where']}"
            same = call["number"] == entry[NUMBER] and call["what"] == entry[WHAT]
            fits = same and call["tensors"] == _recorder.described(entry[TENSORS][:4])
            return fits, f"{name} has been in {text} for {call['seconds']:.1f} s"
        last = known["last"]
        text = f"{name} is in no call of this group"
        if last is not None:
            text += f"; its last was {last['what']} (call number {last['number']}) at {last['where']}"
        return False, text + (f"; it is at {', called from '.join(state['stack'])}" if state["stack"] else "")
