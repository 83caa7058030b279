"""Where the ranks of a job part: dumps of several ranks, matched call by call."""

import json
import os

_BY_RANK = {"all_to_all", "gather", "scatter"}  # whose tensors may differ between ranks


def read_dumps(paths):
    """The dumps by rank, from files and folders of files; raises ValueError for files that are none.

    What a process that was killed had begun to write (`.part`) is passed over."""
    files = []
    for path in paths:
        names = sorted(os.listdir(path)) if os.path.isdir(path) else [""]
        files += [os.path.join(path, name) if name else path for name in names if not name.endswith(".part")]
    dumps = {}
    for path in files:
        try:
            with open(path) as file:
                dump = json.load(file)
            dumps[dump["rank"] if dump["rank"] is not None else len(dumps)] = dump
            dump["entries"], dump["pg_config"]
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} is not a dump of the flight recorder: {error!r}") from None
    return dict(sorted(dumps.items()))


def operation(entry):
    return entry["profiling_name"].partition(":")[2]


def describe(entry):
    shapes = zip(entry["input_dtypes"], entry["input_sizes"])
    tensors = ", ".join(f"{dtype}{shape}" for dtype, shape in shapes)
    frame = entry["frames"][0] if entry["frames"] else {"filename": "?", "line": 0}
    return f"{operation(entry)}({tensors}) at {frame['filename']}:{frame['line']}"


def _fingerprint(entry):
    what = operation(entry)
    return (what,) if what in _BY_RANK else (what, entry["input_sizes"], entry["input_dtypes"])


def _calls(dumps, group):
    """By rank, the group's collectives by number."""
    return {
        rank: {
            entry["collective_seq_id"]: entry
            for entry in dump["entries"]
            if entry["process_group"][0] == group and not entry["is_p2p"]
        }
        for rank, dump in dumps.items()
        if group in dump["pg_config"] and rank in json.loads(dump["pg_config"][group]["ranks"])
    }


def _first_difference(group, calls):
    """What is wrong with the first call that the ranks do not all make alike and finish, or None."""
    oldest = max((min(numbered, default=0) for numbered in calls.values()), default=0)
    newest = max((max(numbered, default=0) for numbered in calls.values()), default=0)
    for number in range(oldest, newest + 1):
        made = {rank: numbered[number] for rank, numbered in calls.items() if number in numbered}
        missing = sorted(set(calls) - set(made))
        if missing:
            rank, entry = next(iter(made.items()))
            return (
                f"group {group}, call {number}: ranks {missing} did not make it; rank {rank} is in "
                f"{describe(entry)}. " + " ".join(_last(rank, calls[rank]) for rank in missing)
            )
        if len({repr(_fingerprint(entry)) for entry in made.values()}) > 1:
            said = "; ".join(f"rank {rank}: {describe(entry)}" for rank, entry in made.items())
            return f"group {group}, call {number}: the ranks make different calls. {said}"
        unfinished = [rank for rank, entry in made.items() if entry["state"] != "completed"]
        if unfinished:
            entry = made[unfinished[0]]
            return f"group {group}, call {number}: ranks {unfinished} did not finish {describe(entry)}"
    return None


def _last(rank, numbered):
    if not numbered:
        return f"Rank {rank} made no call."
    return f"Rank {rank}'s last call was {describe(numbered[max(numbered)])}."


def analyse(dumps):
    """Sentences about where the ranks part, a list; empty if all their calls fit together and ended."""
    groups = sorted({group for dump in dumps.values() for group in dump["pg_config"]})
    found = [_first_difference(group, _calls(dumps, group)) for group in groups]
    return [sentence for sentence in found if sentence is not None]
