"""The flight recorder: the last collectives of this process, with who called them, from where, and when.

Always on: an entry is a list of plain values, a few hundred bytes, and costs one or two microseconds.
TORCH_FR_BUFFER_SIZE (or TORCH_NCCL_TRACE_BUFFER_SIZE) sets how many are kept, 0 none.
"""

import itertools
import json
import os
import socket
import sys
import threading
import weakref
from collections import deque
from time import time_ns

from rushlight._command.names import is_own_frame

# Places in an entry.
(ID, GROUP, NUMBER, WHAT, TENSORS, CODE, LINE, CREATED, STARTED, ENDED, PEER, TIMEOUT, ERROR, BACKEND) = (
    range(14)
)


def _capacity():
    for name in ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"):
        if name in os.environ:
            return max(0, int(os.environ[name]))
    return 2000


entries: deque = deque(maxlen=_capacity())
groups: dict = {}  # name -> (description, global ranks)
_alive: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # name -> group
_MANY = 100
_ids = itertools.count()


def name_group(name, group):
    """Remember a group for as long as it lives, or an entry names it."""
    groups[name], _alive[name] = (group.group_desc, group._ranks), group
    if len(groups) > _MANY:
        used = {entry[GROUP] for entry in list(entries)}
        for gone in [n for n in groups if n not in used and n not in _alive]:
            del groups[gone]


def begin(engine, number, what, tensors, milliseconds, peer=None):
    """A new entry, for a call that was just made; its start and end are set by the engine that runs it."""
    frame = sys._getframe(2)
    while frame.f_back is not None and is_own_frame(frame):
        frame = frame.f_back
    entry = [
        next(_ids),
        engine.group_name,
        number,
        what,
        [(t.dtype, t.shape) for t in tensors],
        frame.f_code,
        frame.f_lineno,
        time_ns(),
        None,
        None,
        peer,
        milliseconds,
        None,
        engine.name,
    ]
    entries.append(entry)
    return entry


# --- reading


def described(tensors):
    """ "float32[2, 3], int64[]" """
    return ", ".join(f"{_dtype(dtype)}{list(shape)}" for dtype, shape in tensors)


def _dtype(dtype):
    return str(dtype).split(".")[-1]


def place(entry):
    return f"{entry[CODE].co_filename}:{entry[LINE]}"


def state(entry):
    if entry[ERROR] is not None:
        return "failed"
    if entry[ENDED] is not None:
        return "completed"
    return "scheduled" if entry[STARTED] is None else "started"


def as_dict(entry):
    """An entry under PyTorch's names."""
    name, message = entry[GROUP], entry[NUMBER] is None
    shapes = [list(shape) for _, shape in entry[TENSORS]]
    dtypes = [_dtype(dtype) for dtype, _ in entry[TENSORS]]
    end = entry[ENDED]
    return {
        "record_id": entry[ID],
        "pg_id": int(name) if name.isdigit() else 0,
        "process_group": (name, groups.get(name, ("undefined",))[0]),
        "collective_seq_id": 0 if message else entry[NUMBER],
        "p2p_seq_id": entry[ID] if message else 0,
        "op_id": entry[ID],
        "profiling_name": f"{entry[BACKEND]}:{entry[WHAT]}",
        "frames": [
            {
                "name": getattr(entry[CODE], "co_qualname", entry[CODE].co_name),
                "filename": entry[CODE].co_filename,
                "line": entry[LINE],
            }
        ],
        "input_sizes": shapes,
        "input_dtypes": dtypes,
        "output_sizes": shapes,
        "output_dtypes": dtypes,
        "peer": entry[PEER],
        "state": state(entry),
        "time_created_ns": entry[CREATED],
        "time_discovered_started_ns": entry[STARTED],
        "time_discovered_completed_ns": end,
        "duration_ms": None if end is None or entry[STARTED] is None else (end - entry[STARTED]) / 1e6,
        "retired": end is not None,
        "timeout_ms": entry[TIMEOUT],
        "is_p2p": message,
        "error": entry[ERROR],
    }


def contents(rank=None, only_active=False):
    """All that is recorded, under PyTorch's names."""
    kept = [e for e in list(entries) if not (only_active and e[ENDED] is not None)]
    last: dict = {}
    for entry in list(entries):
        if entry[NUMBER] is not None:
            last.setdefault(entry[GROUP], {})["last_enqueued_collective"] = entry[NUMBER]
            if entry[STARTED] is not None:
                last[entry[GROUP]]["last_started_collective"] = entry[NUMBER]
            if entry[ENDED] is not None:
                last[entry[GROUP]]["last_completed_collective"] = entry[NUMBER]
    return {
        "version": "2.10",
        "rank": rank,
        "host_name": socket.gethostname(),
        "pid": os.getpid(),
        "pg_config": {
            name: {"name": name, "desc": text, "ranks": json.dumps(ranks)}
            for name, (text, ranks) in groups.items()
        },
        "pg_status": {name: status for name, status in last.items()},
        "entries": [as_dict(entry) for entry in kept],
    }


def dump_path(rank):
    """Where a dump goes that nobody asked for by name; None where none is wanted."""
    for name in ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"):
        if os.environ.get(name):
            return f"{os.environ[name]}{rank}"
    return None


def dump(path, rank):
    """Write all that is recorded to a file, at once: several threads of a process may do so."""
    beside = f"{path}.{os.getpid()}.{threading.get_ident()}.part"
    with open(beside, "w") as file:
        json.dump(contents(rank), file)
    os.replace(beside, path)


def dump_if_wanted(rank):
    path = dump_path(rank)
    if path is not None:
        dump(path, rank)
