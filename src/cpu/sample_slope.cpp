#include "cpu/sample_slope.h"

#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void gamma_slope_range(int64_t begin, int64_t end, const double* const* v,
                                           double exactness, double* slopes);
                    void dirichlet_slope_range(int64_t begin, int64_t end, const double* const* v,
                                               double exactness, double* slopes);)

void gamma_slopes(int64_t n, const double* const* v, double exactness, double* slopes) {
  parallel_for(0, n, kGrainSize / 64, [&](int64_t begin, int64_t end) {
    RL_ISA_VARIANT(gamma_slope_range(begin, end, v, exactness, slopes));
  });
}
void dirichlet_slopes(int64_t n, const double* const* v, double exactness, double* slopes) {
  parallel_for(0, n, kGrainSize / 64, [&](int64_t begin, int64_t end) {
    RL_ISA_VARIANT(dirichlet_slope_range(begin, end, v, exactness, slopes));
  });
}

}  // namespace rushlight::cpu
