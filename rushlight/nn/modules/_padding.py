"""When `TransformerEncoder` answers zeros at padded positions.

In evaluation PyTorch's encoder takes padded positions out of the batch, and puts zeros there in the end.
Here all positions are computed; those that it would have taken out become zeros.
"""

import rushlight as torch


def obstacle_of_layer(layer):
    """Why an encoder of layers like this never leaves padding out; empty if it does."""
    from .transformer import TransformerEncoderLayer

    if not isinstance(layer, TransformerEncoderLayer):
        return "encoder_layer was not TransformerEncoderLayer"
    attention = layer.self_attn
    if layer.norm_first:
        return "encoder_layer.norm_first was True"
    if not attention.batch_first:
        reason = "(use batch_first for better inference performance)"
        return f"encoder_layer.self_attn.batch_first was not True{reason}"
    if not attention._qkv_same_embed_dim:
        return "encoder_layer.self_attn._qkv_same_embed_dim was not True"
    if attention.in_proj_bias is None:
        return "encoder_layer.self_attn was passed bias=False"
    if not layer.activation_relu_or_gelu:
        return "encoder_layer.activation_relu_or_gelu was not True"
    if layer.norm1.eps != layer.norm2.eps:
        return "encoder_layer.norm1.eps was not equal to encoder_layer.norm2.eps"
    if attention.num_heads % 2 == 1:
        return "encoder_layer.self_attn.num_heads is odd"
    return ""


def leaves_out_padding(encoder, src, mask, padding):
    """Whether this call answers zeros where `padding`, 0 or -inf, says that `src` is padded."""
    if padding is None or mask is not None or not getattr(encoder, "use_nested_tensor", False):
        return False
    if encoder.layers[0].training or torch.is_autocast_enabled():
        return False
    if not torch.backends.mha.get_fastpath_enabled():
        return False
    if src.dim() != 3 or src.is_nested or src.is_meta:
        return False
    operands = (src, *encoder.layers[0].parameters())
    if torch.overrides.has_torch_function(operands):
        return False
    if torch.is_grad_enabled() and any(t.requires_grad for t in operands):
        return False
    if not getattr(encoder, "mask_check", True):
        return True
    if torch.compiler.is_compiling() or torch.compiler.is_exporting():
        return False  # the question about the mask's values cannot be captured
    return torch._nested_tensor_from_mask_left_aligned(src, padding.logical_not())
