"""Whether encoders leave padded positions out in evaluation: `nn.TransformerEncoder` asks."""

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """Whether encoders may answer zeros where a batch is padded.

    Example:
        >>> torch.backends.mha.get_fastpath_enabled()
        True
    """
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Set whether encoders may answer zeros where a batch is padded.

    Example:
        >>> torch.backends.mha.set_fastpath_enabled(False)
        >>> torch.backends.mha.get_fastpath_enabled()
        False
        >>> torch.backends.mha.set_fastpath_enabled(True)
    """
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
