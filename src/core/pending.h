// Conjugates and negatives that are views: the memory holds the numbers, a flag says what to do as they are
// read.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Note [Pending conjugation]
// conj() of a complex tensor is a view on the same memory with kPendingConj, _neg_view() and the imaginary
// part of such a view have kPendingNeg. Their elements are no plain numbers, so they carry kSpecialElements
// as well: calls of other tensors pay nothing, and the gate's last interceptor (transform/pending.cpp) hands
// kernels copies that hold the numbers, and writes back what they wrote. make_view passes both flags on, so
// operators that only look elsewhere in the same memory need not know. A tensor of a transform's level has
// the flags of what it stands for, a fake tensor those of its meta tensor. Sparse tensors, those of other
// devices and, without the whole library, all others are conjugated at once.
constexpr uint32_t kPendingConj = 1u << 24, kPendingNeg = 1u << 25;
constexpr uint32_t kPending = kPendingConj | kPendingNeg;

// The flags that say how elements are to be read, of a tensor that is pending; none of another.
inline uint32_t pending_flags(const TensorImpl& t) {
  return t.flags & kPending ? t.flags & (kPending | kSpecialElements) : 0;
}
inline bool is_pending(const Tensor& t) { return t.defined() && t->flags & kPending; }

// The view with `flag` (one of kPending) turned over. Set by the operators that make such views; null in the
// small runtime, where nothing is pending.
inline Tensor (*turned_view)(const Tensor& t, uint32_t flag) = nullptr;

}  // namespace rushlight
