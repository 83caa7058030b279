"""Functions on trees of tensors in compiled programs."""

from collections import namedtuple

import pytest
from compile_checks import graphs, no_measuring  # noqa: F401 (a fixture)

import rushlight as torch
from rushlight.utils import _pytree as pytree

pytestmark = pytest.mark.usefixtures("no_measuring")

Pair = namedtuple("Pair", "first second")


def tree(k):
    pair = Pair(torch.ones(4) * k, torch.zeros(1))
    return {"x": torch.ones(3) * k, "y": [torch.ones(2), (torch.ones(1),)], "pair": pair, "n": 3}


def test_trees_are_taken_apart_and_put_together():
    def f(given):
        leaves, spec = pytree.tree_flatten(given)
        doubled = pytree.tree_unflatten([leaf * 2 for leaf in leaves], spec)
        total = sum(leaf.sum() for leaf in pytree.tree_leaves(given["y"]))
        return pytree.tree_map_only(torch.Tensor, torch.sin, doubled), total

    fast = torch.compile(f, fullgraph=True)
    for k in range(3):
        found, expected = fast(tree(k)), f(tree(k))
        assert type(found[0]["pair"]) is Pair
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    assert graphs(fast) == 1


def test_classes_that_are_registered_later_are_another_graph():
    class Box:
        def __init__(self, content):
            self.content = content

    def f(x):
        leaf = pytree.tree_leaves([Box(x * 2)])[0]
        return leaf * 2 if isinstance(leaf, torch.Tensor) else x + 1

    fast = torch.compile(f)
    x = torch.ones(2)
    assert fast(x).tolist() == fast(x).tolist() == [2, 2]
    pytree.register_pytree_node(Box, lambda box: ([box.content], None), lambda items, _: Box(items[0]))
    try:
        assert fast(x).tolist() == f(x).tolist() == [4, 4]
    finally:
        pytree._deregister_pytree_node(Box)
    assert fast(x).tolist() == [2, 2]
