// Memory that JavaScript fills: arguments, and whole files.
#include <cstdlib>

#include "rushlight/c.h"

extern "C" {

void* rl_browser_alloc(size_t bytes) {
  void* memory = nullptr;
  return posix_memalign(&memory, 64, bytes) == 0 ? memory : nullptr;
}

// The model takes the bytes over, also where it cannot be made.
int rl_browser_model(void* bytes, size_t size, rl_model* model) {
  return rl_model_load_memory(bytes, size, std::free, bytes, model);
}
}
