"""Importing loads little: what a program does not use is loaded when it is used."""

import os
import pathlib
import subprocess
import sys

import pytest

import rushlight

ROOT = pathlib.Path(rushlight.__file__).parents[1]
LAYERS = "import rushlight.nn, rushlight.optim, rushlight.utils.data"
# Python's own modules that each import may load, with what they load in turn.
ALLOWED = {
    "import rushlight": "math, os",
    LAYERS: "__future__, math, os, collections.abc, enum, functools, importlib, operator, warnings",
}
OWN = {"import rushlight": 10, LAYERS: 110}  # of our modules, the most
NAMES = """
import sys
before = set(sys.modules)
{0}
print(*sorted(set(sys.modules) - before))
"""


def python(*arguments):
    """What a bare interpreter prints: without site, whose files may load anything."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-S", *arguments], env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done


def loaded(statement):
    names = python("-c", NAMES.format(statement)).stdout.split()
    own = {name for name in names if name.partition(".")[0] == "rushlight"}
    return own, set(names) - own


@pytest.mark.parametrize("statement", ALLOWED)
def test_an_import_loads_no_more_than_it_needs(statement):
    own, others = loaded(statement)
    _, allowed = loaded(f"import {ALLOWED[statement]}")
    assert others - allowed == set()
    assert len(own) <= OWN[statement], sorted(own)


def test_a_module_more_is_noticed():
    _, others = loaded("import rushlight, typing")
    assert {"typing", "re", "collections"} <= others


def test_an_import_loads_no_library_of_convolutions():
    """oneDNN takes as long to load as all else."""
    program = "import rushlight, sys; print(open('/proc/self/maps').read()); " + (
        "rushlight.conv2d(rushlight.ones(1, 64, 32, 32), rushlight.ones(64, 64, 3, 3)); "
        "print('first use'); print(open('/proc/self/maps').read())"
    )
    if not os.path.exists("/proc/self/maps"):
        pytest.skip("only Linux lists the libraries of a process")
    if not rushlight.backends.mkldnn.is_available():
        pytest.skip("built without oneDNN")
    before, after = python("-c", program).stdout.split("first use")
    assert "librushlight.so" in before and "libdnnl" not in before
    assert "libdnnl" in after


def test_help_reads_no_arguments():
    done = python("-X", "importtime", "-m", "rushlight", "--help")
    assert done.stdout.startswith("usage: python -m rushlight")
    assert "rushlight._tensor" in done.stderr and "argparse" not in done.stderr


def test_the_alias_loads_what_the_names_themselves_load(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, torch.nn as nn, torch.nn.functional as F, torch.optim\n"
        "from torch.utils.data import DataLoader\n"
        "import sys; print(*sys.modules)\n"
    )
    names = set(python("-m", "rushlight", str(program)).stdout.split())
    assert "torch.nn.modules.conv" in names and "rushlight.utils.data.dataloader" in names
    assert names.isdisjoint({"argparse", "re", "typing", "inspect", "dataclasses", "random", "sysconfig"})


def test_generic_classes_take_types_as_those_of_typing():
    from typing import Generic, TypeVar, get_args, get_origin

    from rushlight.utils.data import DataLoader, Dataset, IterableDataset, Sampler
    from rushlight.utils.data.dataset import T_co
    from rushlight.utils.data.sampler import T_co as another

    T = TypeVar("T")
    assert isinstance(T_co, TypeVar) and T_co.__covariant__ and T_co is another
    for cls in (DataLoader, Dataset, IterableDataset, Sampler):
        assert get_origin(cls[int]) is cls and get_args(cls[int]) == (int,)
        assert get_args(cls[T][str]) == (str,) and cls[T_co].__parameters__ == (T_co,)

    class Typed(Dataset[tuple[T, int]]):
        def __init__(self, values):
            self.values = values

        def __getitem__(self, index):
            return self.values[index], index

        def __len__(self):
            return len(self.values)

    class Both(Dataset[T], Generic[T]):
        pass

    class Order(Sampler[int]):
        pass

    assert issubclass(Typed, Dataset) and get_args(Typed[str]) == (str,) and get_origin(Both[int]) is Both
    assert issubclass(Order, Sampler) and isinstance(Order(), Sampler)
    batch = next(iter(DataLoader[int](Typed[float]([1.5, 2.5]), batch_size=2)))
    assert batch[0].tolist() == [1.5, 2.5] and batch[1].tolist() == [0, 1]


def test_names_that_load_late_are_where_pytorch_has_them():
    from rushlight.utils.data import _utils, dataloader

    assert dataloader._SingleProcessDataLoaderIter.__name__ == "_SingleProcessDataLoaderIter"
    assert issubclass(dataloader._MultiProcessingDataLoaderIter, dataloader._BaseDataLoaderIter)
    assert _utils.worker.WorkerInfo._fields[:2] == ("id", "num_workers") and _utils.worker._worker_loop
    assert _utils.collate.np_str_obj_array_pattern.search("<U3") and isinstance(_utils.HAS_NUMPY, bool)
    assert "Callable" in str(dataloader._collate_fn_t)
    for module in (dataloader, _utils, _utils.worker, _utils.collate, rushlight.utils):
        with pytest.raises(AttributeError, match="no_such_name"):
            module.no_such_name  # noqa: B018
    mro = [cls.__name__ for cls in rushlight.nn.Module.__mro__]
    assert mro == ["Module", "_ModuleBase", "object"]
