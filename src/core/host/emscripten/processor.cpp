#include "core/host/processor.h"

#include <emscripten/heap.h>

#include "core/host/features.h"

namespace rushlight::host {

// The script that starts the program says later how many threads it has workers for.
int usable_cores() { return 1; }

size_t usable_memory() { return emscripten_get_heap_max(); }

bool system_has_dot_products() { return false; }
bool system_has_checksums() { return false; }
bool system_gives_tiles() { return false; }

}  // namespace rushlight::host
