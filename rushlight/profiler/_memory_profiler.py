"""Which memory was in use for what: the blocks of a profile, and timelines of them."""

import json
from bisect import bisect_left
from dataclasses import dataclass
from enum import Enum, auto

from rushlight.autograd._profiler_trace import open_text

__all__ = ["Action", "Block", "Category", "MemoryTimeline"]


class Category(Enum):
    """What memory is for; the numbers are PyTorch's."""

    INPUT = auto()
    TEMPORARY = auto()
    ACTIVATION = auto()
    GRADIENT = auto()
    AUTOGRAD_DETAIL = auto()
    PARAMETER = auto()
    OPTIMIZER_STATE = auto()


class Action(Enum):
    """What happens to a block."""

    PREEXISTING = auto()
    CREATE = auto()
    INCREMENT_VERSION = auto()
    DESTROY = auto()


# The order of the columns in exported files, PyTorch's; None is memory of unknown use.
_ORDER = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)
_COLUMN = {category: column for column, category in enumerate(_ORDER)}


@dataclass
class Block:
    """A block of memory. Times are the recorder's, in nanoseconds; None: before, or after, the profile."""

    bytes: int
    start: int | None
    end: int | None = None
    category: Category | None = None
    operator: str = ""
    module: str = ""


@dataclass
class _Moment:
    """Inside of which events something happened on a thread."""

    operator: object = None  # the outermost operator
    innermost: object = None
    node: object = None  # of a backward pass
    module: str = ""
    is_optimizer: bool = False
    is_loader: bool = False


class _Places:
    """Follows a thread's events along the time, which only goes on."""

    def __init__(self, events):
        self._coming = list(reversed(events))  # by start, the outer of two equal ones first
        self._open = []

    def at(self, us):
        while self._coming and self._coming[-1].time_range.start <= us:
            event = self._coming.pop()
            self._leave(event.time_range.start)
            self._open.append(event)
        self._leave(us)
        moment = _Moment()
        for event in self._open:
            self._note(moment, event)
        return moment

    def _leave(self, us):
        while self._open and self._open[-1].time_range.end < us:
            self._open.pop()

    @staticmethod
    def _note(moment, event):
        name = event.name
        if name.startswith("nn.Module: "):
            moment.module = name[11:]
        elif name.startswith("Optimizer.step#"):
            moment.is_optimizer = True
        elif name.startswith("enumerate(DataLoader)"):
            moment.is_loader = True
        elif name.startswith("autograd::engine"):
            moment.node = event
        elif not event.is_user_annotation and not event.is_python_function:
            moment.operator = moment.operator or event
            moment.innermost = event


def _blocks(events, trace):
    """(block, where it was made, where it was given back) of every block that the recorder saw."""
    by_thread = {}
    for event in events:
        by_thread.setdefault(event.thread, []).append(event)
    places = {thread: _Places(found) for thread, found in by_thread.items()}
    nowhere = _Places([])
    alive, seen = {}, []
    for time, thread, address, bytes in trace.memory:
        moment = places.get(thread, nowhere).at((time - trace.started) / 1000)
        if bytes > 0:
            name = moment.innermost.name if moment.innermost else ""
            alive[address] = (Block(bytes, time, operator=name, module=moment.module), moment)
            continue
        block, made = alive.pop(address, None) or (_older(trace, address, -bytes), None)
        block.end = time
        seen.append((block, made, moment))
    for address, (block, made) in alive.items():
        known = trace.known[1].get(address)
        if known is not None:
            block.category = Category[known[0].upper()]
        seen.append((block, made, None))
    return seen


def _older(trace, address, bytes):
    known = trace.known[0].get(address)
    return Block(bytes, None, category=Category[known[0].upper()] if known else None)


