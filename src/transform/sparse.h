// Operands whose elements are no plain numbers, sparse or quantised: the last thing before the kernel.
#pragma once

namespace rushlight {

void install_sparse();

}  // namespace rushlight
