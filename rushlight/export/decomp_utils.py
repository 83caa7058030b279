"""`CustomDecompTable`: which operators `run_decompositions` takes apart, and how."""

__all__ = ["CustomDecompTable"]


class CustomDecompTable(dict):
    """A dict from operator to function, which starts with all that is known.

    Programs take entries out to keep operators whole, and put in their own.
    """

    def __init__(self, entries=None):
        from rushlight import _decomp

        super().__init__(_decomp.default_table() if entries is None else entries)

    def copy(self):
        return CustomDecompTable(dict(self))

    def materialize(self):
        """The entries as a plain dict."""
        return dict(self)
