"""PyTorch's numbers of dtypes, as files of scripts and traces of profiles have them."""

__all__ = ["NUMBERS", "number_of"]

NUMBERS = {
    0: "uint8",
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int64",
    5: "float16",
    6: "float32",
    7: "float64",
    8: "complex32",
    9: "complex64",
    10: "complex128",
    11: "bool",
    12: "qint8",
    13: "quint8",
    14: "qint32",
    15: "bfloat16",
    23: "float8_e5m2",
    24: "float8_e4m3fn",
    27: "uint16",
    28: "uint32",
    29: "uint64",
}


def number_of(dtype):
    """The number of a dtype; its name if it has none."""
    name = str(dtype).removeprefix("torch.")
    return next((number for number, known in NUMBERS.items() if known == name), name)
