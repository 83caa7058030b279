// Operators whose out= must have the result's dtype: a factorisation that was rounded on the way out would no
// longer be one, and PyTorch refuses it.
#include <algorithm>

#include "dispatch/exact_out.h"
#include "ops/register.h"

namespace rushlight {
namespace {

constexpr std::string_view kExact[] = {
    "frexp", "lu_unpack", "lu_solve", "native_batch_norm", "ormqr", "qr", "renorm", "svd", "triangular_solve",
};
constexpr std::string_view kExactInLinalg[] = {
    "cholesky",     "cholesky_ex", "det",
    "eigh",         "eigvalsh",    "inv",
    "inv_ex",       "ldl_factor",  "ldl_factor_ex",
    "ldl_solve",    "lu",          "lu_factor",
    "lu_factor_ex", "lu_solve",    "matrix_norm",
    "norm",         "qr",          "slogdet",
    "solve",        "solve_ex",    "solve_triangular",
    "svd",          "svdvals",     "vecdot",
    "vector_norm",
};

constexpr std::string_view kExactInNn[] = {"gelu", "hardshrink", "logsigmoid", "softplus", "softshrink"};

template <size_t n>
bool lists(const std::string_view (&names)[n], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

void mark_exact_outputs(Table& t) {
  for (Op& op : t.ops()) {
    if (!op.has_out || op.family_data) continue;
    const std::string_view space = op.schema.space, name = op.schema.name;
    if (space == "linalg" ? lists(kExactInLinalg, name)
        : space == "nn"   ? lists(kExactInNn, name)
                          : space.empty() && lists(kExact, name))
      op.family_data = &exact_dtype_out;
  }
}

}  // namespace rushlight
