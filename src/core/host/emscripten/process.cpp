// The program is the only process there is.
#include "core/host/process.h"

#include <cerrno>

namespace rushlight::host {

uint64_t process_space() { return 1; }
uint64_t process_start(int32_t) { return 0; }
bool process_lives(int32_t id, uint64_t) { return id == process_id(); }

std::error_code signal_at_parents_end(int signal) {
  if (signal == 0) return {};
  return {ENOTSUP, std::generic_category()};
}

bool others_may_look() { return false; }

}  // namespace rushlight::host
