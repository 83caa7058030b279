"""Batches of sequences of different lengths: padded, and packed."""

import functools
from collections import namedtuple

import rushlight as torch

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pad_packed_sequence", "pad_sequence",
    "unpad_sequence", "pack_sequence", "unpack_sequence",
]  # fmt: skip

PackedSequence_ = namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
PackedSequence_.__annotations__ = {"data": torch.Tensor, "batch_sizes": torch.Tensor}


def invert_permutation(permutation):
    """The permutation that undoes a permutation.

    Args:
        permutation (Tensor or None): (n), the numbers below n.

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    inverse = torch.empty_like(permutation)
    inverse.scatter_(0, permutation, torch.arange(permutation.numel(), device=permutation.device))
    return inverse


class PackedSequence(PackedSequence_):
    """The elements of all sequences time step by time step, and how many sequences reach each step.

    Made by `pack_sequence` and `pack_padded_sequence`.

    Args:
        data (Tensor): (elements, ..).
        batch_sizes (Tensor): of each step, int64 on the CPU.
        sorted_indices (Tensor, optional): which sequence of the batch comes where.
        unsorted_indices (Tensor, optional): the way back.

    Raises: ValueError where batch sizes are not on the CPU.

    Example:
        >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).batch_sizes
        tensor([2, 1])
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:  # one pair, an old form
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is not None and batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created "
                "manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs):
        """The data (and with it the indices) moved or converted."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        # The indices follow to the device, but keep their type.
        indices = [
            None if i is None else i.to(data.device) for i in (self.sorted_indices, self.unsorted_indices)
        ]
        return type(self)(data, self.batch_sizes, *indices)

    def pin_memory(self):
        def pin(t):
            return None if t is None else t.pin_memory()

        return type(self)(
            pin(self.data), self.batch_sizes, pin(self.sorted_indices), pin(self.unsorted_indices)
        )

    def cuda(self, *args, **kwargs):
        if not torch.tensor((), dtype=self.data.dtype, device=self.data.device).to(*args, **kwargs).is_cuda:
            kwargs["device"] = "cuda"
        return self.to(*args, **kwargs)

    def cpu(self, *args, **kwargs):
        return self.to(*args, **{**kwargs, "device": "cpu"})

    def double(self):
        return self.to(dtype=torch.double)

    def float(self):
        return self.to(dtype=torch.float)

    def half(self):
        return self.to(dtype=torch.half)

    def long(self):
        return self.to(dtype=torch.long)

    def int(self):
        return self.to(dtype=torch.int)

    def short(self):
        return self.to(dtype=torch.short)

    def char(self):
        return self.to(dtype=torch.int8)

    def byte(self):
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self):
        return self.data.is_cuda

    def is_pinned(self):
        return self.data.is_pinned()


def one_call_in_traces(function):
    """A function that a trace records as one call, since what it does follows from values of its tensors."""

    @functools.wraps(function)
    def call(*args):
        from rushlight.jit._decorations import _tracing  # jit is above

        recorder = getattr(_tracing, "recorder", None)
        return function(*args) if recorder is None else recorder.call_of_operator(call, function, args, {})

    vars(call)["_only_computes"] = True  # files of scripts may name it
    return call


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Packs a padded batch, so that recurrent layers compute no padding.

    Args:
        input (Tensor): (time, batch, ..), or (batch, time, ..) with `batch_first`.
        lengths (Tensor or list): of the sequences, above 0.
        batch_first (bool): whether the batch is the first dimension.
        enforce_sorted (bool): whether lengths have to fall, as ONNX exports need it.

    Returns: a PackedSequence.

    Raises: RuntimeError where a length is not above 0, or they do not fall and have to.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 0]])
        >>> packed = torch.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    lengths = lengths.to(torch.int64)
    if lengths.device.type != "cpu" or lengths.dim() != 1:
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, "
            f"but got {lengths.dim()}D {lengths.device} Long tensor"
        )
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    data, batch_sizes = _pack_padded_sequence(input, lengths)
    return PackedSequence(data, batch_sizes, sorted_indices, None)


@one_call_in_traces
def _pack_padded_sequence(input, lengths):
    """The steps of a (time, batch, …) tensor that are within each length, in order of time."""
    return torch._pack_padded_sequence(input, lengths, False)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """The padded batch and the lengths that a packed sequence was made from.

    Args:
        sequence (PackedSequence): what is padded.
        batch_first (bool): whether the batch is the first dimension of the result.
        padding_value (float): what is put behind the ends.
        total_length (int, optional): the time to pad to.

    Returns: (batch, lengths).

    Raises: ValueError where `total_length` is below the longest.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    padded, lengths = _pad_packed_sequence(
        sequence.data, sequence.batch_sizes, float(padding_value), total_length
    )
    if batch_first:
        padded = padded.transpose(0, 1)
    unsorted_indices = sequence.unsorted_indices
    if unsorted_indices is None:
        return padded, lengths
    dim = 0 if batch_first else 1
    return padded.index_select(dim, unsorted_indices), lengths[unsorted_indices.cpu()]


