"""Steps over streams, under their short names."""

from rushlight._command.submodules import submodules_of
from rushlight.utils.data.datapipes.iter.callable import CollatorIterDataPipe as Collator
from rushlight.utils.data.datapipes.iter.callable import FilterIterDataPipe as Filter
from rushlight.utils.data.datapipes.iter.callable import MapperIterDataPipe as Mapper
from rushlight.utils.data.datapipes.iter.combinatorics import SamplerIterDataPipe as Sampler
from rushlight.utils.data.datapipes.iter.combinatorics import ShufflerIterDataPipe as Shuffler
from rushlight.utils.data.datapipes.iter.combining import ConcaterIterDataPipe as Concater
from rushlight.utils.data.datapipes.iter.combining import DemultiplexerIterDataPipe as Demultiplexer
from rushlight.utils.data.datapipes.iter.combining import ForkerIterDataPipe as Forker
from rushlight.utils.data.datapipes.iter.combining import MultiplexerIterDataPipe as Multiplexer
from rushlight.utils.data.datapipes.iter.combining import ZipperIterDataPipe as Zipper
from rushlight.utils.data.datapipes.iter.grouping import BatcherIterDataPipe as Batcher
from rushlight.utils.data.datapipes.iter.grouping import GrouperIterDataPipe as Grouper
from rushlight.utils.data.datapipes.iter.grouping import UnBatcherIterDataPipe as UnBatcher
from rushlight.utils.data.datapipes.iter.sharding import ShardingFilterIterDataPipe as ShardingFilter
from rushlight.utils.data.datapipes.iter.utils import FileListerIterDataPipe as FileLister
from rushlight.utils.data.datapipes.iter.utils import FileOpenerIterDataPipe as FileOpener
from rushlight.utils.data.datapipes.iter.utils import IterableWrapperIterDataPipe as IterableWrapper
from rushlight.utils.data.datapipes.iter.utils import StreamReaderIterDataPipe as StreamReader

__all__ = [
    "Batcher",
    "Collator",
    "Concater",
    "Demultiplexer",
    "FileLister",
    "FileOpener",
    "Filter",
    "Forker",
    "Grouper",
    "IterableWrapper",
    "Mapper",
    "Multiplexer",
    "Sampler",
    "ShardingFilter",
    "Shuffler",
    "StreamReader",
    "UnBatcher",
    "Zipper",
]

__getattr__ = submodules_of(__name__)
