"""Methods of layers as scripts over operators: of those whose own Python scripts have no words for.

Each function is named after the class and the method that it stands for."""

# Types are those of scripts, where a dtype is a number.
# mypy: ignore-errors

from typing import List, Optional, Tuple

import rushlight as torch
from rushlight import Tensor
from rushlight.nn import functional as F

# ruff: noqa: UP006, UP007, UP035, UP045, A002, N802


def _NormBase_forward(self, input: Tensor) -> Tensor:
    momentum = 0.0
    if self.momentum is not None:
        momentum = self.momentum
    if self.training and self.track_running_stats:
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
    training = self.training
    if self.running_mean is None and self.running_var is None:
        training = True
    return torch.ops.aten.batch_norm(
        input, self.weight, self.bias, self.running_mean, self.running_var, training, momentum, self.eps, True
    )


def _InstanceNorm_forward(self, input: Tensor) -> Tensor:
    use_input = self.training or not self.track_running_stats
    momentum = 0.0
    if self.momentum is not None:
        momentum = self.momentum
    return torch.ops.aten.instance_norm(
        input,
        self.weight,
        self.bias,
        self.running_mean,
        self.running_var,
        use_input,
        momentum,
        self.eps,
        True,
    )


def MaxPool1d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def AdaptiveAvgPool1d_forward(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool1d(input, self.output_size)


def AdaptiveMaxPool1d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.adaptive_max_pool1d(input, self.output_size)


def Conv1d__conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode == "zeros":
        return torch.ops.aten.conv1d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )
    padded = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
    return torch.ops.aten.conv1d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


def ConvTranspose1d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    assert output_size is None, "the size of the result cannot be given here"
    return torch.ops.aten.conv_transpose1d(
        input,
        self.weight,
        self.bias,
        self.stride,
        self.padding,
        self.output_padding,
        self.groups,
        self.dilation,
    )


def MaxPool2d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def AdaptiveAvgPool2d_forward(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool2d(input, self.output_size)


def AdaptiveMaxPool2d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.adaptive_max_pool2d(input, self.output_size)


def Conv2d__conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode == "zeros":
        return torch.ops.aten.conv2d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )
    padded = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
    return torch.ops.aten.conv2d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


def ConvTranspose2d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    assert output_size is None, "the size of the result cannot be given here"
    return torch.ops.aten.conv_transpose2d(
        input,
        self.weight,
        self.bias,
        self.stride,
        self.padding,
        self.output_padding,
        self.groups,
        self.dilation,
    )


def MaxPool3d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.max_pool3d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


def AdaptiveAvgPool3d_forward(self, input: Tensor) -> Tensor:
    return F.adaptive_avg_pool3d(input, self.output_size)


def AdaptiveMaxPool3d_forward(self, input: Tensor) -> Tensor:
    assert not self.return_indices, "places of maxima are not returned here"
    return F.adaptive_max_pool3d(input, self.output_size)


def Conv3d__conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
    if self.padding_mode == "zeros":
        return torch.ops.aten.conv3d(
            input, weight, bias, self.stride, self.padding, self.dilation, self.groups
        )
    padded = torch.ops.aten.pad(input, self._reversed_padding_repeated_twice, self.padding_mode)
    return torch.ops.aten.conv3d(padded, weight, bias, self.stride, 0, self.dilation, self.groups)


def ConvTranspose3d_forward(self, input: Tensor, output_size: Optional[List[int]] = None) -> Tensor:
    assert output_size is None, "the size of the result cannot be given here"
    return torch.ops.aten.conv_transpose3d(
        input,
        self.weight,
        self.bias,
        self.stride,
        self.padding,
        self.output_padding,
        self.groups,
        self.dilation,
    )


def AvgPool2d_forward(self, input: Tensor) -> Tensor:
    return torch.ops.aten.avg_pool2d(
        input,
        self.kernel_size,
        self.stride,
        self.padding,
        self.ceil_mode,
        self.count_include_pad,
        self.divisor_override,
    )


