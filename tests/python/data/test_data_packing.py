"""Lists and dicts in shared memory, and when a loader puts them there."""

import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap

import pytest

import rushlight
from rushlight.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    PackedDict,
    PackedList,
    Subset,
    get_worker_info,
    pack,
)
from rushlight.utils.data._packing import LONG, Packing

VALUES = [1, "two", (3, [4, 5]), {"six": 7.0}, None, b"\0\xff"]


class Records(Dataset):
    def __init__(self, records):
        self.records = records

    def __len__(self):
        return len(self.records)

    def __getitem__(self, i):
        return self.records[i]


class Where(Records):
    """The types that workers see."""

    def __getitem__(self, i):
        return type(self.records).__name__, type(get_worker_info().dataset).__name__


class Caches(Records):
    """Fills a list of its own."""

    def __init__(self, records):
        super().__init__(records)
        self.cache = [None] * len(records)

    def __getitem__(self, i):
        seen = self.cache[i] is not None
        self.cache[i] = self.records[i]
        return self.cache[i], seen, len(self.cache)


def test_a_packed_list_reads_like_a_list():
    packed = PackedList(VALUES)
    assert packed == VALUES and list(packed) == VALUES and len(packed) == 6
    assert packed[-1] == VALUES[-1] and packed[1:4] == VALUES[1:4] and packed[::-2] == VALUES[::-2]
    assert packed + [1] == VALUES + [1] and [1] + packed == [1] + VALUES and packed * 2 == VALUES * 2
    assert packed.index("two") == 1 and packed.count(None) == 1 and "two" in packed
    assert packed.copy() == VALUES and not (packed == VALUES[:-1])
    for bad in (6, -7):
        with pytest.raises(IndexError, match="out of range"):
            packed[bad]
    with pytest.raises(TypeError, match="indices must be integers"):
        packed["1"]
    with pytest.raises(TypeError):
        packed[0] = 1
    assert PackedList() == [] and list(PackedList([])) == []
    assert pickle.loads(pickle.dumps(packed)) == VALUES and copy.deepcopy(packed) == VALUES


def test_a_packed_dict_reads_like_a_dict():
    values = {f"key {i}": i for i in range(500)} | {7: "a", 2.5: "b", None: "c", (1, "x"): "d", b"k": "e"}
    packed = PackedDict(values)
    assert packed == values and dict(packed) == values and list(packed) == list(values)
    assert packed[7.0] == packed[7] == "a" and packed[(True, "x")] == "d" and packed.get("none") is None
    assert "key 3" in packed and 8 not in packed and frozenset() not in packed
    with pytest.raises(KeyError, match="absent"):
        packed["absent"]
    with pytest.raises(TypeError, match="unhashable"):
        packed[[]]
    with pytest.raises(TypeError, match="not frozenset"):
        PackedDict({frozenset(): 1})
    assert pickle.loads(pickle.dumps(packed)) == values and (packed | {1: 2}) == values | {1: 2}
    assert PackedDict() == {}


def test_what_stands_in_for_a_list_can_be_changed():
    data = list(range(LONG))
    part = Packing().of_dataset(Records(data)).records
    assert type(part) is not list and isinstance(part, list) and part == data
    part[3] = "new"
    part.append("last")
    part += [1]
    assert part[3] == "new" and part[-2:] == ["last", 1] and len(part) == LONG + 2 and data[3] == 3
    names = Packing().of_dataset(Records({str(i): i for i in data})).records
    assert isinstance(names, dict)
    names["x"] = 1
    assert names.pop("5") == 5 and names["x"] == 1 and "5" not in names and len(names) == LONG
    assert pickle.loads(pickle.dumps(part)) == list(part) and pickle.loads(pickle.dumps(names)) == names


