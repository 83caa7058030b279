// Memory that JavaScript fills: arguments, and whole files.
#include "core/host/memory.h"

#include "rushlight/c.h"

using namespace rushlight;

extern "C" {

void* rl_browser_alloc(size_t bytes) { return host::allocate_aligned(bytes, 64); }

// The model takes the bytes over, also where it cannot be made.
int rl_browser_model(void* bytes, size_t size, rl_model* model) {
  return rl_model_load_memory(bytes, size, host::free_aligned, bytes, model);
}
}
