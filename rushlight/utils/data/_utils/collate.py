"""Collation: from a list of samples to a batch of the same structure."""

import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import rushlight
from rushlight._errors.advice import advised, attach
from rushlight.utils.data._utils.worker import get_worker_info

_NO_NUMBERS = "SaUO"  # one of these is in the dtype of arrays that hold no numbers
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def __getattr__(name):
    if name == "np_str_obj_array_pattern":  # packages take it from here
        import re

        return re.compile(f"[{_NO_NUMBERS}]")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _is_text_array(array):
    return any(kind in array.dtype.str for kind in _NO_NUMBERS)


def default_convert(data):
    """Turns NumPy's values inside a structure into tensors; everything else stays.

    Args:
        data: dicts, tuples, lists and values.

    Example:
        >>> import numpy
        >>> torch.utils.data.default_convert([numpy.ones(2), "a"])
        [tensor([1., 1.], dtype=torch.float64), 'a']
    """
    numpy = sys.modules.get("numpy")
    if isinstance(data, rushlight.Tensor):
        return data
    if numpy is not None and isinstance(data, (numpy.ndarray, numpy.generic)):
        # As PyTorch: arrays of other modules (masked ones, records) are more than their numbers.
        own = type(data).__module__ == "numpy"
        return rushlight.as_tensor(data) if own and not _is_text_array(data) else data
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(value) for value in data))
    if isinstance(data, tuple):
        return [default_convert(value) for value in data]
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(value) for value in data])
    return data


def _copied(sample):
    from copy import copy

    return copy(sample)


def _like_mapping(sample, values):
    """The values in a mapping of the sample's type, or a plain dict where that type cannot be built so."""
    try:
        if isinstance(sample, MutableMapping):
            # A copy keeps what the type carries besides its items.
            result = _copied(sample)
            result.update(values)
            return result
        return type(sample)(values)
    except TypeError:
        return values


def _like_sequence(sample, values):
    try:
        if isinstance(sample, MutableSequence):
            result = _copied(sample)
            for i, value in enumerate(values):
                result[i] = value
            return result
        return type(sample)(values)
    except TypeError:
        return values


def collate(batch, *, collate_fn_map=None):
    """Collate samples with a function per type of element; mappings and sequences are gone through."""
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        function = collate_fn_map.get(kind)
        if function is None:
            found = (f for types, f in collate_fn_map.items() if isinstance(elem, types))
            function = next(found, None)
        if function is None:
            function = _numpy_collate_fn(elem)
        if function is not None:
            return function(batch, collate_fn_map=collate_fn_map)

    def inner(samples):
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(elem, Mapping):
        return _like_mapping(elem, {key: inner(_values_of(key, batch)) for key in elem})
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*(inner(samples) for samples in zip(*batch)))
    if isinstance(elem, Sequence):
        if any(len(sample) != len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [inner(samples) for samples in zip(*batch)]
        return columns if isinstance(elem, tuple) else _like_sequence(elem, columns)
    raise advised(TypeError(default_collate_err_msg_format.format(kind)))


def _values_of(key, batch):
    try:
        return [sample[key] for sample in batch]
    except KeyError as error:
        lacks = next(list(sample) for sample in batch if key not in sample)
        note = f"fix: samples of a batch need the same keys: one has {list(batch[0])}, another {lacks}"
        attach(error, note)
        raise


def batch_in_shared_memory(n, sample):
    """Where a worker process puts `n` tensors like the sample, so that the batch needs no copy on its way
    out; None in the main process and its threads, and for tensors that have no such memory."""
    worker = get_worker_info()
    if worker is None or worker.worker_method == "thread":
        return None
    if sample.requires_grad or sample.layout != rushlight.strided:
        return None
    if not sample.is_cpu or not sample.numel():
        return None
    storage = rushlight.UntypedStorage._new_shared(n * sample.nbytes)
    return sample.new(storage).view(n, *sample.shape)


def collate_tensor_fn(batch, *, collate_fn_map=None):
    return rushlight.stack(batch, 0, out=batch_in_shared_memory(len(batch), batch[0]))


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    if _is_text_array(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([rushlight.as_tensor(b) for b in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return rushlight.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return rushlight.tensor(batch, dtype=rushlight.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return rushlight.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


def _numpy_collate_fn(elem):
    """NumPy's types are looked up late, so that loading plain tensors does not import NumPy."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if isinstance(elem, numpy.ndarray):
        return collate_numpy_array_fn
    if isinstance(elem, (numpy.bool_, numpy.number, numpy.object_)):
        return collate_numpy_scalar_fn
    return None


default_collate_fn_map = {
    rushlight.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """A batch of samples as tensors: numbers, arrays and tensors are stacked, strings listed.

    Args:
        batch (list): samples of one structure of dicts, tuples and lists.

    Returns: the structure with batches in place of values.

    Raises: TypeError for values of another kind; RuntimeError where shapes or lengths differ.

    Example:
        >>> torch.utils.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