def AvgPool3d_forward(self, input: Tensor) -> Tensor:
    return torch.ops.aten.avg_pool3d(
        input,
        self.kernel_size,
        self.stride,
        self.padding,
        self.ceil_mode,
        self.count_include_pad,
        self.divisor_override,
    )


def _state(input: Tensor, count: int, batch_dim: int, size: int) -> Tensor:
    return torch.zeros([count, input.size(batch_dim), size], dtype=input.dtype, device=input.device)


def LSTM_forward(
    self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
    batch_dim = 0 if self.batch_first else 1
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(batch_dim)
    count = self.num_layers * (2 if self.bidirectional else 1)
    if hx is None:
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        state = [_state(input, count, batch_dim, size), _state(input, count, batch_dim, self.hidden_size)]
    else:
        state = [hx[0], hx[1]]
        if not batched:
            state = [hx[0].unsqueeze(1), hx[1].unsqueeze(1)]
    out, h, c = torch.ops.aten.lstm(
        input,
        state,
        self._flat_weights,
        self.bias,
        self.num_layers,
        self.dropout,
        self.training,
        self.bidirectional,
        self.batch_first,
    )
    if not batched:
        return out.squeeze(batch_dim), (h.squeeze(1), c.squeeze(1))
    return out, (h, c)


def GRU_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    batch_dim = 0 if self.batch_first else 1
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(batch_dim)
    if hx is None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        state = _state(input, count, batch_dim, self.hidden_size)
    else:
        state = hx if batched else hx.unsqueeze(1)
    out, h = torch.ops.aten.gru(
        input,
        state,
        self._flat_weights,
        self.bias,
        self.num_layers,
        self.dropout,
        self.training,
        self.bidirectional,
        self.batch_first,
    )
    if not batched:
        return out.squeeze(batch_dim), h.squeeze(1)
    return out, h


def RNN_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    batch_dim = 0 if self.batch_first else 1
    batched = input.dim() == 3
    if not batched:
        input = input.unsqueeze(batch_dim)
    if hx is None:
        count = self.num_layers * (2 if self.bidirectional else 1)
        state = _state(input, count, batch_dim, self.hidden_size)
    else:
        state = hx if batched else hx.unsqueeze(1)
    if self.mode == "RNN_TANH":
        out, h = torch.ops.aten.rnn_tanh(
            input,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
    else:
        out, h = torch.ops.aten.rnn_relu(
            input,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
    if not batched:
        return out.squeeze(batch_dim), h.squeeze(1)
    return out, h


def LSTMCell_forward(
    self, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]] = None
) -> Tuple[Tensor, Tensor]:
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        zeros = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
        state = [zeros, zeros]
    else:
        state = [hx[0], hx[1]]
        if not batched:
            state = [hx[0].unsqueeze(0), hx[1].unsqueeze(0)]
    h, c = torch.ops.aten.lstm_cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    if not batched:
        return h.squeeze(0), c.squeeze(0)
    return h, c


def GRUCell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        state = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
    else:
        state = hx if batched else hx.unsqueeze(0)
    h = torch.ops.aten.gru_cell(input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
    return h if batched else h.squeeze(0)


def RNNCell_forward(self, input: Tensor, hx: Optional[Tensor] = None) -> Tensor:
    batched = input.dim() == 2
    if not batched:
        input = input.unsqueeze(0)
    if hx is None:
        state = torch.zeros([input.size(0), self.hidden_size], dtype=input.dtype, device=input.device)
    else:
        state = hx if batched else hx.unsqueeze(0)
    if self.nonlinearity == "tanh":
        h = torch.ops.aten.rnn_tanh_cell(
            input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
    else:
        h = torch.ops.aten.rnn_relu_cell(
            input, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        )
    return h if batched else h.squeeze(0)
