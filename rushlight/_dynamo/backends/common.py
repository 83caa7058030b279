"""What helps to write a back end."""

import functools

__all__ = ["aot_autograd", "fake_tensor_unsupported"]


def aot_autograd(**options):
    """A back end whose compilers get the forward and the backward pass as graphs of operators.

    ``options`` are those of `torch._functorch.aot_autograd.aot_module_simplified`: ``fw_compiler``,
    ``bw_compiler``, ``partition_fn``, ``decompositions``, ``inference_compiler``."""

    def backend(module, example_inputs, **others):
        from rushlight._functorch.aot_autograd import aot_module_simplified

        chosen = dict(options)
        if callable(chosen.get("decompositions")):
            chosen["decompositions"] = chosen["decompositions"]()
        return aot_module_simplified(module, example_inputs, **chosen)

    return backend


def fake_tensor_unsupported(compiler_fn):
    """Decorates a back end that reads its example inputs: it gets real tensors for fake ones."""

    @functools.wraps(compiler_fn)
    def wrapped(module, example_inputs, **options):
        return compiler_fn(module, [_real(value) for value in example_inputs], **options)

    return wrapped


def _real(value):
    import rushlight as torch
    from rushlight._subclasses.fake_tensor import FakeTensor

    if not isinstance(value, FakeTensor):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
    return made.zero_()
