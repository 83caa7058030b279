"""Datasets, samplers and the loader that turns them into batches."""

from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data._utils.worker import get_worker_info
from rushlight.utils.data.dataloader import DataLoader, _DatasetKind
from rushlight.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from rushlight.utils.data.distributed import DistributedSampler
from rushlight.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

# Data pipes are old and large: they load when somebody asks for them.
_PIPES = {
    "datapipe": ("DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe"),
    "_decorator": (
        "argument_validation",
        "functional_datapipe",
        "guaranteed_datapipes_determinism",
        "non_deterministic",
        "runtime_validation",
        "runtime_validation_disabled",
    ),
}


TYPE_CHECKING = False
if TYPE_CHECKING:  # what `__getattr__` finds
    from rushlight.utils.data import datapipes as datapipes
    from rushlight.utils.data import graph as graph
    from rushlight.utils.data import graph_settings as graph_settings
    from rushlight.utils.data._packing import PackedDict as PackedDict
    from rushlight.utils.data._packing import PackedList as PackedList
    from rushlight.utils.data._packing import pack as pack
    from rushlight.utils.data.datapipes._decorator import argument_validation as argument_validation
    from rushlight.utils.data.datapipes._decorator import functional_datapipe as functional_datapipe
    from rushlight.utils.data.datapipes._decorator import (
        guaranteed_datapipes_determinism as guaranteed_datapipes_determinism,
    )
    from rushlight.utils.data.datapipes._decorator import non_deterministic as non_deterministic
    from rushlight.utils.data.datapipes._decorator import runtime_validation as runtime_validation
    from rushlight.utils.data.datapipes._decorator import (
        runtime_validation_disabled as runtime_validation_disabled,
    )
    from rushlight.utils.data.datapipes.datapipe import DataChunk as DataChunk
    from rushlight.utils.data.datapipes.datapipe import DFIterDataPipe as DFIterDataPipe
    from rushlight.utils.data.datapipes.datapipe import IterDataPipe as IterDataPipe
    from rushlight.utils.data.datapipes.datapipe import MapDataPipe as MapDataPipe


def __getattr__(name):
    import importlib

    if name in ("PackedDict", "PackedList", "pack"):
        return getattr(importlib.import_module("rushlight.utils.data._packing"), name)
    if name in ("datapipes", "graph", "graph_settings"):
        return importlib.import_module(f"rushlight.utils.data.{name}")
    for module, names in _PIPES.items():
        if name in names:
            import rushlight.utils.data.datapipes  # the steps become methods

            return getattr(importlib.import_module(f"rushlight.utils.data.datapipes.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "_DatasetKind",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]
