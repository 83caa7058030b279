"""Taking trees apart, putting them together, and mapping over leaves."""

import types

from rushlight.utils._pytree._nodes import SUPPORTED_NODES, _get_node_type, tree_is_leaf
from rushlight.utils._pytree._structures import _LEAF_SPEC, TreeSpec

__capture__ = "through"  # Note [Capture marks]


def _flatten_into(tree, leaves, is_leaf):
    node = _get_node_type(tree)
    if node not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[node].flatten_fn(tree)
    return TreeSpec(node, context, [_flatten_into(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves of a tree, left to right, and its structure."""
    leaves = []
    return leaves, _flatten_into(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The inverse of ``tree_flatten``."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of the same structure with ``func`` of the leaves (of several trees, leaf by leaf)."""
    if not rests and is_leaf is None:
        return _map(func, tree)
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*row) for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests))])


def _map(func, tree):
    kind = type(tree)
    if kind is tuple:
        return tuple([_map(func, child) for child in tree])
    if kind is list:
        return [_map(func, child) for child in tree]
    if kind is dict:
        return {key: _map(func, child) for key, child in tree.items()}
    node = _get_node_type(tree)
    if node not in SUPPORTED_NODES:
        return func(tree)
    children, context = SUPPORTED_NODES[node].flatten_fn(tree)
    return SUPPORTED_NODES[node].unflatten_fn([_map(func, child) for child in children], context)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call ``func`` on the leaves for what it does; gives ``tree`` back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for row in zip(leaves, *(spec.flatten_up_to(r) for r in rests)):
        func(*row)
    return tree


def map_only(type_or_types_or_pred, /):
    """Decorates a function of leaves: it leaves alone what is of none of the types."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def applies(x):
            return isinstance(x, type_or_types_or_pred)

    elif callable(type_or_types_or_pred):
        applies = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return lambda x: func(x) if applies(x) else x

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of ``tree`` spread over ``treespec``, of which it must be the upper part; else None."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    node = _get_node_type(tree)
    if node != treespec.type:
        return None
    children, context = SUPPORTED_NODES[node].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    result = []
    for child, spec in zip(children, treespec.children()):
        flat = _broadcast_to_and_flatten(child, spec, is_leaf)
        if flat is None:
            return None
        result += flat
    return result


def _with_paths(path, tree, is_leaf):
    node = _get_node_type(tree)
    if node not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    flatten = SUPPORTED_NODES[node].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node}. Please pass a flatten_with_keys_fn "
            "argument to register_pytree_node."
        )
    for key, child in flatten(tree)[0]:
        yield from _with_paths((*path, key), child, is_leaf)


def tree_flatten_with_path(tree, is_leaf=None):
    """As ``tree_flatten``, with ``(path, leaf)`` for every leaf."""
    return list(_with_paths((), tree, is_leaf)), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    return list(_with_paths((), tree, is_leaf))


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """As ``tree_map``; ``func`` takes the path first."""
    leaves, spec = tree_flatten_with_path(tree, is_leaf)
    rows = zip(leaves, *(spec.flatten_up_to(r) for r in rests))
    return spec.unflatten([func(path, leaf, *others) for (path, leaf), *others in rows])
