"""Anomaly mode: a backward pass that fails, or makes NaN, shows the forward call it belongs to."""

from rushlight import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Turns anomaly mode on or off: at once when called, for a while when used as a context manager.

    Args:
        mode (bool): whether it is on.
        check_nan (bool): whether gradients are checked for NaN.

    Example:
        >>> with torch.autograd.set_detect_anomaly(True):
        ...     torch.is_anomaly_enabled()
        True
    """

    def __init__(self, mode, check_nan=True):
        if not isinstance(mode, bool):
            raise TypeError(
                "set_anomaly_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *exc):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly:
    """Context in which forward calls keep their traceback, and the backward pass checks each gradient for
    NaN. Slow.

    Args:
        check_nan (bool): whether gradients are checked.

    Raises: RuntimeError, in the backward pass, where a gradient is NaN.

    Example:
        >>> x = torch.tensor(0.0, requires_grad=True)
        >>> try:
        ...     with torch.autograd.detect_anomaly():
        ...         (x.sqrt() * 0).backward()
        ... except RuntimeError as error:
        ...     print(str(error).splitlines()[0])
        Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan=True):
        import warnings

        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *exc):
        _C._set_anomaly_enabled(self.prev, self.prev_check_nan)
