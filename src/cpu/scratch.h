// Memory for the length of a call, for files compiled per instruction set, which must not instantiate
// containers.
#pragma once
#include <cstdint>

namespace rushlight::cpu {

void* take_scratch(int64_t bytes);  // never null; an out-of-memory error instead
void give_scratch(void* memory);

}  // namespace rushlight::cpu
