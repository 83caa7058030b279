"""The base classes of data pipes, by iteration and by index."""

import functools
import pickle
from abc import ABCMeta

from rushlight.utils.data.datapipes._hook_iterator import _SnapshotState, with_one_iterator
from rushlight.utils.data.dataset import Dataset, IterableDataset

__all__ = ["DataChunk", "DFIterDataPipe", "IterDataPipe", "MapDataPipe"]


class DataChunk(list):
    """A batch of samples: what the step `batch` gives and `unbatch` takes apart."""

    def __init__(self, items):
        items = list(items)
        super().__init__(items)
        self.items = items

    def as_str(self, indent=""):
        return indent + "[" + ", ".join(str(i) for i in self) + "]"

    def raw_iterator(self):
        yield from self.items


class _DataPipeType:
    """What a pipe gives, as far as an annotation such as ``IterDataPipe[int]`` says."""

    def __init__(self, param=object):
        self.param = param

    def __repr__(self):
        return getattr(self.param, "__name__", str(self.param))

    def issubtype(self, other):
        mine, others = _plain_class(self.param), _plain_class(other.param)
        return others is object or issubclass(mine, others)

    def issubtype_of_instance(self, value):
        return isinstance(value, _plain_class(self.param))


def _plain_class(annotation):
    """The class to check against: that of ``list[int]`` is list; what is not a class allows everything."""
    from typing import Any, get_origin

    found = get_origin(annotation) or annotation
    return found if isinstance(found, type) and found is not Any else object


class _DataPipeMeta(ABCMeta):
    """The class of pipe classes."""


class _DataPipe:
    """What both kinds of pipe have in common: steps as methods, hooks for pickling and printing."""

    functions: dict = {}
    reduce_ex_hook = None
    getstate_hook = None
    str_hook = None
    repr_hook = None
    type = _DataPipeType()

    def __class_getitem__(cls, param):
        return type(cls)(cls.__name__, (cls,), {"type": _DataPipeType(param), "__module__": cls.__module__})

    def __getattr__(self, attribute_name):
        function = type(self).functions.get(attribute_name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{attribute_name}")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",))

    def __dir__(self):
        return [*super().__dir__(), *self.functions]

    @classmethod
    def register_function(cls, function_name, function):
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name, cls_to_register, enable_df_api_tracing=False):
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")

        @functools.wraps(cls_to_register, assigned=("__doc__",), updated=())
        def function(source, *args, **kwargs):
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = function

    # The hooks belong to the two public classes; each is found on the one that it was set on.
    @classmethod
    def set_getstate_hook(cls, hook_fn):
        cls._set_hook("getstate_hook", hook_fn)

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn):
        cls._set_hook("reduce_ex_hook", hook_fn)

    @classmethod
    def _set_hook(cls, name, hook):
        if getattr(cls, name) is not None and hook is not None:
            raise RuntimeError(f"Attempt to override existing {name}")
        setattr(cls, name, staticmethod(hook) if hook is not None else None)

    def __getstate__(self):
        state = {
            k: v for k, v in self.__dict__.items() if k not in ("_fast_forward_iterator", "_snapshot_state")
        }
        return type(self).getstate_hook(state) if type(self).getstate_hook is not None else state

    def __reduce_ex__(self, *args, **kwargs):
        if type(self).reduce_ex_hook is not None:
            try:
                return type(self).reduce_ex_hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(*args, **kwargs)

    def __repr__(self):
        return type(self).repr_hook(self) if type(self).repr_hook is not None else type(self).__qualname__

    def __str__(self):
        return type(self).str_hook(self) if type(self).str_hook is not None else type(self).__qualname__

    def _source_length(self, *sources):
        """The lengths of other pipes, or the error that this one has none."""
        try:
            return [len(source) for source in sources]
        except (TypeError, NotImplementedError):
            raise TypeError(f"{type(self).__name__} instance doesn't have valid length") from None


class IterDataPipe(_DataPipe, IterableDataset, metaclass=_DataPipeMeta):
    """A stream of samples. Steps are methods: ``pipe.map(f).shuffle().batch(4)``.

    A pipe has one iterator at a time: a new one calls :meth:`reset` and ends the one before.
    """

    functions: dict = {}
    _valid_iterator_id = None
    _number_of_samples_yielded = 0
    _snapshot_state = _SnapshotState.NotStarted
    _fast_forward_iterator = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = with_one_iterator(vars(cls)["__iter__"])

    def __iter__(self):
        return self

    def reset(self):
        """Goes back to the beginning; for steps that keep something."""

    def _begin(self):
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self._begin_anew()
        return self._valid_iterator_id

    def _begin_anew(self):
        if self._snapshot_state is not _SnapshotState.Restored:  # what is restored goes on where it was
            self._number_of_samples_yielded = 0
            self._fast_forward_iterator = None
            self.reset()
        self._snapshot_state = _SnapshotState.Iterating

    def _is_current(self, number):
        return self._valid_iterator_id == number


class DFIterDataPipe(IterDataPipe):
    """A stream of data frames."""

    def _is_dfpipe(self):
        return True


class MapDataPipe(_DataPipe, Dataset, metaclass=_DataPipeMeta):
    """Samples by key. Steps are methods: ``pipe.map(f).batch(4)``."""

    functions: dict = {}


class _DataPipeSerializationWrapper:
    """A pipe on its way to a worker process: pickled by dill where pickle can't, if dill is installed."""

    def __init__(self, datapipe):
        self._datapipe = datapipe

    def __getstate__(self):
        try:
            return pickle.dumps(self._datapipe), False
        except Exception:
            try:
                import dill
            except ImportError:
                dill = None
            if dill is None:
                raise
            return dill.dumps(self._datapipe), True

    def __setstate__(self, state):
        value, use_dill = state
        if use_dill:
            import dill as module
        else:
            module = pickle
        self._datapipe = module.loads(value)

    def __len__(self):
        return self._source_length(self._datapipe)[0]


class _IterDataPipeSerializationWrapper(_DataPipeSerializationWrapper, IterDataPipe):
    def __iter__(self):
        yield from self._datapipe


class _MapDataPipeSerializationWrapper(_DataPipeSerializationWrapper, MapDataPipe):
    def __getitem__(self, idx):
        return self._datapipe[idx]
