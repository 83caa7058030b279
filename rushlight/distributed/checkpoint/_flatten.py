"""Nested state dicts as flat ones, and back; names are PyTorch's."""

from collections.abc import Mapping
from typing import Any

from ... import Tensor


def _goes_on(value):
    """Whether a list is taken apart: only for tensors and dicts within."""
    if isinstance(value, Mapping):
        return True
    if not isinstance(value, list):
        return False
    return any(isinstance(entry, Tensor) or _goes_on(entry) for entry in value)


def flatten(state, prefix=()):
    """{path: leaf} of nested dicts, and of lists with tensors or dicts; a path is a tuple of keys."""
    if isinstance(state, Mapping):
        items: Any = ((str(key), value) for key, value in state.items())
    elif _goes_on(state):
        items = enumerate(state)
    else:
        return {prefix: state}
    flat = {}
    for key, value in items:
        flat |= flatten(value, (*prefix, key))
    return flat


def name_of(path):
    """The path as text: keys between points."""
    return ".".join(map(str, path))


def put(state, path, value):
    """Replace the leaf at a path."""
    for key in path[:-1]:
        state = state[_key(state, key)]
    state[_key(state, path[-1])] = value


def _key(state, key):
    """The key itself, where a path has its text."""
    if isinstance(state, list) or key in state:
        return key
    return next(own for own in state if str(own) == key)


def nested(flat):
    """Nested dicts and lists from {path: leaf}."""
    root: dict = {}
    for path, value in flat.items():
        at = root
        for key in path[:-1]:
            at = at.setdefault(key, {})
        at[path[-1]] = value
    return _lists(root)


def _lists(value):
    if not isinstance(value, dict):
        return value
    made = {key: _lists(item) for key, item in value.items()}
    if made and all(isinstance(key, int) for key in made):
        return [made[key] for key in sorted(made)]
    return made


def with_states(state):
    """The state dict with every object that has a state_dict() replaced by it."""
    return {key: v.state_dict() if hasattr(v, "state_dict") else v for key, v in state.items()}
