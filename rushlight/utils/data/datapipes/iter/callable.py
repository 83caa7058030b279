"""Steps that apply a function to each sample."""

from rushlight.utils.data._utils.collate import default_collate
from rushlight.utils.data.datapipes._decorator import functional_datapipe
from rushlight.utils.data.datapipes.datapipe import IterDataPipe
from rushlight.utils.data.datapipes.utils.common import StreamWrapper, check_unpickable_fn, validate_input_col

__all__ = ["CollatorIterDataPipe", "FilterIterDataPipe", "MapperIterDataPipe"]


def _call_on(fn, data, input_col):
    """fn(sample), or fn of one or some of its columns."""
    if input_col is None:
        return fn(data)
    if isinstance(input_col, (list, tuple)):
        return fn(*(data[col] for col in input_col))
    return fn(data[input_col])


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """The function's value for each sample, or the sample with it in `output_col`; -1 appends a column
    (functional name: ``map``).

    Args:
        datapipe: the samples.
        fn: the function.
        input_col: the column or columns that it takes, in place of the whole sample.
        output_col: the column that its value goes to; the first one of `input_col` by default.

    Example:
        >>> list(IterableWrapper(range(3)).map(str))
        ['0', '1', '2']
    """

    def __init__(self, datapipe, fn, input_col=None, output_col=None):
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        check_unpickable_fn(fn)
        validate_input_col(fn, input_col)
        self.datapipe = datapipe
        self.fn = fn
        self.input_col = input_col
        self.output_col = output_col

    def _apply_fn(self, data):
        result = _call_on(self.fn, data, self.input_col)
        if self.input_col is None:
            return result
        sample = list(data) if isinstance(data, tuple) else data
        if self.output_col is None:
            first, *others = self.input_col if isinstance(self.input_col, (list, tuple)) else [self.input_col]
            sample[first] = result
            for column in sorted(others, reverse=True):
                del sample[column]
        elif self.output_col == -1:
            sample.append(result)
        else:
            sample[self.output_col] = result
        return tuple(sample) if isinstance(data, tuple) else sample

    def __iter__(self):
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self):
        return self._source_length(self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Collates each batch (functional name: ``collate``).

    Args:
        datapipe: the batches.
        conversion: the function that makes tensors of a batch.
        collate_fn: the same, under its former name.

    Example:
        >>> list(IterableWrapper([[1, 2], [3, 4]]).collate())
        [tensor([1, 2]), tensor([3, 4])]
    """

    def __init__(self, datapipe, conversion=default_collate, collate_fn=None):
        fn = conversion if collate_fn is None else collate_fn
        if not callable(fn):
            raise NotImplementedError(
                "CollatorIterDataPipe: a dict of conversions is for columns of data frames, which are not "
                "supported; pass a function"
            )
        super().__init__(datapipe, fn=fn)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The samples for which the function is true (functional name: ``filter``).

    Args:
        datapipe: the samples.
        filter_fn: the function.
        input_col: the column or columns that it takes, in place of the whole sample.

    Example:
        >>> list(IterableWrapper([-1, 2]).filter(is_positive))
        [2]
    """

    def __init__(self, datapipe, filter_fn, input_col=None):
        check_unpickable_fn(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe = datapipe
        self.filter_fn = filter_fn
        self.input_col = input_col

    def __iter__(self):
        for data in self.datapipe:
            wanted = _call_on(self.filter_fn, data, self.input_col)
            if not isinstance(wanted, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(wanted)
                )
            if wanted:
                yield data
            else:
                StreamWrapper.close_streams(data)
