"""Sources: any iterable, and files."""

import copy
import warnings

from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import (
    get_file_binaries_from_pathnames,
    get_file_pathnames_from_root,
)

__all__ = [
    "FileListerIterDataPipe",
    "FileOpenerIterDataPipe",
    "IterableWrapperIterDataPipe",
    "StreamReaderIterDataPipe",
]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The values of an iterable, of which each pass gets a copy of its own unless `deepcopy` is off."""

    def __init__(self, iterable, deepcopy=True):
        self.iterable = iterable
        self.deepcopy = deepcopy

    def __iter__(self):
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(self.iterable)
            except TypeError:
                warnings.warn(
                    "The input iterable can not be deepcopied, please be aware of in-place modification "
                    "would affect source data.",
                    stacklevel=2,
                )
        yield from source

    def __len__(self):
        return self._source_length(self.iterable)[0]


class _GivenLength(IterDataPipe):
    length = -1

    def __len__(self):
        if self.length == -1:
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length")
        return self.length


@functional_datapipe("list_files")
class FileListerIterDataPipe(_GivenLength):
    """The paths of the files in some folders."""

    def __init__(
        self, root=".", masks="", *, recursive=False, abspath=False, non_deterministic=False, length=-1
    ):
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks = masks
        self.recursive = recursive
        self.abspath = abspath
        self.non_deterministic = non_deterministic
        self.length = length

    def __iter__(self):
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(
                path, self.masks, self.recursive, self.abspath, self.non_deterministic
            )


@functional_datapipe("open_files")
class FileOpenerIterDataPipe(_GivenLength):
    """Pairs of a path and its open file."""

    def __init__(self, datapipe, mode="r", encoding=None, length=-1):
        if mode not in ("b", "t", "rb", "rt", "r"):
            raise ValueError(f"Invalid mode {mode}")
        if "b" in mode and encoding is not None:
            raise ValueError("binary mode doesn't take an encoding argument")
        self.datapipe = datapipe
        self.mode = mode
        self.encoding = encoding
        self.length = length

    def __iter__(self):
        yield from get_file_binaries_from_pathnames(self.datapipe, self.mode, self.encoding)


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """Pairs of a path and its content, whole or in pieces of `chunk` (functional name: ``read_from_stream``).

    Args:
        datapipe: pairs of a path and an open file.
        chunk: the size of a piece.

    Example:
        >>> list(IterableWrapper([("a", io.StringIO("xyz"))], deepcopy=False).read_from_stream(2))
        [('a', 'xy'), ('a', 'z')]
    """

    def __init__(self, datapipe, chunk=None):
        self.datapipe = datapipe
        self.chunk = chunk

    def __iter__(self):
        for name, stream in self.datapipe:
            while piece := stream.read(self.chunk):
                yield name, piece
            stream.close()
