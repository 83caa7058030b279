#include "core/host/memory.h"

#include <cerrno>

namespace rushlight::host {

// There are no other processes.
bool shared_memory_is_sparse() { return false; }
std::error_code create_shared(size_t, SharedMemory*) { return {ENOTSUP, std::generic_category()}; }
void discard_shared(const SharedMemory&, size_t, size_t) {}

}  // namespace rushlight::host