def test_what_is_packed_by_itself():
    long = [(i, "text") for i in range(LONG)]
    packing = Packing()
    assert type(packing.of_dataset(long)) is not list
    assert packing.of_dataset(long[:-1]) == long[:-1] and type(packing.of_dataset(long[:-1])) is list
    assert type(packing.of_dataset([object()] * LONG)) is list  # not plain data
    assert type(packing.of_dataset([rushlight.ones(1)] * LONG)) is list
    recursive = []
    recursive.append(recursive)
    assert type(packing.of_dataset([recursive] * LONG)) is list
    nested = packing.of_dataset(Subset(ConcatDataset([Records(long), Records(long)]), list(range(5))))
    assert type(nested.dataset.datasets[1].records) is not list and type(nested.indices) is list
    assert type(pack(Records([1, 2])).records) is not list

    class Custom(Records):
        def __getstate__(self):
            return self.__dict__

    custom = Custom(long)
    assert packing.of_dataset(custom) is custom


def test_packed_once_as_long_as_nothing_changed():
    packing, fixed, changing = Packing(), [(i, str(i)) for i in range(LONG)], [[i] for i in range(LONG)]
    once = packing.of_dataset(fixed)
    assert packing.of_dataset(fixed) is once
    fixed[7] = (0, "other")
    assert packing.of_dataset(fixed)[7] == (0, "other")
    packing.of_dataset(changing)
    changing[7][0] = "other"
    assert packing.of_dataset(changing)[7] == ["other"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_loaders_pack(method):
    records = [(i, i * 0.5, f"text {i}") for i in range(LONG)]

    def load(dataset, **options):
        return list(DataLoader(dataset, 2500, num_workers=2, multiprocessing_context=method, **options))

    for dataset in (records, Records(records), Subset(Records(records), range(LONG))):
        batches = load(dataset)
        assert [i for batch in batches for i in batch[0].tolist()] == list(range(LONG))
        assert batches[0][2][:2] == ("text 0", "text 1")
    seen = DataLoader(Where(records), None, num_workers=1, sampler=[0], multiprocessing_context=method)
    assert tuple(next(iter(seen))) == ("_ListInPlace", "Where")
    kept = DataLoader(
        Where(records), None, num_workers=1, sampler=[0], multiprocessing_context=method, pack_dataset=False
    )
    assert tuple(next(iter(kept))) == ("list", "Where")
    values, seen, lengths = next(iter(DataLoader(Caches(list(range(LONG))), 3, num_workers=1)))
    assert values.tolist() == [0, 1, 2] and not seen.any() and set(lengths.tolist()) == {LONG}


def test_what_cannot_be_packed_is_said_when_asked_for():
    with pytest.raises(TypeError, match="pack_dataset=True, but packing failed"):
        next(iter(DataLoader([lambda: 1], num_workers=1, pack_dataset=True)))


_MEASURE = """
import json, os, sys, gc
from rushlight.utils.data import DataLoader
n, workers = int(sys.argv[1]), int(sys.argv[2])
records = [(i, "name of record %d" % i, i * 0.5) for i in range(n)]

def pss(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total

import warnings
warnings.simplefilter("ignore")
loader = DataLoader(records, 500, num_workers=workers, persistent_workers=True, collate_fn=len,
                    multiprocessing_context="fork", **json.loads(sys.argv[3]))
figures = []
for epoch in range(3):
    for i, _ in enumerate(loader):
        if epoch == 0 and i == 0:
            figures.append(pss([os.getpid()] + [w.pid for w in loader._iterator._workers]))
    figures.append(pss([os.getpid()] + [w.pid for w in loader._iterator._workers]))
print(json.dumps(figures))
"""


def _memory(records, workers, **options):
    command = [
        sys.executable,
        "-c",
        textwrap.dedent(_MEASURE),
        str(records),
        str(workers),
        json.dumps(options),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.timeout(300)
@pytest.mark.skipif(not os.path.exists("/proc/self/smaps_rollup"), reason="the system does not tell")
def test_workers_do_not_multiply_the_memory_of_records():
    records = int(os.environ.get("RUSHLIGHT_RECORDS", 100_000))
    workers = 8 if records >= 1_000_000 else 4
    packed, plain = _memory(records, workers), _memory(records, workers, pack_dataset=False)
    print(f"PSS in KB at the start and after each epoch: packed {packed}, not packed {plain}")
    assert packed[-1] <= 1.1 * packed[0], packed
    assert plain[-1] - plain[0] > 3 * (packed[-1] - packed[0]), (plain, packed)
