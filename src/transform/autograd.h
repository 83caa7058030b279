// Recording: the interceptor that turns operator calls on tensors that require grad into backward nodes.
#pragma once

namespace rushlight {

void install_autograd();

}  // namespace rushlight
