#include "cpu/optimizer.h"

#include <algorithm>
#include <vector>

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(const StepLoops* optimizer_loops(DType dtype);)

namespace {

const StepLoops& loops_for(DType dtype) {
  const StepLoops* loops = RL_ISA_VARIANT(optimizer_loops(dtype));
  RL_CHECK(loops, "fused optimizer: not implemented for ", dtype_name(dtype), "; use fused=False");
  return *loops;
}

// Cuts all parameters together into pieces of work, so that many small ones share a task and a large one is
// split.
template <class F>
void over_all(std::span<const StepArrays> params, F&& loop) {
  std::vector<int64_t> ends(params.size());
  int64_t total = 0;
  for (size_t k = 0; k < params.size(); ++k) ends[k] = total += params[k].size;
  parallel_for(0, total, kGrainSize / 4, [&](int64_t begin, int64_t end) {
    size_t k = static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
    for (int64_t at = begin; at < end; ++k) {
      const int64_t start = ends[k] - params[k].size, stop = std::min(end, ends[k]);
      if (at < stop) loop(params[k], at - start, stop - start);
      at = stop;
    }
  });
}

}  // namespace

void sgd_step(DType dtype, std::span<const StepArrays> params, const SgdOptions& options) {
  const auto loop = loops_for(dtype).sgd;
  over_all(params, [&](const StepArrays& a, int64_t b, int64_t e) { loop(a, options, b, e); });
}

void adam_step(DType dtype, std::span<const StepArrays> params, const AdamOptions& options) {
  const auto loop = loops_for(dtype).adam;
  over_all(params, [&](const StepArrays& a, int64_t b, int64_t e) { loop(a, options, b, e); });
}

void update_step(DType dtype, std::span<const StepArrays> params, const UpdateOptions& options) {
  const auto loop = loops_for(dtype).update[static_cast<size_t>(options.rule)];
  over_all(params, [&](const StepArrays& a, int64_t b, int64_t e) { loop(a, options, b, e); });
}

void unscale_grads(DType dtype, std::span<const StepArrays> params, double scale) {
  const auto loop = loops_for(dtype).unscale;
  over_all(params, [&](const StepArrays& a, int64_t b, int64_t e) { loop(a, scale, b, e); });
}

}  // namespace rushlight::cpu