@one_call_in_traces
def _pad_packed_sequence(data, batch_sizes, padding_value, total_length):
    """The (time, batch, …) tensor that was packed, and the lengths of its sequences."""
    steps = batch_sizes.numel()
    if total_length is not None and total_length < steps:
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {steps}"
        )
    return torch._pad_packed_sequence(data, batch_sizes, False, padding_value, total_length or 0)


@one_call_in_traces
def zeros_of_packed(data, batch_sizes, layers, size):
    """Zeros for the state of each layer and packed sequence."""
    return data.new_zeros((layers, int(batch_sizes[0]), size))


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """A list of (length, …) tensors as one tensor, the shorter ones filled up with padding_value.

    Args:
        sequences (list of Tensor): tensors that differ in their first size only.
        batch_first (bool): whether the batch is the first dimension of the result.
        padding_value (float): what fills up.
        padding_side (str): 'right' or 'left'.

    Shape: (length_i, ..) become (longest, batch, ..), or (batch, longest, ..).

    Example:
        >>> torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)], batch_first=True)
        tensor([[1., 0.],
                [1., 1.]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    elif not (hasattr(sequences, "__iter__")):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for i, sequence in enumerate(sequences):
        if not isinstance(sequence, torch.Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(sequence).__name__}"
            )
    longest = max(s.size(0) for s in sequences)
    out = sequences[0].new_full((len(sequences), longest, *sequences[0].shape[1:]), padding_value)
    for i, sequence in enumerate(sequences):
        length = sequence.size(0)
        if padding_side == "right":
            out[i, :length] = sequence
        else:
            out[i, longest - length :] = sequence
    return out if batch_first else out.transpose(0, 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """The sequences of a padded batch, cut to their lengths.

    Args:
        padded_sequences (Tensor): (time, batch, ..), or (batch, time, ..) with `batch_first`.
        lengths (Tensor): of the sequences.
        batch_first (bool): whether the batch is the first dimension.

    Returns: a list of tensors.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 0]])
        >>> torch.nn.utils.rnn.unpad_sequence(x, torch.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[:length] for sequence, length in zip(padded_sequences.unbind(0), lengths.tolist())]


def pack_sequence(sequences, enforce_sorted=True):
    """Packs a list of sequences.

    Args:
        sequences (list of Tensor): (length, ..) each.
        enforce_sorted (bool): whether lengths have to fall, as ONNX exports need it.

    Returns: a PackedSequence.

    Raises: RuntimeError where lengths do not fall and have to.

    Example:
        >>> torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])]).data
        tensor([1, 3, 2])
    """
    lengths = torch.as_tensor([v.size(0) for v in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """The list of tensors that was packed.

    Args:
        packed_sequences (PackedSequence): what is taken apart.

    Returns: a list of tensors.

    Example:
        >>> packed = torch.nn.utils.rnn.pack_sequence([torch.tensor([1, 2]), torch.tensor([3])])
        >>> torch.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
