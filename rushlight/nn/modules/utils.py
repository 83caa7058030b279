"""Small helpers that modules share."""

from rushlight.nn._ntuple import _ntuple, _pair, _quadruple, _single, _triple  # noqa: F401

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _reverse_repeat_tuple(t, n):
    """The items of t backwards, each n times: how padding per dimension becomes an argument of `pad`."""
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size, defaults):
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    return [v if v is not None else d for v, d in zip(out_size, defaults[-len(out_size) :])]


def consume_prefix_in_state_dict_if_present(state_dict, prefix):
    """Strip prefix (such as ``module.``) from the keys of state_dict and of its metadata, in place."""
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key[len(prefix) :]] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for key in list(metadata):
        # The root's own entry has the prefix without its dot.
        if key and (key == prefix.replace(".", "") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
