"""Files, and the streams that pipes hand on."""

import fnmatch
import functools
import importlib.util
import inspect
import os
import warnings

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks"]


def match_masks(name, masks):
    """Whether a file's name fits one of the masks; no mask fits all."""
    if not masks:
        return True
    return any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def _raise(error):
    raise error


def get_file_pathnames_from_root(root, masks, recursive=False, abspath=False, non_deterministic=False):
    """The paths of the files in a folder, sorted unless their order does not matter; of a file, itself."""
    if os.path.isfile(root):
        if match_masks(os.path.basename(root), masks):
            yield os.path.abspath(root) if abspath else root
        return
    for folder, folders, files in os.walk(root, onerror=_raise):
        folder = os.path.abspath(folder) if abspath else folder
        if not non_deterministic:
            files.sort()
            folders.sort()
        yield from (os.path.join(folder, name) for name in files if match_masks(name, masks))
        if not recursive:
            return


def get_file_binaries_from_pathnames(pathnames, mode, encoding=None):
    """Pairs of a path and its open file."""
    mode = f"r{mode}" if mode in ("b", "t") else mode
    for pathname in [pathnames] if isinstance(pathnames, str) else pathnames:
        if not isinstance(pathname, str):
            raise TypeError(f"Expected string type for pathname, but got {type(pathname)}")
        yield pathname, StreamWrapper(open(pathname, mode, encoding=encoding), name=pathname)


class StreamWrapper:
    """An open file that closes itself when it is forgotten."""

    def __init__(self, file_obj, parent_stream=None, name=None):
        self.file_obj = file_obj
        self.parent_stream = parent_stream
        self.name = name
        self.closed = False

    @classmethod
    def close_streams(cls, v, depth=0):
        """Closes all streams in a sample that nobody will read."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, dict):
            for value in v.values():
                cls.close_streams(value, depth + 1)
        elif isinstance(v, (list, tuple)):
            for value in v:
                cls.close_streams(value, depth + 1)

    def close(self, *args, **kwargs):
        if not self.closed:
            self.closed = True
            self.file_obj.close(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self.__dict__["file_obj"], name)

    def __dir__(self):
        return sorted({*super().__dir__(), *dir(self.file_obj)})

    def __iter__(self):
        yield from self.file_obj

    def __next__(self):
        return next(self.file_obj)

    def __del__(self):
        if "file_obj" in self.__dict__:
            self.close()

    def __repr__(self):
        return f"StreamWrapper<{self.name if self.name is not None else self.file_obj!r}>"

    def __getstate__(self):
        return self.file_obj

    def __setstate__(self, obj):
        self.__init__(obj)


def validate_input_col(fn, input_col):
    """Refuses a function that can't take as many arguments as there are input columns."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        return
    columns = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    try:
        signature.bind(*range(columns))
    except TypeError as e:
        name = getattr(fn, "__name__", repr(fn))
        raise ValueError(
            f"The function {name} does not take {columns} positional argument(s), one for each input column "
            f"in {input_col!r}: {e}"
        ) from None


def check_unpickable_fn(fn):
    """Warns of a function that workers cannot be sent by pickle, unless dill is there to do that."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    while isinstance(fn, functools.partial):
        fn = fn.func
    local = "<locals>" in getattr(fn, "__qualname__", "")
    kind = "Local" if local else "Lambda" if getattr(fn, "__name__", "") == "<lambda>" else None
    if kind and importlib.util.find_spec("dill") is None:
        warnings.warn(
            f"{kind} function is not supported by pickle, please use regular python function or ensure "
            "`dill` is available.",
            UserWarning,
            stacklevel=4,
        )
