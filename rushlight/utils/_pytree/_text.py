"""Structures as text: for files and for people."""

import json

from rushlight.utils._pytree._functions import tree_unflatten
from rushlight.utils._pytree._nodes import SERIALIZED_TYPE_TO_PYTHON_TYPE, SUPPORTED_SERIALIZED_TYPES
from rushlight.utils._pytree._structures import _LEAF_SPEC, TreeSpec
from rushlight.utils._pytree._types import (
    DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL,
    NO_SERIALIZED_TYPE_NAME_FOUND,
)


def treespec_dumps(treespec, protocol=None):
    """A structure as JSON."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "treespec_dumps(treespec, protocol): Expected `treespec` to be instance of TreeSpec but got "
            f"item of type {type(treespec)}."
        )
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((protocol, _to_json(treespec)))


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    dump = known.to_dumpable_context
    try:
        context = json.dumps(spec.context) if dump is None else dump(spec.context)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom "
            "serializer using _register_pytree_node."
        ) from error
    children = [_to_json(c) for c in spec.children()]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def treespec_loads(serialized):
    """The inverse of ``treespec_dumps``."""
    protocol, spec = json.loads(serialized)
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(spec)


def _from_json(spec):
    name = spec["type"]
    if name is None and not spec["children_spec"] and spec["context"] is None:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing `{name}` in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    load = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    context = json.loads(spec["context"]) if load is None else load(spec["context"])
    return TreeSpec(cls, context, [_from_json(c) for c in spec["children_spec"]])


class _Asterisk:
    def __repr__(self):
        return "*"


_asterisk = _Asterisk()


def treespec_pprint(treespec):
    """A structure as text, with ``*`` for leaves."""
    return repr(tree_unflatten([_asterisk] * treespec.num_leaves, treespec))
