"""Nested state dicts as flat ones, and back."""


def flatten(state, prefix=()):
    """{path: leaf} of nested dicts and lists; a path is a tuple of keys."""
    if isinstance(state, dict) and state:
        items = state.items()
    elif isinstance(state, (list, tuple)) and state and not prefix == ():
        items = enumerate(state)
    else:
        return {prefix: state} if prefix else {}
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
        state = state[key]
    if isinstance(state, tuple):
        raise TypeError(f"the value at {name_of(path)} lies in a tuple, which cannot be changed; use a list")
    state[path[-1]] = value


def with_states(state):
    """The state dict with every object that has a state_dict() replaced by it."""
    return {key: v.state_dict() if hasattr(v, "state_dict") else v for key, v in state.items()}
