"""Recurrent layers with integer weights; operands get their scale at each call, states are numbers."""

import warnings

import rushlight
from rushlight import nn
from rushlight.ao.nn.quantized.modules.utils import _quantize_weight
from rushlight.nn.utils.rnn import PackedSequence

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "PackedParameter",
    "RNNCell",
    "RNNCellBase",
    "pack_weight_bias",
]


def pack_weight_bias(qweight, bias, dtype):
    """A weight and a bias as the kernel wants them."""
    if dtype == rushlight.qint8:
        return rushlight.ops.quantized.linear_prepack(qweight, bias)
    return rushlight.ops.quantized.linear_prepack_fp16(qweight, bias)


class PackedParameter(nn.Module):
    """Packed weights of one direction of a layer."""

    def __init__(self, param):
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)


def _observed(mod, allowed):
    """The weight observer of a plain layer's configuration."""
    if mod.qconfig is not None and mod.qconfig.weight is not None:
        maker = mod.qconfig.weight
    else:
        from rushlight.ao.quantization.qconfig import default_dynamic_qconfig

        maker = default_dynamic_qconfig.weight
    dtype = maker().dtype
    if dtype not in allowed:
        raise RuntimeError(f"Unsupported dtype: {dtype}")
    return maker, dtype


def _rounded(maker, dtype, weight):
    """A weight as integers; halves are made by the packing."""
    if dtype != rushlight.qint8:
        return weight.float()
    observer = maker()
    observer(weight)
    return _quantize_weight(weight.float(), observer)


