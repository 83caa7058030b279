"""Recurrent cells: one step of a layer."""

import math

import rushlight as torch
from rushlight import Tensor
from rushlight._command.names import show_from
from rushlight._errors.advice import advised
from rushlight.nn import init
from rushlight.nn.parameter import Parameter

from .module import Module


def _op(name):
    """The core's operator, or the loop in Python where it has none."""
    op = getattr(torch, name, None)
    if op is None:
        from . import _recurrent

        op = getattr(_recurrent, name)
    return op


class RNNCellBase(Module):
    """The parameters and checks that the recurrent cells share.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the state.
        bias (bool): whether biases are added.
        num_chunks (int): how many gates.
        device, dtype: where and in which dtype the parameters are made.

    Shape: see `RNNCell`, `GRUCell` and `LSTMCell`.

    Formula: see `RNNCell`, `GRUCell` and `LSTMCell`

    Example:
        >>> [tuple(p.shape) for p in torch.nn.RNNCellBase(3, 4, True, 3).parameters()]
        [(12, 3), (12, 4), (12,), (12,)]
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(torch.empty((rows, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(torch.empty((rows, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            value = Parameter(torch.empty(rows, device=device, dtype=dtype)) if bias else None
            self.register_parameter(name, value)
        self.reset_parameters()

    def reset_parameters(self):
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dim(self, tensor, what):
        if tensor.dim() not in (1, 2):
            raise ValueError(
                f"{self._get_name()}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead"
            )

    def _zero_state(self, input):
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _weights(self):
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _step(self, name, input, hx):
        """One step of a cell with a single state, with or without a batch dimension."""
        self._check_dim(input, "input")
        if hx is not None:
            self._check_dim(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            hx = self._zero_state(input)
        elif not batched:
            hx = hx.unsqueeze(0)
        self._check_sizes(input, hx)
        out = _op(name)(input, hx, *self._weights())
        return out if batched else out.squeeze(0)

    def _check_sizes(self, input, *states):
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}"
            )
        for i, state in enumerate(states):
            if input.size(0) != state.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {state.size(0)}"
                )
            if state.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, expected "
                    f"{self.hidden_size}"
                )

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text


class RNNCell(RNNCellBase):
    """One step of an `RNN` layer.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the state.
        bias (bool): whether biases are added.
        nonlinearity (str): 'tanh' or 'relu'.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, input_size) and a state (batch, hidden_size) or None become the next state.

    Formula: h' = tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)

    Raises: RuntimeError where shapes do not fit.

    Example:
        >>> torch.nn.RNNCell(3, 4)(torch.ones(2, 3)).shape
        torch.Size([2, 4])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"rnn_{self.nonlinearity}_cell", input, hx)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM` layer.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the cell.
        bias (bool): whether biases are added.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, input_size) and states (h, c), each (batch, hidden_size), or None become the next (h, c).

    Formula: c' = f * c + i * g; h' = o * tanh(c'), see `LSTM`

    Raises: RuntimeError where shapes do not fit.

    Example:
        >>> h, c = torch.nn.LSTMCell(3, 4)(torch.ones(2, 3))
        >>> h.shape, c.shape
        (torch.Size([2, 4]), torch.Size([2, 4]))
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_dim(input, "input")
        if isinstance(hx, torch.Tensor):
            text = "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            raise advised(TypeError(text))
        if hx is not None:
            for i, state in enumerate(hx):
                self._check_dim(state, f"hx[{i}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
        if hx is None:
            zeros = self._zero_state(input)
            hx = (zeros, zeros)
        elif not batched:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        self._check_sizes(input, *hx)
        h, c = _op("lstm_cell")(input, hx, *self._weights())
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of a `GRU` layer.

    Args:
        input_size (int): features of the input.
        hidden_size (int): features of the state.
        bias (bool): whether biases are added.
        device, dtype: where and in which dtype the parameters are made.

    Shape: (batch, input_size) and a state (batch, hidden_size) or None become the next state.

    Formula: h' = (1 - z) * n + z * h, see `GRU`

    Raises: RuntimeError where shapes do not fit.

    Example:
        >>> torch.nn.GRUCell(3, 4)(torch.ones(2, 3)).shape
        torch.Size([2, 4])
    """

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru_cell", input, hx)


show_from("nn.modules.rnn", RNNCellBase, RNNCell, LSTMCell, GRUCell)
