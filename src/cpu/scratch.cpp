#include "cpu/scratch.h"

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace rushlight::cpu {

void* take_scratch(int64_t bytes) {
  void* memory = std::malloc(static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  RL_CHECK_AS(OutOfMemory, memory, "cannot allocate ", bytes, " bytes of working memory");
  return memory;
}
void give_scratch(void* memory) { std::free(memory); }

}  // namespace rushlight::cpu