class RNNBase(nn.Module):
    """What LSTM and GRU share."""

    _version = 2
    _FLOAT_MODULE = nn.RNNBase
    _GATES = {"LSTM": 4, "GRU": 3}

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
        dtype=rushlight.qint8,
    ):
        super().__init__()
        if not bias:
            raise AssertionError("recurrent layers with integer weights need a bias")
        if not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
                f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout = bias, batch_first, float(dropout)
        self.bidirectional, self.dtype, self.version = bidirectional, dtype, 2
        self.training = False
        if mode not in self._GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        rows = self._GATES[mode] * hidden_size
        packed = []
        for layer in range(num_layers):
            for _ in range(2 if bidirectional else 1):
                width = input_size if layer == 0 else hidden_size * (2 if bidirectional else 1)
                weights = [
                    rushlight.randn(rows, columns).to(rushlight.float) for columns in (width, hidden_size)
                ]
                biases = [rushlight.randn(rows).to(rushlight.float) for _ in range(2)]
                if dtype == rushlight.qint8:
                    weights = [
                        rushlight.quantize_per_tensor(w, scale=0.1, zero_point=0, dtype=rushlight.qint8)
                        for w in weights
                    ]
                packed.append(PackedParameter(self._pack(weights, biases)))
        self._all_weight_values = nn.ModuleList(packed)

    def _pack(self, weights, biases):
        """One direction of a layer as the kernel wants it."""
        parts = [pack_weight_bias(w, b, self.dtype) for w, b in zip(weights, biases)]
        if self.dtype == rushlight.qint8:
            return rushlight.ops.quantized.make_quantized_cell_params_dynamic(*parts, *biases, True)
        return rushlight.ops.quantized.make_quantized_cell_params_fp16(*parts)

    def _get_name(self):
        return f"DynamicQuantized{self.mode}"

    def extra_repr(self):
        shown = f"{self.input_size}, {self.hidden_size}"
        for name, default in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0)):
            if getattr(self, name) != default:
                shown += f", {name}={getattr(self, name)}"
        return shown + (f", bidirectional={self.bidirectional}" if self.bidirectional else "")

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"

    def check_input(self, input, batch_sizes):
        expected = 2 if batch_sizes is not None else 3
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got "
                f"{input.size(-1)}"
            )

    def get_expected_hidden_size(self, input, batch_sizes):
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return (self.num_layers * (2 if self.bidirectional else 1), batch, self.hidden_size)

    def check_hidden_size(
        self, hx, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ):
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def set_weight_bias(self, weight_bias_dict):
        """New weights, by the names of the plain layer's."""
        packed = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                names = [
                    f"{kind}_{part}_l{layer}{suffix}" for kind in ("weight", "bias") for part in ("ih", "hh")
                ]
                found = [weight_bias_dict[name] for name in names]
                packed.append(PackedParameter(self._pack(found[:2], found[2:])))
        self._all_weight_values = nn.ModuleList(packed)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        if type(mod) not in (nn.LSTM, nn.GRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        maker, dtype = _observed(mod, (rushlight.qint8, rushlight.float16))
        made = (LSTM if mod.mode == "LSTM" else GRU)(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            dtype=dtype,
        )
        if not mod.bias:
            raise AssertionError("recurrent layers with integer weights need a bias")
        made.set_weight_bias(
            {
                name: _rounded(maker, dtype, value) if name.startswith("weight") else value
                for name, value in mod.named_parameters()
            }
        )
        return made

    @classmethod
    def from_reference(cls, ref_mod):
        """From a layer of a reference model, which rounds its weights at each call."""
        made = cls(
            ref_mod.input_size,
            ref_mod.hidden_size,
            ref_mod.num_layers,
            ref_mod.bias,
            ref_mod.batch_first,
            ref_mod.dropout,
            ref_mod.bidirectional,
            dtype=ref_mod.weight_ih_l0_dtype,
        )
        found = ref_mod.get_quantized_weight_bias_dict()
        made.set_weight_bias({**found["weight"], **found["bias"]})
        return made

    def _weight_bias(self):
        """Weights and biases by the names of the plain layer's."""
        found = {"weight": {}, "bias": {}}
        count = 0
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                # The packed state of a direction is a tuple whose last entry holds both products' weights.
                state = self._all_weight_values[count].param.__getstate__()[0]
                products = state[4]
                for part, product in zip(("ih", "hh"), products):
                    weight, bias = product.__getstate__()[0]
                    found["weight"][f"weight_{part}_l{layer}{suffix}"] = weight
                    found["bias"][f"bias_{part}_l{layer}{suffix}"] = bias
                count += 1
        return found

    def get_weight(self):
        return self._weight_bias()["weight"]

    def get_bias(self):
        return self._weight_bias()["bias"]

    def _unpack_input(self, input):
        if isinstance(input, PackedSequence):
            return input.data, input.batch_sizes, input.sorted_indices, input.unsorted_indices
        return input, None, None, None

    def _zeros(self, input, batch_sizes):
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return rushlight.zeros(*shape, dtype=input.dtype, device=input.device)

    @property
    def _params(self):
        return [value.param for value in self._all_weight_values]


class LSTM(RNNBase):
    """LSTM with integer weights."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input, hx: tuple[rushlight.Tensor, rushlight.Tensor] | None = None):
        data, sizes, order, back = self._unpack_input(input)
        if hx is None:
            zeros = self._zeros(data, sizes)
            hx = (zeros, zeros)
        elif order is not None:
            hx = (hx[0].index_select(1, order), hx[1].index_select(1, order))
        self.check_input(data, sizes)
        expected = self.get_expected_hidden_size(data, sizes)
        self.check_hidden_size(hx[0], expected, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hx[1], expected, "Expected hidden[1] size {}, got {}")
        common = (
            self._params,
            self.bias,
            self.num_layers,
            float(self.dropout),
            self.training,
            self.bidirectional,
        )
        if sizes is None:
            result, h, c = rushlight.quantized_lstm(
                data, hx, *common, self.batch_first, dtype=self.dtype, use_dynamic=True
            )
            return result, (h, c)
        result, h, c = rushlight.quantized_lstm(data, sizes, hx, *common, dtype=self.dtype, use_dynamic=True)
        if back is not None:
            h, c = h.index_select(1, back), c.index_select(1, back)
        return PackedSequence(result, sizes, order, back), (h, c)


class GRU(RNNBase):
    """GRU with integer weights."""

    _FLOAT_MODULE = nn.GRU

    def __init__(self, *args, **kwargs):
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        data, sizes, order, back = self._unpack_input(input)
        if hx is None:
            hx = self._zeros(data, sizes)
        elif order is not None:
            hx = hx.index_select(1, order)
        self.check_input(data, sizes)
        self.check_hidden_size(hx, self.get_expected_hidden_size(data, sizes))
        common = (self._params, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if sizes is None:
            return rushlight.quantized_gru(data, hx, *common, self.batch_first)
        result, state = rushlight.quantized_gru(data, sizes, hx, *common)
        state = state if back is None else state.index_select(1, back)
        return PackedSequence(result, sizes, order, back), state


class RNNCellBase(nn.Module):
    """What single steps share."""

    def __init__(self, input_size, hidden_size, bias=True, num_chunks=4, dtype=rushlight.qint8):
        super().__init__()
        if not bias:
            raise AssertionError("recurrent layers with integer weights need a bias")
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        self.bias_ih = rushlight.randn(rows).to(dtype=rushlight.float)
        self.bias_hh = rushlight.randn(rows).to(dtype=rushlight.float)
        for part, columns, bias_part in (("ih", input_size, self.bias_ih), ("hh", hidden_size, self.bias_hh)):
            weight = rushlight.randn(rows, columns).to(rushlight.float)
            if dtype == rushlight.qint8:
                weight = rushlight.quantize_per_tensor(weight, scale=1, zero_point=0, dtype=rushlight.qint8)
            setattr(self, f"_packed_weight_{part}", pack_weight_bias(weight, bias_part, dtype))

    def _get_name(self):
        return "DynamicQuantizedRNNBase"

    def extra_repr(self):
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown

    def check_forward_input(self, input):
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}"
            )

    def check_forward_hidden(self, input, hx, hidden_label: str = ""):
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected "
                f"{self.hidden_size}"
            )

    def _zeros(self, input):
        return rushlight.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        kinds = {nn.LSTMCell: LSTMCell, nn.GRUCell: GRUCell, nn.RNNCell: RNNCell}
        if type(mod) not in kinds:
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell "
                "and nn.RNNCell"
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if not mod.bias:
            raise AssertionError("recurrent layers with integer weights need a bias")
        maker, dtype = _observed(mod, (rushlight.qint8, rushlight.float16))
        arguments = {"bias": mod.bias, "dtype": dtype}
        if type(mod) is nn.RNNCell:
            arguments["nonlinearity"] = mod.nonlinearity
        made = kinds[type(mod)](mod.input_size, mod.hidden_size, **arguments)
        for part in ("ih", "hh"):
            weight = _rounded(maker, dtype, getattr(mod, f"weight_{part}"))
            bias = getattr(mod, f"bias_{part}")
            setattr(made, f"bias_{part}", bias)
            setattr(made, f"_packed_weight_{part}", pack_weight_bias(weight, bias, dtype))
        return made

    @classmethod
    def from_reference(cls, ref_mod):
        if not hasattr(ref_mod, "weight_ih_dtype"):
            raise AssertionError("a reference layer names the dtype of its weights")
        arguments = {"bias": ref_mod.bias, "dtype": ref_mod.weight_ih_dtype}
        if hasattr(ref_mod, "nonlinearity"):
            arguments["nonlinearity"] = ref_mod.nonlinearity
        made = cls(ref_mod.input_size, ref_mod.hidden_size, **arguments)
        made.set_weight_bias(
            {
                "weight_ih": ref_mod.get_quantized_weight_ih(),
                "weight_hh": ref_mod.get_quantized_weight_hh(),
                "bias_ih": ref_mod.bias_ih,
                "bias_hh": ref_mod.bias_hh,
            }
        )
        return made

    def _weight_bias(self):
        unpack = rushlight.ops.quantized
        name = "linear_unpack" if self.weight_dtype == rushlight.qint8 else "linear_unpack_fp16"
        found = {"weight": {}, "bias": {}}
        for part in ("ih", "hh"):
            weight, bias = getattr(unpack, name)(getattr(self, f"_packed_weight_{part}"))
            found["weight"][f"weight_{part}"] = weight
            found["bias"][f"bias_{part}"] = bias
        return found

    def get_weight(self):
        return self._weight_bias()["weight"]

    def get_bias(self):
        return self._weight_bias()["bias"]

    def set_weight_bias(self, weight_bias_dict):
        for part in ("ih", "hh"):
            packed = pack_weight_bias(
                weight_bias_dict[f"weight_{part}"], weight_bias_dict[f"bias_{part}"], self.weight_dtype
            )
            setattr(self, f"_packed_weight_{part}", packed)
            setattr(self, f"bias_{part}", weight_bias_dict[f"bias_{part}"])

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = self._packed_weight_ih
        destination[prefix + "_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing, unexpected, errors):
        self._packed_weight_ih = state_dict.pop(prefix + "_packed_weight_ih")
        self._packed_weight_hh = state_dict.pop(prefix + "_packed_weight_hh")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, False, missing, unexpected, errors)


class RNNCell(RNNCellBase):
    """One step of a plain recurrent layer."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", dtype=rushlight.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def _get_name(self):
        return "DynamicQuantizedRNNCell"

    def forward(self, input, hx=None):
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx, "")
        if self.nonlinearity == "tanh":
            return rushlight.ops.quantized.quantized_rnn_tanh_cell_dynamic(
                input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
            )
        if self.nonlinearity == "relu":
            return rushlight.ops.quantized.quantized_rnn_relu_cell_dynamic(
                input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
            )
        raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")


class LSTMCell(RNNCellBase):
    """One step of an LSTM."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, num_chunks=4, **kwargs)

    def _get_name(self):
        return "DynamicQuantizedLSTMCell"

    def forward(self, input, hx=None):
        self.check_forward_input(input)
        if hx is None:
            zeros = self._zeros(input)
            hx = (zeros, zeros)
        self.check_forward_hidden(input, hx[0], "[0]")
        self.check_forward_hidden(input, hx[1], "[1]")
        return rushlight.ops.quantized.quantized_lstm_cell_dynamic(
            input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        )


class GRUCell(RNNCellBase):
    """One step of a GRU."""

    def __init__(self, input_size, hidden_size, bias=True, dtype=rushlight.qint8):
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def _get_name(self):
        return "DynamicQuantizedGRUCell"

    def forward(self, input, hx=None):
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx, "")
        return rushlight.ops.quantized.quantized_gru_cell_dynamic(
            input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh
        )
