// Operands whose conjugation or negation is pending. Note [Pending conjugation] in core/pending.h
#pragma once

namespace rushlight {

struct Frame;
class Tensor;

bool has_pending(const Frame& frame);
// `others` continues where an operand is sparse or quantised besides.
void pending_call(Frame& frame, void (*others)(Frame&));

}  // namespace rushlight
