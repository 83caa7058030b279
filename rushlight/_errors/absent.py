"""What device modules say when the device is not there."""


def refuse(device, call=None):
    """A function that raises PyTorch's error for a device this build does not have; some name a call."""

    def raise_(*args, **kwargs):
        if call is not None:
            raise RuntimeError(f"Cannot execute {call}() without {device} backend.")
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


class NoEvent:
    """What has been recorded is done."""

    def record(self, stream=None):
        pass

    def synchronize(self):
        pass

    wait = record

    def query(self):
        return True


# --- answers that are the same for every device


def is_available():
    return False


def device_count():
    return 0


def is_initialized():
    return False


def manual_seed(seed):
    """Nothing to seed."""


manual_seed_all = manual_seed


def seed():
    """Nothing to seed."""


def empty_cache():
    """Nothing is cached."""


def _is_in_bad_fork():
    return False
