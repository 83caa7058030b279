"""torch.utils._pytree against PyTorch's, and what it promises by itself."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

from rushlight.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREES = [
    1,
    (1, [2, {"b": 3, "a": None}]),
    OrderedDict(a=1, b=(2,)),
    defaultdict(list, a=[1]),
    deque([1, 2], maxlen=4),
    Point(1, [2]),
    [],
    {"x": Point((), {})},
]


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip_and_the_oracles_view(tree):
    leaves, spec = pytree.tree_flatten(tree)
    assert pytree.tree_unflatten(leaves, spec) == tree
    assert type(pytree.tree_map(lambda x: x, tree)) is type(tree)
    assert spec == pytree.tree_structure(tree)
    assert (spec.num_leaves, len(pytree.tree_leaves_with_path(tree))) == (len(leaves), len(leaves))
    theirs = pytest.importorskip("torch.utils._pytree")
    other_leaves, other_spec = theirs.tree_flatten(tree)
    assert leaves == other_leaves
    assert str(spec) == str(other_spec)
    mine = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(tree)]
    assert mine == [theirs.keystr(path) for path, _ in theirs.tree_leaves_with_path(tree)]


def test_text_form():
    spec = pytree.tree_structure((1, [2, {"b": 3}]))
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert pytree.treespec_pprint(spec) == "(*, [*, {'b': *}])"


def test_own_classes():
    class Pair:
        def __init__(self, a, b):
            self.a, self.b = a, b

    @dataclasses.dataclass
    class Named:
        a: int
        b: object = None

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda v, _: Pair(*v))
    pytree.register_dataclass(Named)
    doubled = pytree.tree_map(lambda x: 2 * x, [Pair(1, (2,)), Named(3)])
    assert (doubled[0].a, doubled[0].b, doubled[1]) == (2, (4,), Named(6))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(Pair, None, None)
    pytree._deregister_pytree_node(Pair)
    assert len(pytree.tree_leaves(Pair(1, 2))) == 1


def test_maps_over_several_trees():
    assert pytree.tree_map(lambda a, b: a + b, (1, [2]), (3, [4])) == (4, [6])
    assert pytree.tree_map_only(int, lambda x: -x, {"a": 1, "b": "c"}) == {"a": -1, "b": "c"}
    assert pytree.tree_all(bool, (1, [2])) and pytree.tree_any_only(str, str.isupper, ["A", 1])
    with pytest.raises(ValueError, match="type mismatch"):
        pytree.tree_map(lambda a, b: a, (1, 2), [1, 2])
    with pytest.raises(ValueError, match="keys mismatch"):
        pytree.tree_map(lambda a, b: a, {"a": 1}, {"b": 1})
    assert pytree._broadcast_to_and_flatten(0, pytree.tree_structure((1, [2, 3]))) == [0, 0, 0]
    assert pytree._broadcast_to_and_flatten((0,), pytree.tree_structure((1, [2, 3]))) is None
