// Sparse operands: the last thing before the kernel.
#pragma once

namespace rushlight {

void install_sparse();

}  // namespace rushlight
