"""Recurrent layers and cells."""

import math
import warnings

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import init
from rushlight.nn.parameter import Parameter
from rushlight.nn.utils.rnn import PackedSequence, zeros_of_packed

from ._recurrent_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase, _op
from .module import Module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import overload

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _is_number(value):
    from numbers import Number

    return isinstance(value, Number)


def _autocasting():
    return torch._C._autocast_region(False)[0] or torch._C._autocast_region(True)[0]


def apply_permutation(tensor, permutation, dim=1):
    warnings.warn(
        "apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead",
        FutureWarning,
        stacklevel=2,
    )
    return _permuted(tensor, permutation, dim)


def _permuted(tensor, permutation, dim=1):
    return tensor if permutation is None else tensor.index_select(dim, permutation)


class RNNBase(Module):
    """The parameters and checks that the recurrent layers share.

    Args:
        mode (str): 'RNN_TANH', 'RNN_RELU', 'LSTM' or 'GRU'.
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size: see `LSTM`.
        device, dtype: where and in which dtype the parameters are made.

    Shape: see `RNN`, `GRU` and `LSTM`.

    Formula: see `RNN`, `GRU` and `LSTM`

    Raises: ValueError where an option is out of its range.

    Example:
        >>> [tuple(p.shape) for p in torch.nn.RNNBase("GRU", 3, 4).parameters()]
        [(12, 3), (12, 4), (12,), (12,)]
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional",
        "proj_size",
    ]  # fmt: skip
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout) if _is_number(dropout) else dropout
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        self._make_parameters(device, dtype)
        self.reset_parameters()

    def _check_arguments(self, dropout):
        if not _is_number(dropout) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being "
                "zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={self.num_layers}",
                stacklevel=4,
            )
        kinds = {"input_size": int, "hidden_size": int, "bias": bool, "batch_first": bool}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
        if self.input_size <= 0:
            raise ValueError("input_size must be greater than zero")
        if self.hidden_size <= 0:
            raise ValueError("hidden_size must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def _make_parameters(self, device, dtype):
        rows = _GATES[self.mode] * self.hidden_size
        out_size = self.proj_size or self.hidden_size
        directions = 2 if self.bidirectional else 1
        self._flat_weights_names = []
        self._all_weights = []
        for layer in range(self.num_layers):
            in_size = self.input_size if layer == 0 else out_size * directions
            for direction in range(directions):
                shapes = {"weight_ih": (rows, in_size), "weight_hh": (rows, out_size)}
                if self.bias:
                    shapes.update(bias_ih=(rows,), bias_hh=(rows,))
                if self.proj_size:
                    shapes["weight_hr"] = (self.proj_size, self.hidden_size)
                suffix = f"_l{layer}" + ("_reverse" if direction == 1 else "")
                names = [name + suffix for name in shapes]
                for name, shape in zip(names, shapes.values()):
                    setattr(self, name, Parameter(torch.empty(shape, device=device, dtype=dtype)))
                self._flat_weights_names += names
                self._all_weights.append(names)

    @property
    def _flat_weights(self):
        """The weights to compute with: those put here, as long as the module's are those of then."""
        weights = [getattr(self, name, None) for name in self._flat_weights_names]
        for i, then, given in self.__dict__.get("_given_weights", ()):
            if weights[i] is then:
                weights[i] = given
        return weights

    @_flat_weights.setter
    def _flat_weights(self, weights):
        own = [getattr(self, name, None) for name in self._flat_weights_names]
        if len(weights) != len(own):
            raise ValueError(f"_flat_weights: expected {len(own)} weights, got {len(weights)}")
        given = [(i, then, now) for i, (then, now) in enumerate(zip(own, weights)) if now is not then]
        object.__setattr__(self, "_given_weights", given)

    @property
    def all_weights(self):
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: the kernels take the weights as they are."""

    def check_input(self, input, batch_sizes):
        dtype = self._flat_weights[0].dtype
        if dtype != input.dtype and not _autocasting():
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). Convert input: "
                f"input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        return self._state_size(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_size(self, input, batch_sizes, size):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, size

    def check_hidden_size(self, hx, expected_hidden_size, msg="Expected hidden size {}, got {}"):
        if tuple(hx.size()) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx, permutation):
        return _permuted(hx, permutation)

    def _zero_state(self, input, batch_sizes):
        return self._zeros_of(input, batch_sizes, self.proj_size or self.hidden_size)

    def _zeros_of(self, input, batch_sizes, size):
        if batch_sizes is not None:
            layers = self.num_layers * (2 if self.bidirectional else 1)
            return zeros_of_packed(input, batch_sizes, layers, size)
        size = self._state_size(input, None, size)
        return torch.zeros(size, dtype=input.dtype, device=input.device)

    def _check_unbatched_state(self, hx, batched):
        wanted = 3 if batched else 2
        if hx.dim() != wanted:
            kind = "batched" if batched else "unbatched"
            raise RuntimeError(
                f"For {kind} {wanted}-D input, hx should also be {wanted}-D but got {hx.dim()}-D tensor"
            )

    def _state_map(self, fn, state):
        """fn of each tensor of a state: one for most layers, two for an LSTM."""
        return fn(state)

    def _run(self, input, batch_sizes, hx):
        self.check_forward_args(input, hx, batch_sizes)
        op = _op(self.mode.lower())
        options = (
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        if batch_sizes is None:
            return op(input, hx, *options, self.batch_first)
        return op(input, batch_sizes, hx, *options)

    def forward(self, input, hx=None):
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        if hx is None:
            hx = self._zero_state(input, None)
        else:
            self._check_unbatched_state(hx, batched)
            if not batched:
                hx = self._state_map(lambda t: t.unsqueeze(1), hx)
        output, *state = self._run(input, None, hx)
        state = self._joined(state)
        if not batched:
            output = output.squeeze(batch_dim)
            state = self._state_map(lambda t: t.squeeze(1), state)
        return output, state

    def _forward_packed(self, packed, hx):
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._zero_state(data, batch_sizes)
        else:
            # The caller's order of the sequences is not the packed one.
            hx = self.permute_hidden(hx, sorted_indices)
        output, *state = self._run(data, batch_sizes, hx)
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(self._joined(state), unsorted_indices)

    def _joined(self, state):
        return state[0]

    def extra_repr(self):
        parts = [f"{self.input_size}, {self.hidden_size}"]
        if self.proj_size != 0:
            parts.append(f"proj_size={self.proj_size}")
        if self.num_layers != 1:
            parts.append(f"num_layers={self.num_layers}")
        if self.bias is not True:
            parts.append(f"bias={self.bias}")
        if self.batch_first is not False:
            parts.append(f"batch_first={self.batch_first}")
        if self.dropout != 0:
            parts.append(f"dropout={self.dropout}")
        if self.bidirectional is not False:
            parts.append(f"bidirectional={self.bidirectional}")
        return ", ".join(parts)

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.pop("_flat_weights", None)
        self.__dict__.setdefault("proj_size", 0)
        if "all_weights" in state:
            self._all_weights = state["all_weights"]
        if "_flat_weights_names" not in self.__dict__:
            self._flat_weights_names = [name for names in self._all_weights for name in names]


class RNN(RNNBase):
    """Elman's recurrent layers (1990): each step sees the input and the state before.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the state.
        num_layers (int): layers, each above the other.
        nonlinearity (str): 'tanh' or 'relu'.
        bias (bool): whether biases are added.
        batch_first (bool): whether the batch is the first dimension.
        dropout (float): probability of dropout between layers.
        bidirectional (bool): whether other layers go backwards.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (time, batch, input_size) and a state (layers * directions, batch, hidden_size) or None become
        outputs
        (time, batch, directions * hidden_size) and the last state.

    Formula: h' = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)

    Raises: ValueError where an option is out of its range; RuntimeError where shapes do not fit.

    Example:
        >>> output, state = torch.nn.RNN(3, 4)(torch.ones(5, 1, 3))
        >>> output.shape, state.shape
        (torch.Size([5, 1, 4]), torch.Size([1, 1, 4]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self, input: PackedSequence, hx: Tensor | None = None
        ) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input, hx=None): ...

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:  # nonlinearity is the fourth argument here
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__("RNN_" + self.nonlinearity.upper(), *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units (Cho and others 2014).

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the state.
        num_layers (int): layers, each above the other.
        bias (bool): whether biases are added.
        batch_first (bool): whether the batch is the first dimension.
        dropout (float): probability of dropout between layers.
        bidirectional (bool): whether other layers go backwards.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (time, batch, input_size) and a state (layers * directions, batch, hidden_size) or None become
        outputs
        (time, batch, directions * hidden_size) and the last state; also a `PackedSequence`.

    Formula: r, z = sigmoid of affine maps of x and h; n = tanh(W_in x + b_in + r * (W_hn h + b_hn));
        h' = (1 - z) * n + z * h

    Raises: ValueError where an option is out of its range; RuntimeError where shapes do not fit.

    Example:
        >>> output, state = torch.nn.GRU(3, 4, batch_first=True)(torch.ones(1, 5, 3))
        >>> output.shape, state.shape
        (torch.Size([1, 5, 4]), torch.Size([1, 1, 4]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]: ...
        @overload
        def __call__(
            self, input: PackedSequence, hx: Tensor | None = None
        ) -> tuple[PackedSequence, Tensor]: ...
        def __call__(self, input, hx=None): ...

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


class LSTM(RNNBase):
    """Long short-term memory (Hochreiter and Schmidhuber 1997), with forget gates.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the cell.
        num_layers (int): layers, each above the other.
        bias (bool): whether biases are added.
        batch_first (bool): whether the batch is the first dimension.
        dropout (float): probability of dropout between layers.
        bidirectional (bool): whether other layers go backwards.
        proj_size (int): features of a projection of the state; 0 is none.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (time, batch, input_size) and states (h, c), each (layers * directions, batch, hidden_size), or
        None
        become outputs (time, batch, directions * hidden_size) and the last (h, c); also a `PackedSequence`.

    Formula: i, f, o = sigmoid and g = tanh of affine maps of x and h; c' = f * c + i * g; h' = o * tanh(c')

    Raises: ValueError where an option is out of its range; RuntimeError where shapes do not fit.

    Example:
        >>> output, (h, c) = torch.nn.LSTM(3, 4, num_layers=2)(torch.ones(5, 1, 3))
        >>> output.shape, h.shape, c.shape
        (torch.Size([5, 1, 4]), torch.Size([2, 1, 4]), torch.Size([2, 1, 4]))
    """

    if TYPE_CHECKING:

        @overload
        def __call__(
            self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]: ...
        @overload
        def __call__(
            self, input: PackedSequence, hx: tuple[Tensor, Tensor] | None = None
        ) -> tuple[PackedSequence, tuple[Tensor, Tensor]]: ...
        def __call__(self, input, hx=None): ...

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes):
        self.check_input(input, batch_sizes)
        self.check_hidden_size(
            hidden[0], self.get_expected_hidden_size(input, batch_sizes), "Expected hidden[0] size {}, got {}"
        )
        self.check_hidden_size(
            hidden[1], self.get_expected_cell_size(input, batch_sizes), "Expected hidden[1] size {}, got {}"
        )

    def permute_hidden(self, hx, permutation):
        return self._state_map(lambda t: _permuted(t, permutation), hx)

    def _zero_state(self, input, batch_sizes):
        sizes = (self.proj_size or self.hidden_size, self.hidden_size)
        return tuple(self._zeros_of(input, batch_sizes, size) for size in sizes)

    def _check_unbatched_state(self, hx, batched):
        wanted = 3 if batched else 2
        dims = (hx[0].dim(), hx[1].dim())
        if dims != (wanted, wanted):
            kind = "batched" if batched else "unbatched"
            raise RuntimeError(
                f"For {kind} {wanted}-D input, hx and cx should also be {wanted}-D but got "
                f"({dims[0]}-D, {dims[1]}-D) tensors"
            )

    def _state_map(self, fn, state):
        return fn(state[0]), fn(state[1])

    def _joined(self, state):
        return tuple(state)
