#include "core/answered.h"

namespace rushlight {

bool (*answered_contiguous)(const Tensor& t, MemoryFormat format) = nullptr;
Device (*answered_device)(const Tensor& t) = nullptr;

}  // namespace rushlight
