"""Ways through the tree that a finished profile has."""

from collections import deque

__all__ = ["traverse_bfs", "traverse_dfs"]


def _walk(tree, next_fn, children_fn, reverse):
    arrange = reversed if reverse else iter
    waiting = deque(arrange(tree))
    while waiting:
        event = next_fn(waiting)
        yield event
        waiting.extend(arrange(children_fn(event)))


def _inside(event):
    return event.children


def traverse_dfs(tree, *, next_fn=deque.pop, children_fn=_inside, reverse=True):
    """The entries, each followed by what ran inside of it."""
    yield from _walk(tree, next_fn, children_fn, reverse)


def traverse_bfs(tree, *, next_fn=deque.popleft, children_fn=_inside, reverse=False):
    """The entries level by level."""
    yield from _walk(tree, next_fn, children_fn, reverse)
