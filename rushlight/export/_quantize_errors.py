"""What cannot be quantised, and why."""


class QuantizeError(ValueError):
    """The file or the samples do not fit the method; the text says what to do."""
