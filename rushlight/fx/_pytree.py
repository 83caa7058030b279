"""Flattening by a specification that is known before: what generated code with nested inputs calls."""

from collections import namedtuple

from rushlight.utils._pytree import SUPPORTED_NODES as _CONTAINERS
from rushlight.utils._pytree import LeafSpec

__capture__ = "traced"  # Note [Capture marks]
__capture_state__ = frozenset(["SUPPORTED_NODES", "SUPPORTED_NODES_EXACT_MATCH", "_CONTAINERS"])

SUPPORTED_NODES: dict = {}
SUPPORTED_NODES_EXACT_MATCH: dict = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """Say how to take a container apart, given the specification of its parts."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _node_flattener(pytree, spec):
    flatten = SUPPORTED_NODES.get(spec.type)
    if flatten is None and spec.type is not None and issubclass(spec.type, tuple):
        return _namedtuple_flatten_spec
    if flatten is None and spec.type in _CONTAINERS:
        return _registered_flatten_spec
    if flatten is None:
        raise RuntimeError(
            f"{type(pytree)} does not have a flatten_fn_spec associated with it. Please register one with "
            "torch.fx._pytree.register_pytree_flatten_spec.  If you have serialized your model, make sure "
            "that any custom pytrees have been registered before loading it."
        )
    return flatten


def tree_flatten_spec(pytree, spec, exact_structural_match=False):
    """The leaves of `pytree`, whose structure is known to be `spec`."""
    if isinstance(spec, LeafSpec):
        return [pytree]
    children = _node_flattener(pytree, spec)(pytree, spec)
    exact = SUPPORTED_NODES_EXACT_MATCH.get(spec.type)
    if exact_structural_match and exact is not None and not exact(pytree, spec):
        raise RuntimeError(f"Cannot flatten pytree {pytree}, given spec: {spec}")
    leaves = []
    for child, child_spec in zip(children, spec.children_specs, strict=True):
        leaves += tree_flatten_spec(child, child_spec, exact_structural_match)
    return leaves


def _dict_flatten_spec(d, spec):
    return [d[key] for key in spec.context]


def _list_flatten_spec(values, spec):
    return [values[i] for i in range(spec.num_children)]


def _namedtuple_flatten_spec(values, spec):
    return [values[i] for i in range(spec.num_children)]


def _registered_flatten_spec(value, spec):
    """The parts of a container that `torch.utils._pytree` knows, such as an instance of a dataclass."""
    if type(value) is not spec.type:
        raise ValueError(f"expected a {spec.type.__name__}, got a {type(value).__name__}")
    children, context = _CONTAINERS[spec.type].flatten_fn(value)
    if context != spec.context:
        raise ValueError(f"a {spec.type.__name__} is nested otherwise: {context!r}, not {spec.context!r}")
    return list(children)


register_pytree_flatten_spec(dict, _dict_flatten_spec, lambda d, spec: len(d) == spec.num_children)
for _sequence in (list, tuple):
    register_pytree_flatten_spec(
        _sequence, _list_flatten_spec, lambda values, spec: len(values) == spec.num_children
    )
register_pytree_flatten_spec(
    namedtuple, _namedtuple_flatten_spec, lambda values, spec: len(values) == spec.num_children
)
