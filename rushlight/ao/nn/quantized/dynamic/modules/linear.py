"""The linear layer with integer weights; operands get their scale at each call, results are numbers."""

import rushlight
from rushlight import nn
from rushlight.ao.nn import intrinsic as nni
from rushlight.ao.nn import qat as nnqat
from rushlight.ao.nn.quantized.modules import linear as _static
from rushlight.ao.nn.quantized.modules.utils import _quantize_weight

__all__ = ["Linear"]


class Linear(_static.Linear):
    """Linear with weights of eight bits, or of halves."""

    # Version 4 keeps no scale of results: there is none.
    _version = 4

    def __init__(self, in_features, out_features, bias_=True, dtype=rushlight.qint8):
        super().__init__(in_features, out_features, bias_, dtype=dtype)
        self.version = 4

    def forward(self, x):
        packed = self._packed_params._packed_params
        if self._packed_params.dtype == rushlight.qint8:
            if self.version is None or self.version < 4:
                return rushlight.ops.quantized.linear_dynamic(x, packed)
            return rushlight.ops.quantized.linear_dynamic(x, packed, reduce_range=True)
        if self._packed_params.dtype == rushlight.float16:
            return rushlight.ops.quantized.linear_dynamic_fp16(x, packed)
        raise RuntimeError("Unsupported dtype on dynamic quantized linear!")

    def _get_name(self):
        return "DynamicQuantizedLinear"

    def extra_repr(self):
        shown = f"in_features={self.in_features}, out_features={self.out_features}, "
        shown += f"dtype={self._packed_params.dtype}"
        if self._packed_params.dtype == rushlight.qint8:
            shown += f", qscheme={self.weight().qscheme()}"
        return shown

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        self.version = local_metadata.get("version")
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """From a plain layer with a configuration, or one of training."""
        accepted = {
            nn.Linear,
            nn.modules.linear.NonDynamicallyQuantizableLinear,
            nni.LinearReLU,
            nnqat.dynamic.Linear,
        }
        if type(mod) not in accepted:
            raise AssertionError(
                "nn.quantized.dynamic.Linear.from_float only works for one of"
                + str(sorted(kind.__name__ for kind in accepted))
            )
        if not hasattr(mod, "qconfig"):
            raise AssertionError("Input float module must have qconfig defined")
        if type(mod) is nni.LinearReLU:
            mod = mod[0]
        if mod.qconfig is not None and mod.qconfig.weight is not None:
            observer = mod.qconfig.weight()
        else:
            from rushlight.ao.quantization.qconfig import default_dynamic_qconfig

            observer = default_dynamic_qconfig.weight()
        dtype = observer.dtype
        if dtype not in (rushlight.qint8, rushlight.float16):
            raise AssertionError(
                f"The only supported dtypes for dynamic quantized linear are qint8 and float16 got: {dtype}"
            )
        observer(mod.weight)
        if dtype == rushlight.qint8:
            weight = _quantize_weight(mod.weight.float(), observer)
        else:
            weight = mod.weight.float()
        made = cls(mod.in_features, mod.out_features, dtype=dtype)
        made.set_weight_bias(weight, mod.bias)
        return made

    @classmethod
    def from_reference(cls, ref_qlinear):
        """From a layer of a reference model."""
        made = cls(ref_qlinear.in_features, ref_qlinear.out_features, dtype=ref_qlinear.weight_dtype)
        made.set_weight_bias(ref_qlinear.get_quantized_weight(), ref_qlinear.bias)
        return made
