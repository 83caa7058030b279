// Threads, where the page has memory that its workers share.
#include "frontend/c_common.h"
#include "rushlight/tensor.h"

using namespace rushlight;

extern "C" {

// No more than the script has workers for, and the caller itself.
int rl_browser_set_threads(int n) {
  return c::guarded([&] { set_num_threads(n); });
}
}
