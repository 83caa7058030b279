"""Rows of torch.fft: odd, even and prime lengths, cut and padded, every norm, first and middle dimensions."""

from rows import COMPLEX, FLOATS, Row, Sample

NORMS = (None, "forward", "ortho", "backward")


def one_dimension(make):
    yield from (Sample((make(7),), {"norm": norm}) for norm in NORMS)
    yield Sample((make(2, 6, 3),), {"dim": 1})
    yield Sample((make(5, 4),), {"dim": 0})
    yield Sample((make(4, 5), 3), {"norm": "forward"})
    yield Sample((make(2, 4), 9), {"norm": "ortho"})


def two_dimensions(make):
    yield from (Sample((make(4, 5),), {"norm": norm}) for norm in NORMS)
    yield Sample((make(2, 3, 4),), {"s": (4, 3)})
    yield Sample((make(3, 2, 4),), {"s": (5, 2), "dim": (2, 0), "norm": "ortho"})


def many_dimensions(make):
    yield from (Sample((make(3, 4, 5),), {"norm": norm}) for norm in NORMS)
    yield Sample((make(3, 2, 4),), {"dim": (1, 2)})
    yield Sample((make(3, 2, 4),), {"s": (2, -1), "dim": (2, 0)})
    yield Sample((make(2, 3, 4),), {"s": (5,)})


def shifts(make):
    yield Sample((make(7),), {})
    yield Sample((make(4, 5),), {})
    yield Sample((make(4, 5, 2),), {"dim": (0, 2)})
    yield Sample((make(4, 5),), {"dim": 1})


FAMILIES = ((one_dimension, ""), (two_dimensions, "2"), (many_dimensions, "n"))
ROWS = [
    Row(f"fft.{kind}{suffix}", samples, dtypes=dtypes)
    for samples, suffix in FAMILIES
    for kinds, dtypes in (
        (("fft", "ifft", "irfft", "hfft"), FLOATS + COMPLEX),
        (("rfft", "ihfft"), (*FLOATS, "int64")),
    )
    for kind in kinds
] + [Row(f"fft.{kind}", shifts, dtypes=FLOATS + COMPLEX) for kind in ("fftshift", "ifftshift")]
