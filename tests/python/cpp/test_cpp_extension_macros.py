"""The macros of libtorch's headers that extensions use: dispatch by types, checks, versions, attributes."""

import os
import shutil

import pytest

import rushlight as torch
from rushlight.utils import cpp_extension

pytestmark = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "c++")) is None, reason="no C++ compiler: extensions cannot be built"
)

SOURCE = """
#include <ATen/Dispatch_v2.h>
#include <c10/macros/Macros.h>
#include <c10/util/Logging.h>
#include <torch/extension.h>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR < 2 || !defined(TORCH_VERSION)
#error "an old version"
#endif

template <class T>
C10_HOST_DEVICE C10_ALWAYS_INLINE T square(T value) { return value * value; }

#define BODY [&] { return static_cast<int64_t>(sizeof(scalar_t)); }
int64_t size_of(const torch::Tensor& x, int64_t how) {
  const auto type = x.scalar_type();
  using at::ScalarType;
  switch (how) {
    case 0: return AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, torch::kBFloat16, type, "sized", BODY);
    case 1: return AT_DISPATCH_ALL_TYPES_AND(ScalarType::Bool, type, "sized", BODY);
    case 2: return AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(at::kHalf, at::kBool, at::kBFloat16, type, "sized",
                                                          BODY);
    case 3: return AT_DISPATCH_INDEX_TYPES(type, "sized", [&] { return int64_t(sizeof(index_t)); });
    case 4: return AT_DISPATCH_V2(type, "sized", AT_WRAP(BODY), AT_EXPAND(AT_FLOATING_TYPES), at::kHalf);
    case 5: return AT_DISPATCH_SWITCH(type, "sized", AT_DISPATCH_CASE(at::kHalf, BODY)
                                      AT_DISPATCH_CASE_FLOATING_TYPES(BODY));
    default: return AT_DISPATCH_COMPLEX_TYPES(type, "sized", BODY);
  }
}
int64_t fails(int64_t how) {
  const int64_t a = square(how), b = 4;
  if (how == 0) TORCH_CHECK_NOT_IMPLEMENTED(false, "not yet ", how);
  if (how == 1) TORCH_CHECK_LINALG(false, "singular");
  if (how == 2) TORCH_CHECK_NE(a, b);
  if (how == 3) TORCH_CHECK_LE(a, b);
  if (how == 4) TORCH_CHECK_ARG(false, 2, "too large");
  if (how == 5) AT_ASSERTM(false, "wrong ", a);
  if (how == 6) TORCH_INTERNAL_ASSERT(a < b, "more of it");
  if (C10_UNLIKELY(how == 7)) AT_ERROR("seven");
  return a;
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("macros"))
    return cpp_extension.load_inline(
        "macros_test",
        SOURCE,
        functions={"size_of": "Bytes.", "fails": ""},
        build_directory=folder,
        extra_cflags=["-O0"],
    )


TYPES = "uint8 int16 int32 int64 bool float16 bfloat16 float32 float64 complex64 complex128".split()
TAKEN = [
    {"float16", "bfloat16", "float32", "float64"},
    {"uint8", "int16", "int32", "int64", "bool", "float32", "float64"},
    set(TYPES),
    {"int32", "int64"},
    {"float16", "float32", "float64"},
    {"float16", "float32", "float64"},
    {"complex64", "complex128"},
]


@pytest.mark.parametrize("how", range(len(TAKEN)))
def test_dispatch_by_types(module, how):
    for name in TYPES:
        x = torch.zeros(2, dtype=getattr(torch, name))
        if name in TAKEN[how]:
            assert module.size_of(x, how) == x.element_size(), name
        else:
            with pytest.raises((NotImplementedError, RuntimeError), match='"sized" not implemented for \''):
                module.size_of(x, how)


@pytest.mark.parametrize(
    ("how", "kind", "words"),
    [
        (0, NotImplementedError, "not yet 0"),
        (1, torch.linalg.LinAlgError, "singular"),
        (2, RuntimeError, r"Check failed: a != b \(4 vs. 4\)"),
        (3, RuntimeError, r"Check failed: a <= b \(9 vs. 4\)"),
        (4, RuntimeError, "invalid argument 2: too large"),
        (5, RuntimeError, "wrong 25"),
        (6, RuntimeError, "more of it"),
        (7, RuntimeError, "seven"),
    ],
)
def test_checks(module, how, kind, words):
    with pytest.raises(kind, match=words):
        module.fails(how)
    assert module.fails(9) == 81 and module.size_of.__doc__ == "Bytes."
