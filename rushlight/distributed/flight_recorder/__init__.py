"""The flight recorder: what the last collectives of a process were, and how those of all ranks fit together.

Every process keeps its last 2000 calls (TORCH_FR_BUFFER_SIZE), always. `dump(path)` writes them; where
TORCH_FR_DUMP_TEMP_FILE is set, every rank writes them to that name with its rank behind when a collective
fails on any rank. `python -m rushlight.distributed.flight_recorder DUMPS -o timeline.html` draws all ranks
over time and says where they part.
"""

from .. import _recorder
from ._analysis import analyse, read_dumps
from ._timeline import draw, main

__all__ = ["analyse", "contents", "draw", "dump", "main", "read_dumps", "reset"]


def _rank():
    from .._process_group import _world

    return None if _world.default_pg is None else _world.default_pg.rank()


def contents(only_active=False):
    """What is recorded in this process, as a dict under the names of PyTorch's flight recorder."""
    return _recorder.contents(_rank(), only_active)


def dump(path):
    """Write what is recorded in this process to a JSON file."""
    _recorder.dump(path, _rank())


def reset():
    """Forget what is recorded."""
    _recorder.entries.clear()
