"""Lists and dicts that refuse to change: a node's arguments are made of them, so that uses stay known."""

from rushlight.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]

_HELP = (
    "If you are attempting to modify the kwargs or args of a torch.fx.Node object,\n"
    "instead create a new copy of it and assign the copy to the node:\n"
    "    new_args = ... # copy and mutate args\n"
    "    node.args = new_args"
)


def _refuse(self, *args, **kwargs):
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_HELP}")


def _refusing(*names):
    return {name: _refuse for name in names}


class immutable_list(list):
    """A list that refuses to change."""

    vars().update(
        _refusing(
            *"__delitem__ __iadd__ __imul__ __setitem__".split(),
            *"append clear extend insert pop remove reverse sort".split(),
        )
    )

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses to change."""

    vars().update(
        _refusing("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update")
    )

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


_pytree.register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda values, context: immutable_list(values),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: ([(_pytree.SequenceKey(i), v) for i, v in enumerate(values)], None),
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    lambda values, keys: immutable_dict(zip(keys, values)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda d: ([(_pytree.MappingKey(k), v) for k, v in d.items()], list(d)),
)
