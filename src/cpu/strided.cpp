#include "cpu/strided.h"

namespace rushlight::cpu {

void strided_add(void* data, DType dtype, IntList sizes, IntList strides, const void* values) {
  const int64_t numel = checked_numel(sizes);
  visit_dtype(NumberTypes{}, dtype, "strided_add", [&](auto tag) {
    using T = decltype(tag);
    auto* out = static_cast<T*>(data);
    const auto* in = static_cast<const T*>(values);
    Dims index(sizes.size());
    int64_t at = 0;
    for (int64_t i = 0; i < numel; ++i) {
      out[at] = static_cast<T>(out[at] + in[i]);
      for (size_t d = sizes.size(); d-- > 0;) {  // odometer
        at += strides[d];
        if (++index[d] < sizes[d]) break;
        at -= sizes[d] * strides[d];
        index[d] = 0;
      }
    }
  });
}

}  // namespace rushlight::cpu
