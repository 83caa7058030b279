"""An LSTM whose products, sums and gates are modules, each of which can be watched and become one of
integers."""

import numbers
import warnings

import rushlight
from rushlight import nn
from rushlight.ao.nn._functional_modules import FloatFunctional

__all__ = ["LSTM", "LSTMCell"]

_GATES = ("input", "forget", "cell", "output")


class LSTMCell(nn.Module):
    """One step. ``split_gates``: a product for each gate, so that each gets its own scale."""

    _FLOAT_MODULE = nn.LSTMCell
    __constants__ = ["split_gates"]

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None, *, split_gates=False):
        made = {"device": device, "dtype": dtype}
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.split_gates = (
            input_dim,
            hidden_dim,
            bias,
            split_gates,
        )
        if split_gates:
            self.igates = nn.ModuleDict(
                {g: nn.Linear(input_dim, hidden_dim, bias=bias, **made) for g in _GATES}
            )
            self.hgates = nn.ModuleDict(
                {g: nn.Linear(hidden_dim, hidden_dim, bias=bias, **made) for g in _GATES}
            )
            self.gates = nn.ModuleDict({g: FloatFunctional() for g in _GATES})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias=bias, **made)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias=bias, **made)
            self.gates = FloatFunctional()
        self.input_gate, self.forget_gate = nn.Sigmoid(), nn.Sigmoid()
        self.cell_gate, self.output_gate = nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate = FloatFunctional(), FloatFunctional()
        self.fgate_cx_igate_cgate, self.ogate_cy = FloatFunctional(), FloatFunctional()
        self.initial_hidden_state_qparams = (1.0, 0)
        self.initial_cell_state_qparams = (1.0, 0)
        self.hidden_state_dtype = rushlight.quint8
        self.cell_state_dtype = rushlight.quint8

    def forward(self, x, hidden=None):
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            sums = [self.gates[g].add(self.igates[g](x), self.hgates[g](hx)) for g in _GATES]
        else:
            sums = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        take = self.input_gate(sums[0])
        keep = self.forget_gate(sums[1])
        new = self.cell_gate(sums[2])
        show = self.output_gate(sums[3])
        cy = self.fgate_cx_igate_cgate.add(self.fgate_cx.mul(keep, cx), self.igate_cgate.mul(take, new))
        # The tangent of the state keeps its scale, so no module stands here.
        hy = self.ogate_cy.mul(show, rushlight.tanh(cy))
        return hy, cy

    def initialize_hidden(self, batch_size, is_quantized=False):
        h, c = (rushlight.zeros((batch_size, self.hidden_size)) for _ in range(2))
        if is_quantized:
            (h_scale, h_zero), (c_scale, c_zero) = (
                self.initial_hidden_state_qparams,
                self.initial_cell_state_qparams,
            )
            h = rushlight.quantize_per_tensor(
                h, scale=h_scale, zero_point=h_zero, dtype=self.hidden_state_dtype
            )
            c = rushlight.quantize_per_tensor(
                c, scale=c_scale, zero_point=c_zero, dtype=self.cell_state_dtype
            )
        return h, c

    def _get_name(self):
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi, wh, bi=None, bh=None, split_gates=False):
        """From weights of the operand and of the state, and their biases."""
        if (bi is None) != (bh is None):
            raise AssertionError("biases of the operand and of the state come together")
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for gates, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layers = list(gates.values()) if split_gates else [gates]
            weights = weight.chunk(4, dim=0) if split_gates else [weight]
            biases = (
                (bias.chunk(4, dim=0) if split_gates else [bias])
                if bias is not None
                else [None] * len(layers)
            )
            for layer, w, b in zip(layers, weights, biases):
                layer.weight = nn.Parameter(w)
                if b is not None:
                    layer.bias = nn.Parameter(b)
        return made

    @classmethod
    def from_float(cls, other, use_precomputed_fake_quant=False, split_gates=False):
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(
            other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates=split_gates
        )
        made.qconfig = made.igates.qconfig = made.hgates.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """All steps of one direction."""

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None, *, split_gates=False):
        super().__init__()
        self.cell = LSTMCell(
            input_dim, hidden_dim, bias=bias, device=device, dtype=dtype, split_gates=split_gates
        )

    def forward(self, x, hidden=None):
        results = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            results.append(hidden[0])
        return rushlight.stack(results, 0), hidden

    @classmethod
    def from_params(cls, *args, **kwargs):
        cell = LSTMCell.from_params(*args, **kwargs)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(nn.Module):
    """One layer: one direction, or both."""

    def __init__(
        self,
        input_dim,
        hidden_dim,
        bias=True,
        batch_first=False,
        bidirectional=False,
        device=None,
        dtype=None,
        *,
        split_gates=False,
    ):
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        made = {"bias": bias, "device": device, "dtype": dtype, "split_gates": split_gates}
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, **made)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, **made)

    def forward(self, x, hidden=None):
        if self.batch_first:
            x = x.transpose(0, 1)
        hx, cx = (None, None) if hidden is None else hidden
        forward_state = backward_state = None
        if self.bidirectional:
            forward_state = None if hx is None or cx is None else (hx[0], cx[0])
            backward_state = None if hx is None or cx is None else (hx[1], cx[1])
        elif hx is not None and cx is not None:
            forward_state = (hx, cx)
        result, forward_state = self.layer_fw(x, forward_state)
        state = forward_state
        if self.bidirectional:
            backwards, backward_state = self.layer_bw(x.flip(0), backward_state)
            result = rushlight.cat([result, backwards.flip(0)], result.dim() - 1)
            state = tuple(rushlight.stack(pair, 0) for pair in zip(forward_state, backward_state))
        if self.batch_first:
            result.transpose_(0, 1)
        return result, state

    @classmethod
    def from_float(cls, other, layer_idx=0, qconfig=None, **kwargs):
        """A layer of a plain LSTM."""
        if not hasattr(other, "qconfig") and qconfig is None:
            raise AssertionError("qconfig is needed: the plain layer has none, and none was given")
        bidirectional = kwargs.get("bidirectional", other.bidirectional)
        split_gates = kwargs.get("split_gates", False)
        made = cls(
            kwargs.get("input_dim", other.input_size),
            kwargs.get("hidden_dim", other.hidden_size),
            kwargs.get("bias", other.bias),
            kwargs.get("batch_first", other.batch_first),
            bidirectional,
            split_gates=split_gates,
        )
        made.qconfig = getattr(other, "qconfig", qconfig)

        def direction(suffix):
            names = [
                f"{kind}_{part}_l{layer_idx}{suffix}" for kind in ("weight", "bias") for part in ("ih", "hh")
            ]
            values = [getattr(other, name, None) for name in names]
            return _LSTMSingleLayer.from_params(*values, split_gates=split_gates)

        made.layer_fw = direction("")
        if bidirectional:
            made.layer_bw = direction("_reverse")
        return made


