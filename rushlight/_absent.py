"""What device modules say when the device is not there."""


def refuse(device):
    """A function that raises PyTorch's error for a device this build does not have."""

    def raise_(*args, **kwargs):
        raise AssertionError(f"Torch not compiled with {device} enabled")

    return raise_


class NoStream:
    """Accepted wherever a stream is optional; does nothing."""

    def __init__(self, *args, **kwargs):
        self.device = kwargs.get("device")

    def synchronize(self):
        pass

    wait_stream = wait_event = record_event = lambda self, *args: None

    def query(self):
        return True

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None
