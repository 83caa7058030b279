"""Stores: what they count, what they say when time is over, and stores that programs write."""

from datetime import timedelta

import pytest

import rushlight as rl
import rushlight.distributed as dist

LITTLE = timedelta(milliseconds=50)


class Noted(dist.Store):
    """A program's store: it notes what it is asked."""

    def __init__(self):
        super().__init__()
        self.values, self.asked = {}, []

    def set(self, key, value):
        self.asked.append(("set", key, value))
        self.values[key] = value

    def get(self, key):
        return self.values[key]

    def wait(self, keys, timeout=None):
        self.asked.append(("wait", keys, timeout))

    def multi_get(self, keys):
        self.asked.append(("multi_get", keys))
        return [self.values[key] for key in keys]


def test_a_served_store_counts_one_key_of_its_own(tmp_path):
    store = dist.TCPStore("localhost", 0, 1, True)
    assert store.num_keys() == 1 and store.list_keys() == []
    store.set("a", "1")
    assert store.num_keys() == 2 and store.list_keys() == ["a"]
    behind = dist.PrefixStore("users", store)
    behind.set("b", "2")
    assert behind.list_keys() == ["b"] and sorted(store.list_keys()) == ["a", "users/b"]
    file = dist.FileStore(tmp_path / "store", 1)
    file.set("a", "1")
    assert "a" in file.list_keys() and file.num_keys() == len(file.list_keys())


def test_a_job_whose_workers_do_not_come_says_how_many_did():
    with pytest.raises(dist.DistStoreError, match=r"Timed out after 1 seconds .* 1/3 clients joined"):
        dist.TCPStore("localhost", 0, 3, True, timeout=timedelta(seconds=1))


def test_a_store_of_nobody_is_refused():
    with pytest.raises(ValueError, match="world size cannot be 0"):
        dist.TCPStore("localhost", 0, 0, True)
    with pytest.raises(ValueError, match="cannot be None"):
        dist.PrefixStore("a", None)


def test_timeouts_name_the_keys():
    served = dist.TCPStore("localhost", 0, 1, True)
    with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms, keys: /there, /here"):
        served.wait(["there", "here"], LITTLE)
    with pytest.raises(dist.DistStoreError, match="wait timeout after 50ms, keys: a/there"):
        dist.PrefixStore("a", dist.HashStore()).wait(["there"], LITTLE)
    with pytest.raises(TypeError, match=r"pass \['there'\]"):
        dist.HashStore().wait("there", LITTLE)


def test_a_served_store_shows_both_ends():
    store = dist.TCPStore("localhost", 0, 1, True)
    assert f"server=TCPServer(port={store.port})" in repr(store) and f":{store.port})" in repr(store)


def test_a_store_of_a_program_is_called_with_bytes_and_whole_keys():
    below = Noted()
    store = dist.PrefixStore("outer", dist.PrefixStore("inner", below))
    assert store._underlying_non_prefix_store is below and not store.has_extended_api()
    store.set("key", "text")
    store.wait(["key"])
    store.wait(["key"], LITTLE)
    assert store.multi_get(["key"]) == [b"text"]
    key = "inner/outer/key"
    assert below.asked == [
        ("set", key, b"text"),
        ("wait", [key], None),
        ("wait", [key], LITTLE),
        ("multi_get", [key]),
    ]


@pytest.mark.parametrize(
    "method, arguments", [("add", ("a", 1)), ("delete_key", ("a",)), ("queue_len", ("a",))]
)
def test_what_a_store_of_a_program_lacks_is_named(method, arguments):
    for store in (Noted(), dist.PrefixStore("p", Noted())):
        with pytest.raises(NotImplementedError, match=f"Noted does not implement Store.{method}"):
            getattr(store, method)(*arguments)


def test_a_group_meets_in_a_store_of_a_program():
    class Own(dist.Store):
        def __init__(self):
            super().__init__()
            self.table = dist.HashStore()

        def __getattribute__(self, name):
            if name in ("set", "get", "add", "check", "wait", "compare_set", "delete_key", "num_keys"):
                return getattr(self.table, name)
            return super().__getattribute__(name)

    dist.init_process_group("gloo", store=Own(), rank=0, world_size=1)
    try:
        ones = rl.ones(3)
        dist.all_reduce(ones)
        dist.barrier()
        assert ones.tolist() == [1, 1, 1]
    finally:
        dist.destroy_process_group()
