"""The base classes of data pipes, by iteration and by index."""

import functools
import inspect
import pickle
from abc import ABCMeta

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
        state = dict(self.__dict__)
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


def _arguments_of(pipe):
    names = inspect.signature(type(pipe)).parameters
    shown = {name: vars(pipe)[name] for name in names if name in vars(pipe)}
    return ", ".join(
        f"{name}={value.__name__ if inspect.isfunction(value) else value!r}" for name, value in shown.items()
    )


def _check_newest(pipe, number):
    if pipe._is_current(number):
        return
    raise RuntimeError(
        "This iterator has been invalidated because another iterator has been created from the same "
        f"IterDataPipe: {type(pipe).__name__}({_arguments_of(pipe)})\n"
        "This may be caused by multiple references to the same IterDataPipe. We recommend using `.fork()` if "
        "that is necessary (single iterator per IterDataPipe constraint)."
    )


class _PipeIterator:
    """The iterator of a pipe whose ``__iter__`` is no generator."""

    def __init__(self, iterator, pipe, number):
        self.iterator, self.pipe, self.number = iterator, pipe, number

    def __iter__(self):
        return self

    def __next__(self):
        _check_newest(self.pipe, self.number)
        return next(self.iterator)

    def __getattr__(self, name):
        return getattr(self.iterator, name)


def _with_one_iterator(method):
    """``__iter__`` that resets the pipe first, and ends the iterators made before."""
    if not inspect.isgeneratorfunction(method):

        @functools.wraps(method)
        def start(self):
            iterator = method(self)
            return _PipeIterator(iterator, self, self._begin())

        return start

    @functools.wraps(method)
    def generate(self):
        number = self._begin()
        values = method(self)
        try:
            for value in values:
                yield value
                _check_newest(self, number)
        except Exception as e:
            _name_pipe(e, self)
            raise

    return generate


def _name_pipe(error, pipe):
    """Says in the error's text which step of a pipeline failed: the innermost one."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    if "thrown by __iter__ of" in text or "single iterator per IterDataPipe constraint" in text:
        return
    note = f"\nThis exception is thrown by __iter__ of {type(pipe).__name__}({_arguments_of(pipe)})"
    if not error.args:
        error.args = (note,)
    elif isinstance(error.args[0], str):
        error.args = (text + note, *error.args[1:])


class IterDataPipe(_DataPipe, IterableDataset, metaclass=_DataPipeMeta):
    """A stream of samples. Steps are methods: ``pipe.map(f).shuffle().batch(4)``.

    A pipe has one iterator at a time: a new one calls :meth:`reset` and ends the one before.
    """

    functions: dict = {}
    _valid_iterator_id = None

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__iter__" in vars(cls):
            cls.__iter__ = _with_one_iterator(vars(cls)["__iter__"])

    def __iter__(self):
        return self

    def reset(self):
        """Goes back to the beginning; for steps that keep something."""

    def _begin(self):
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self.reset()
        return self._valid_iterator_id

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
