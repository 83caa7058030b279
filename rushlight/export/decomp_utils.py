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

    has_materialized = True  # no operator is looked up later

    def pop(self, op, *default):
        """Take an operator out of the table."""
        if op not in self and not default:
            raise KeyError(str(op))
        return super().pop(op, *default)

    def materialize(self):
        """The entries as a plain dict."""
        return dict(self)
