"""Short names of dtypes, as graphs and debug prints show them."""

import rushlight as torch

_SHORT = dict(
    bfloat16="bf16",
    float64="f64",
    float32="f32",
    float16="f16",
    float8_e4m3fn="f8e4m3fn",
    float8_e5m2="f8e5m2",
    float8_e4m3fnuz="f8e4m3fnuz",
    float8_e5m2fnuz="f8e5m2fnuz",
    float8_e8m0fnu="f8e8m0fnu",
    float4_e2m1fn_x2="f4e2m1fnx2",
    complex32="c32",
    complex64="c64",
    complex128="c128",
    int8="i8",
    int16="i16",
    int32="i32",
    int64="i64",
    bool="b8",
    uint8="u8",
    uint16="u16",
    uint32="u32",
    uint64="u64",
)
dtype_abbrs = {getattr(torch, name): short for name, short in _SHORT.items() if hasattr(torch, name)}
