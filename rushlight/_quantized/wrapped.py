"""`torch.ops._quantized` and the products by float16 weights of `torch.ops.onednn`: numbers in and out,
packed weights in plain tensors."""

import rushlight as torch

_quantized = torch.library.Library("_quantized", "FRAGMENT")
_onednn = torch.library.Library("onednn", "FRAGMENT")
_BIAS, _SETTING = torch.float32.itemsize, torch.float64.itemsize


def _define(library, schema, function):
    library.define(schema)
    library.impl(schema.partition("(")[0], function, "CompositeImplicitAutograd")


# --- weights of float16: packed, they are that tensor


def _halved(W, x_shape=None):
    return W.to(torch.float16)


def _linear_of_halves(X, W, B):
    return torch.nn.functional.linear(X, W.float(), B)


_define(_quantized, "wrapped_fbgemm_pack_gemm_matrix_fp16(Tensor W) -> Tensor", _halved)
_define(
    _quantized,
    "wrapped_fbgemm_linear_fp16_weight(Tensor X, Tensor W, Tensor B, int out_channel) -> Tensor",
    lambda X, W, B, out_channel: _linear_of_halves(X, W, B),
)
_define(_onednn, "linear_prepack_fp16(Tensor W, int[]? x_shape=None) -> Tensor", _halved)
_define(_onednn, "linear_dynamic_fp16(Tensor X, Tensor W, Tensor? B) -> Tensor", _linear_of_halves)
_define(
    _onednn,
    "linear_relu_dynamic_fp16(Tensor X, Tensor W, Tensor? B) -> Tensor",
    lambda X, W, B: _linear_of_halves(X, W, B).relu(),
)


# --- weights of integers: packed, they are bytes, with the bias, the scale and the zero point behind them


def _packed(W, W_scale, W_zero_point, B):
    integers = torch.quantize_per_tensor(W, W_scale, W_zero_point, torch.qint8).int_repr()
    settings = torch.stack([W_scale.double(), W_zero_point.double()])
    parts = (integers.contiguous(), B.float().contiguous(), settings)
    return torch.cat([part.view(torch.uint8).reshape(-1) for part in parts])


def _linear_of_packed(X, X_scale, X_zero_point, W_prepack, output_scale, output_zero_point, out_channel):
    sizes = (out_channel * X.shape[-1], out_channel * _BIAS, 2 * _SETTING)
    if W_prepack.numel() != sum(sizes):
        raise RuntimeError(
            f"_wrapped_quantized_linear_prepacked: {out_channel} results of {X.shape[-1]} numbers each need "
            f"a packed weight of {sum(sizes)} bytes, got {W_prepack.numel()}"
        )
    integers, bias, settings = W_prepack.split(sizes)
    scale, zero_point = settings.clone().view(torch.float64).tolist()
    integers = integers.view(torch.int8).reshape(out_channel, -1)
    weight = torch._make_per_tensor_quantized_tensor(integers, scale, int(zero_point))
    packed = torch.ops.quantized.linear_prepack(weight, bias.clone().view(torch.float32))
    x = torch.quantize_per_tensor(X, X_scale, X_zero_point, torch.quint8)
    return torch.ops.quantized.linear(x, packed, output_scale, output_zero_point).dequantize()


def _linear(
    X, X_scale, X_zero_point, W, W_scale, W_zero_point, B, output_scale, output_zero_point, out_channel
):
    packed = _packed(W, W_scale, W_zero_point, B)
    return _linear_of_packed(X, X_scale, X_zero_point, packed, output_scale, output_zero_point, out_channel)


_define(
    _quantized,
    "_wrapped_linear_prepack(Tensor W, Tensor W_scale, Tensor W_zero_point, Tensor B) -> Tensor",
    _packed,
)
_define(
    _quantized,
    "_wrapped_quantized_linear_prepacked(Tensor X, Tensor X_scale, Tensor X_zero_point, Tensor W_prepack, "
    "Tensor output_scale, Tensor output_zero_point, int out_channel) -> Tensor",
    _linear_of_packed,
)
_define(
    _quantized,
    "wrapped_quantized_linear(Tensor X, Tensor X_scale, Tensor X_zero_point, Tensor W, "
    "Tensor W_scale, Tensor W_zero_point, Tensor B, Tensor output_scale, Tensor output_zero_point, "
    "int out_channel) -> Tensor",
    _linear,
)
