"""Clones that share memory until one of them is written to."""

import ctypes
import gc

import pytest

import rushlight as torch
from rushlight import _C

SIZES = [(2, 2), (100, 7)]  # inside of the storage object, and outside


def address(t):
    return _C._data_address(t)


@pytest.fixture(params=SIZES, ids=str)
def pair(request):
    t = torch.arange(float(torch.Size(request.param).numel())).reshape(request.param)
    return t, t._lazy_clone()


def test_shared_until_written(pair):
    t, clone = pair
    assert address(t) == address(clone)
    assert _C._storage_address(t) != _C._storage_address(clone)
    assert _C._is_cow_tensor(t) and _C._is_cow_tensor(clone)
    assert torch.equal(t + clone, 2 * t)
    assert _C._is_cow_tensor(t) and _C._is_cow_tensor(clone)


@pytest.mark.parametrize("first", [0, 1])
def test_the_last_keeps_the_memory(pair, first):
    shared = address(pair[0])
    before = pair[0].tolist()
    writer, other = pair[first], pair[1 - first]
    view = writer.view(-1)
    view += 1
    assert address(view) == address(writer) != shared
    assert other.tolist() == before
    assert writer.tolist() == (other + 1).tolist()
    assert _C._is_cow_tensor(other) and not _C._is_cow_tensor(writer)
    other.mul_(3)
    assert address(other) == shared
    assert writer.tolist() == (other / 3 + 1).tolist()


WRITES = {
    "in place": lambda t: t.add_(1),
    "out": lambda t: torch.add(t, 1, out=t),
    "index": lambda t: t.__setitem__(0, -1.0),
    "fill": lambda t: t.fill_(7),
    "random": lambda t: t.normal_(),
    "numpy": lambda t: t.numpy().__setitem__(Ellipsis, 5),
    "buffer": lambda t: memoryview(t).__setitem__((0, 0), 5.0),
    "storage": lambda t: t.untyped_storage().fill_(1),
    "address": lambda t: ctypes.memset(t.data_ptr(), 1, 4),
    "storage's address": lambda t: ctypes.memset(t.untyped_storage().data_ptr(), 1, 4),
    "dlpack": lambda t: torch.from_dlpack(t).zero_(),
    "foreach": lambda t: torch._foreach_add_([t], 1),
    "data": lambda t: t.data.add_(1),
    "view": lambda t: t[1:].add_(1),
    "resize": lambda t: t.resize_(200, 200).fill_(1),
    "shared": lambda t: t.share_memory_().add_(1),
    "copy": lambda t: t.copy_(torch.ones_like(t)),
    "sort": lambda t: torch.sort(-t, out=(t, torch.empty(0, dtype=torch.int64))),
    "optimizer": lambda t: step(t),
}


def step(t):
    t.grad = torch.ones_like(t)
    with torch.no_grad():
        torch.optim.SGD([t.requires_grad_()], lr=1.0).step()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_reaches_the_other(pair, write):
    t, clone = pair
    before = t.tolist()
    write(clone)
    assert t.tolist() == before
    assert clone.flatten().tolist()[: t.numel()] != t.flatten().tolist()
    t.sub_(1)  # the last one writes in place
    assert t.tolist() != before


def test_many_clones_of_clones(pair):
    t, clone = pair
    before = t.tolist()
    clones = [clone, clone._lazy_clone(), t._lazy_clone(), t[1:]._lazy_clone(), t.t()._lazy_clone()]
    assert {address(c) for c in clones if c.storage_offset() == 0} == {address(t)}
    t.zero_()
    for i, c in enumerate(clones):
        c.add_(i + 1)
    assert clones[0].tolist() == (torch.tensor(before) + 1).tolist()
    assert clones[3].tolist() == (torch.tensor(before)[1:] + 4).tolist()
    assert clones[4].tolist() == (torch.tensor(before).t() + 5).tolist()
    assert t.abs().sum() == 0


def test_memory_lives_as_long_as_it_is_looked_at(pair):
    t, clone = pair
    before = t.tolist()
    shared = address(t)
    t.add_(1)
    del t, pair
    gc.collect()
    filler = [torch.full((2, 2), 9.0) for _ in range(100)]
    assert clone.tolist() == before and address(clone) == shared
    again = clone._lazy_clone()
    del clone
    again.add_(1)
    assert again.flatten().tolist() == [x + 1 for row in before for x in row]
    assert filler[0].sum() == 36


def test_storages_that_die_unwritten_leave_nothing():
    for size in (4, 1000):
        for _ in range(200):
            t = torch.zeros(size)
            t._lazy_clone()
        fresh = [torch.zeros(size) for _ in range(50)]
        assert not any(_C._is_cow_tensor(f) for f in fresh)
        for f in fresh:
            f.add_(1)
        assert all(f.sum() == size for f in fresh)


def test_storage_swaps_and_sizes(pair):
    t, clone = pair
    before = clone.tolist()
    t.resize_(3)
    t.resize_(2, 50)
    t.fill_(1)
    t.untyped_storage().resize_(8)
    t.untyped_storage()._swap_contents(torch.zeros(2).untyped_storage())
    assert clone.tolist() == before
    other = torch.full((2, 2), 4.0)
    clone.untyped_storage()._swap_contents(other.untyped_storage())
    assert other.flatten().tolist() == [x for row in before for x in row][:4]


def test_memory_of_others_is_copied_at_once():
    array = pytest.importorskip("numpy").zeros(100, dtype="float32")
    t = torch.from_numpy(array)
    clone = t._lazy_clone()
    array[:] = 1
    assert not _C._is_cow_tensor(clone) and clone.sum() == 0
    lent = torch.zeros(100)
    seen = lent.numpy()
    clone = lent._lazy_clone()
    seen[:] = 1
    assert clone.sum() == 0
    for empty in (torch.empty(0), torch.empty(3, device="meta")):
        assert empty._lazy_clone().shape == empty.shape


def test_memory_lent_after_the_other_is_gone(pair):
    t, clone = pair
    del clone
    t = pair[0]
    seen = pytest.importorskip("numpy").asarray(t.numpy())
    again = t._lazy_clone()
    before = again.tolist()
    seen[:] = -5
    assert again.tolist() == before


def test_gradients_and_batches():
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: t._lazy_clone().sin(), (x,))
    assert torch.equal(torch.vmap(lambda t: t._lazy_clone() * 2)(x), x * 2)
    assert torch.equal(torch.func.grad(lambda t: t._lazy_clone().sin().sum())(x), x.cos())


@pytest.mark.parametrize("size", [4, 4000])
def test_who_looks_at_the_memory_meanwhile_does_not_write_to_the_clone(size):
    t = torch.zeros(size)
    view = memoryview(t.untyped_storage())
    clone = t._lazy_clone()
    view[3] = 0x3F
    assert t[0] == 0.5 and clone[0] == 0
    view.release()
    later = t._lazy_clone()
    assert torch._C._is_cow_tensor(t) and torch._C._is_cow_tensor(later)
    with memoryview(later.untyped_storage()) as view:
        view[3] = 0
    assert later[0] == 0 and t[0] == 0.5
