"""Checks of arguments for functions written in Python, where PyTorch's parser or kernels refuse."""

_PLAIN = (type(None), bool, int, float, complex, str, list, tuple)


def need_tensors(name, **arguments):
    """Refuses numbers, None and lists as tensors, by TypeError; what acts as a tensor may pass."""
    for position, (argument, value) in enumerate(arguments.items(), 1):
        if isinstance(value, _PLAIN):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Tensor, "
                f"not {type(value).__name__}"
            )


def type_name(tensor):
    """The dtype's name in messages: Float, Long, ComplexDouble."""
    return tensor.type().rpartition(".")[2].removesuffix("Tensor")


def need_floating(name, input):
    """Refuses integers and complex numbers, for which a formula of differences would wrap or has no order."""
    if not input.is_floating_point():
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(input)}'")
