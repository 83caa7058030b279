#pragma once

#include <cstdint>

#include "core/parallel.h"

// The workers of builds without oneTBB (Note [Threads] in core/parallel.h). They are started when they are
// first needed, and sleep where nothing is to do.

namespace rushlight::detail {

/// Runs task(0) ... task(count - 1), each once, on the caller and on `threads - 1` workers or as many as
/// there are, and `between` after each that the caller ran. The first exception is rethrown, once nobody
/// works for this call any more; tasks that had not begun are then left out.
void run_on_workers(int64_t count, int threads, FunctionRef<void(int64_t)> task, FunctionRef<void()> between);
/// The number of this thread among those of the call that it works for: 0 is the caller's.
int worker_number();

}  // namespace rushlight::detail
