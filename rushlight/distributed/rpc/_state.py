"""What the parts of remote calls share: the agent of this process, and what a thread is doing."""

import threading

current = None  # the Agent between init_rpc and shutdown
_local = threading.local()


class Later:
    """A future as a function's result: the caller gets what it brings."""

    def __init__(self, future):
        self.future = future


def agent():
    if current is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return current


class sending:
    """While a message is packed, references may be pickled."""

    def __enter__(self):
        _local.sending = getattr(_local, "sending", 0) + 1

    def __exit__(self, *exc):
        _local.sending -= 1


def is_sending():
    return getattr(_local, "sending", 0) > 0
