// Recording: the interceptor that turns operator calls on tensors that require grad into backward nodes.
#pragma once

namespace rushlight {

void install_autograd();

struct Frame;
// Set by src/python: records a call of an operator that the program defined itself.
extern void (*record_custom_call)(Frame& frame);

}  // namespace rushlight