class MemoryTimeline:
    """The blocks of a recording and what each was for.

    Parameters, their gradients and optimizers' states are known by their addresses. Of all else the place
    tells: what an operator gives back itself is temporary, what is alive when a backward pass begins is an
    activation.
    """

    def __init__(self, events, trace):
        self.trace = trace
        seen = _blocks(events, trace)
        passes = sorted(e.time_range.start for e in events if e.name.startswith("autograd::engine"))
        for block, made, freed in seen:
            if block.category is None and made is not None:
                block.category = self._category(block, made, freed, passes)
        self.blocks = [block for block, _, _ in seen] + self._others(seen)
        self.blocks.sort(key=lambda block: block.start or 0)

    def _us(self, time):
        return (time - self.trace.started) / 1000

    def _category(self, block, made, freed, passes):
        if freed and made.operator is not None and freed.operator is made.operator:
            return Category.TEMPORARY
        if made.is_loader:
            return Category.INPUT
        if made.is_optimizer:
            return Category.TEMPORARY if freed and freed.is_optimizer else Category.OPTIMIZER_STATE
        if made.node is not None:
            if freed is not None and freed.node is made.node:
                return Category.TEMPORARY
            stays = freed is None or freed.node is None
            return Category.GRADIENT if stays else Category.AUTOGRAD_DETAIL
        if made.operator is None:
            return None
        after = bisect_left(passes, self._us(block.start))
        meets_backward = after < len(passes) and (block.end is None or passes[after] < self._us(block.end))
        if meets_backward or (freed is None and made.module):
            return Category.ACTIVATION
        return Category.TEMPORARY if freed else None

    def _others(self, seen):
        """What was there before and stayed: known blocks one by one, the rest in one piece."""
        here = {address for _, _, address, _ in self.trace.memory}
        stayed = [(c, n) for address, (c, n) in self.trace.known[0].items() if address not in here and n > 64]
        blocks = [Block(bytes, None, category=Category[category.upper()]) for category, bytes in stayed]
        counted = sum(b.bytes for b in blocks) + sum(b.bytes for b, made, _ in seen if made is None)
        rest = self.trace.allocated_before - counted
        return blocks + ([Block(rest, None)] if rest > 0 else [])

    def events(self):
        """(time, action, bytes, category) in the order of time; -1 for what was there before."""
        changes = []
        for block in self.blocks:
            action = Action.PREEXISTING if block.start is None else Action.CREATE
            changes.append((-1 if block.start is None else block.start, action, block.bytes, block.category))
            if block.end is not None:
                changes.append((block.end, Action.DESTROY, block.bytes, block.category))
        return sorted(changes, key=lambda change: change[0])

    def coalesced(self):
        """(times in microseconds, bytes by category at each); the first column is zero, as PyTorch has it."""
        times, sizes = [], []
        for time, action, bytes, category in self.events():
            us = int((self.trace.started if time < 0 else time) / 1000)
            if not times or times[-1] != us:
                times.append(us)
                sizes.append(list(sizes[-1]) if sizes else [0] * (len(_ORDER) + 1))
            sizes[-1][_COLUMN[category] + 1] += -bytes if action is Action.DESTROY else bytes
        return times, sizes

    def export(self, path):
        with open_text(path) as file:
            json.dump(self.coalesced(), file)

    def export_raw(self, path):
        number = {action: i for i, action in enumerate(Action)}
        rows = [
            (time, number[action], -bytes if action is Action.DESTROY else bytes, _COLUMN[category])
            for time, action, bytes, category in self.events()
        ]
        with open_text(path) as file:
            json.dump(rows, file)

    def export_html(self, path):
        from rushlight.viz._page import write_page

        write_page(path, {"traceEvents": [], "memory": self.blocks_for_page()}, "Memory timeline")

    def blocks_for_page(self):
        """The blocks as the viewer reads them."""
        names = {"": 0}
        begin, place = self.trace.place(self.trace.started), self.trace.place
        rows = []
        for block in self.blocks:
            start = begin if block.start is None else place(block.start)
            operator = "before the profile" if block.start is None else block.operator
            texts = [names.setdefault(text, len(names)) for text in (operator, block.module)]
            end = None if block.end is None else place(block.end)
            rows.append([start, end, block.bytes, _COLUMN[block.category], *texts])
        last = max((time for time, *_ in self.trace.memory), default=self.trace.started)
        categories = [category.name.lower() if category else "unknown" for category in _ORDER]
        return {
            "start": begin,
            "end": place(last),
            "categories": categories,
            "names": list(names),
            "blocks": rows,
        }
