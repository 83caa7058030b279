// Profiling: tells the recorder of every operator call and of every step of a backward pass.
#pragma once

namespace rushlight {

void install_profiler();

}  // namespace rushlight