class LSTM(nn.Module):
    """The layers. It computes what ``torch.nn.LSTM`` does."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        device=None,
        dtype=None,
        *,
        split_gates=False,
    ):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.training = bidirectional, False
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0:
            warnings.warn(
                "dropout option for quantizable LSTM is ignored. If you are training, please, use "
                "nn.LSTM version "
                "followed by `prepare` step.",
                stacklevel=2,
            )
            if num_layers == 1:
                warnings.warn(
                    "dropout option adds dropout after all but last recurrent layer, so non-zero "
                    "dropout expects "
                    f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                    stacklevel=2,
                )
        layers = [
            _LSTMLayer(
                input_size if index == 0 else hidden_size * (2 if bidirectional else 1),
                hidden_size,
                bias,
                batch_first=False,
                bidirectional=bidirectional,
                device=device,
                dtype=dtype,
                split_gates=split_gates,
            )
            for index in range(num_layers)
        ]
        self.layers = nn.ModuleList(layers)

    def forward(self, x, hidden=None):
        if self.batch_first:
            x = x.transpose(0, 1)
        directions = 2 if self.bidirectional else 1
        if hidden is None:
            hx = cx = None
        else:
            hx, cx = (self._by_layer(state, directions) for state in hidden)
        last = []
        for index, layer in enumerate(self.layers):
            state = None if hx is None else (hx[index], cx[index])
            x, state = layer(x, state)
            last.append(state)
        hx, cx = (
            rushlight.stack([state[part] for state in last]).reshape(-1, *last[0][part].shape[-2:])
            for part in (0, 1)
        )
        if self.batch_first:
            x = x.transpose(0, 1)
        return x, (hx, cx)

    def _by_layer(self, state, directions):
        if isinstance(state, rushlight.Tensor):
            state = state.reshape(self.num_layers, directions, state.shape[-2], state.shape[-1])
            return [state[index].squeeze(0) for index in range(self.num_layers)]
        return state

    def _get_name(self):
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other, qconfig=None, split_gates=False):
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"{cls.__name__}.from_float only works for {cls._FLOAT_MODULE.__name__}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("qconfig is needed: the plain layer has none, and none was given")
        made = cls(
            other.input_size,
            other.hidden_size,
            other.num_layers,
            other.bias,
            other.batch_first,
            other.dropout,
            other.bidirectional,
            split_gates=split_gates,
        )
        made.qconfig = getattr(other, "qconfig", qconfig)
        for index in range(other.num_layers):
            made.layers[index] = _LSTMLayer.from_float(
                other, index, qconfig, batch_first=False, split_gates=split_gates
            )
        from rushlight.ao import quantization

        if other.training:
            made.train()
            return quantization.prepare_qat(made, inplace=True)
        made.eval()
        return quantization.prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other):
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. "
            "Please, see the examples on quantizable LSTMs."
        )
