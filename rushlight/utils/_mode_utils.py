"""Names under which test helpers switch dispatch modes off."""

import contextlib


@contextlib.contextmanager
def no_dispatch():
    """Run with ``__torch_dispatch__`` off. Rushlight dispatches to no Python class, so nothing changes."""
    yield
