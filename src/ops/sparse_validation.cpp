// Whether the indices of compressed sparse tensors keep the rules that kernels rely on.
#include <limits>

#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/sparse.h"

namespace rushlight {

using namespace ops;

namespace {

struct IndexNames {
  const char *compressed, *plain;
};
IndexNames index_names(bool is_crow) {
  return is_crow ? IndexNames{"crow_indices", "col_indices"} : IndexNames{"ccol_indices", "row_indices"};
}

// One batch: starts[lines + 1] that rise from 0 to nnz, and places[nnz] below `width`, in order in each line.
template <class I>
void check_lines(const I* starts, const I* places, int64_t lines, int64_t width, int64_t nnz, IndexNames of) {
  RL_CHECK(starts[0] == 0, "`", of.compressed, "[..., 0] == 0` is not satisfied.");
  RL_CHECK(starts[lines] == nnz, "`", of.compressed, "[..., -1] == nnz` is not satisfied.");
  const auto most = static_cast<uint64_t>(width);
  bool fits = true, inside = true;
  for (int64_t r = 0; r < lines; ++r)
    fits &= static_cast<uint64_t>(starts[r + 1]) - static_cast<uint64_t>(starts[r]) <= most;
  RL_CHECK(fits, "`0 <= ", of.compressed, "[..., 1:] - ", of.compressed, "[..., :-1] <= ", width,
           "` is not satisfied.");
  // Places may fall where a line begins, and nowhere else.
  int64_t falls = 0, falls_between = 0;
  I before = -1;
  for (int64_t i = 0; i < nnz; ++i) {
    const I place = places[i];
    inside &= static_cast<uint64_t>(place) < most;
    falls += place <= before;
    before = place;
  }
  RL_CHECK(inside, "`0 <= ", of.plain, " < ", width, "` is not satisfied.");
  for (int64_t r = 1; r < lines && falls_between < falls; ++r) {
    const I start = starts[r];
    if (start > 0 && start < starts[r + 1]) falls_between += places[start] <= places[start - 1];
  }
  RL_CHECK(falls == falls_between, "`", of.plain, "` must be sorted and distinct along each line.");
}

void validate_indices_body(const Call&, bool is_crow, const Tensor& compressed, const Tensor& plain,
                           int64_t lines, int64_t width, int64_t nnz) {
  const IndexNames of = index_names(is_crow);
  RL_CHECK(compressed.dtype() == plain.dtype(), of.compressed, " and ", of.plain,
           " dtype must match, got torch.", dtype_name(compressed.dtype()), " and torch.",
           dtype_name(plain.dtype()));
  RL_CHECK(compressed.dtype() == DType::Int64 || compressed.dtype() == DType::Int32, of.compressed, " and ",
           of.plain, " must be an int32 or int64 type, but got: torch.", dtype_name(compressed.dtype()));
  RL_CHECK(lines >= 0 && lines < std::numeric_limits<int64_t>::max() && width >= 0 && nnz >= 0,
           "compressed sparse indices cannot be ", nnz, " places in ", lines, " lines of ", width);
  const auto check_length = [](const char* name, const Tensor& t, int64_t length) {
    RL_CHECK(t.dim() > 0 && t.size(-1) == length, name, ".shape[-1] must be equal to ", length,
             ", but got shape ", t.sizes());
  };
  check_length(of.compressed, compressed, lines + 1);
  check_length(of.plain, plain, nnz);
  const int64_t batches = compressed.numel() / (lines + 1);
  RL_CHECK(plain.numel() == batches * nnz, of.compressed, " and ", of.plain,
           " must have the same batch, got shapes ", compressed.sizes(), " and ", plain.sizes());
  if (compressed.device().is_meta()) return;
  const Tensor starts = as_contiguous(on_cpu(compressed)), places = as_contiguous(on_cpu(plain));
  visit_dtype(TypeList<int64_t, int32_t>{}, compressed.dtype(), "sparse indices", [&]<class I>(I) {
    for (int64_t b = 0; b < batches; ++b)
      check_lines(starts.data<I>() + b * (lines + 1), places.data<I>() + b * nnz, lines, width, nnz, of);
  });
}

}  // namespace

void register_sparse_validation(Table& t) {
  t.composite(
       "_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor plain_idx, int cdim, "
       "int dim, int nnz) -> ()",
       validate_indices_body)
      .function_only()
      .example_by_example()
      .doc("Raises RuntimeError that names the rule which indices of `cdim` lines of `dim` places break.");
}

}  // namespace rushlight
