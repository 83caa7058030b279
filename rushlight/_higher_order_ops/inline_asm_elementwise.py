"""Instructions of a CUDA device for each element: this build compiles none."""

__all__ = ["inline_asm_elementwise"]


def inline_asm_elementwise(*inputs, asm_str, constraints, dtype, is_pure=True, pack=1):
    """Refused: on a CPU as in PyTorch, and elsewhere because nothing here assembles such instructions."""
    if not inputs:
        raise ValueError("inline_asm_elementwise requires at least one input tensor")
    if any(not tensor.is_cuda for tensor in inputs):
        raise RuntimeError("inline_asm_elementwise only supports CUDA tensors")
    raise NotImplementedError(
        "inline_asm_elementwise: this build assembles no instructions; write it with operators"
    )
