#include "cpu/epilogue.h"

#include "core/deferred_layout.h"
#include "core/parallel.h"
#include "cpu/isa_variant.h"

namespace rushlight::cpu {

RL_DECLARE_VARIANTS(void epilogue_rows(const EpilogueArguments& a, int64_t begin, int64_t end);)

namespace {

void run(const Tensor& image, const Epilogue& e, const Tensor& result) {
  EpilogueArguments a;
  a.dtype = image.dtype();
  a.channels = image->sizes[1];
  a.pixels = image.numel() / a.channels;
  a.x = image.data_ptr(), a.y = result.data_ptr();
  a.residual = e.residual.defined() ? e.residual.data_ptr() : nullptr;
  a.scale = e.scale.data<float>(), a.shift = e.shift.data<float>();
  a.bounded = e.bounded(), a.low = e.low, a.high = e.high;
  finish_pixels(a, 0, a.pixels);
}

[[maybe_unused]] const bool finishes_images = (apply_epilogue = run, true);

}  // namespace

void finish_pixels(const EpilogueArguments& a, int64_t begin, int64_t end) {
  parallel_for(begin, end, std::max<int64_t>(1, kGrainSize / a.channels),
               [&](int64_t b, int64_t e) { RL_ISA_VARIANT(epilogue_rows(a, b, e)); });
}

}  // namespace rushlight::cpu
