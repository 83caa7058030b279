"""utils.weak, utils.module_tracker, utils._triton."""

import copy
import gc

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.utils._triton import has_triton
from rushlight.utils.module_tracker import ModuleTracker
from rushlight.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakIdRef, WeakTensorKeyDictionary


def test_tensors_are_keys_by_identity_and_are_not_kept():
    a, b = torch.ones(2), torch.ones(2)
    table = WeakTensorKeyDictionary({a: 1})
    table[b] = [2]
    assert table[a] == 1 and table[b] == [2] and len(table) == 2 and a in table
    assert torch.ones(2) not in table and 3 not in table
    assert [k is a or k is b for k in table] == [True, True]
    assert WeakIdRef(a) == WeakIdRef(a) and WeakIdRef(a) != WeakIdRef(b)
    copied = copy.deepcopy(table)
    copied[b].append(3)
    assert table[b] == [2] and copied[b] == [2, 3]
    merged = table | {a: 5}
    assert merged[a] == 5 and table[a] == 1
    weak = WeakIdRef(b)
    keys = [a, b]
    del b
    for _ in table:  # what dies while somebody goes through the table is removed afterwards
        del keys[1:]
        gc.collect()
    assert weak() is None and len(table) == 1 and list(table.items())[0][1] == 1
    del table[a]
    assert len(table) == 0
    with pytest.raises(KeyError):
        WeakIdKeyDictionary()[a]


def test_references_to_tensors():
    t = torch.ones(2)
    weak = TensorWeakRef(t)
    assert weak() is t
    del t
    gc.collect()
    assert weak() is None
    with pytest.raises(AssertionError, match="torch.Tensor"):
        TensorWeakRef(3)


def test_modules_are_tracked_forward_and_backward():
    seen = []

    class Probe(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append((False, frozenset(tracker.parents)))
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append((tracker.is_bw, frozenset(tracker.parents)))
            return grad

    class Inner(nn.Module):
        def forward(self, x):
            return Probe.apply(x) * 2

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(2, 2), Inner())

        def forward(self, x):
            return self.layers(x)

    net = Net()
    with ModuleTracker() as tracker:
        net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    expected = frozenset({"Global", "Net", "Net.layers", "Net.layers.1"})
    assert seen == [(False, expected), (True, expected)]
    count = len(seen)
    net(torch.ones(1, 2))
    assert len(seen) == count + 1 and tracker.parents == {"Global"}  # no longer observed


def test_no_triton():
    assert has_triton() is False


@pytest.mark.parametrize("make", [lambda: torch.ones(2), lambda: torch.ones(2).untyped_storage()])
def test_what_a_weak_reference_gives_is_whole(make):
    kept = make()
    found = WeakIdRef(kept)()
    found._fix_weakref()
    del kept
    assert found.nbytes() if hasattr(found, "resizable") else found.tolist() == [1, 1]
