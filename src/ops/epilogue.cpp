#include "ops/epilogue.h"

#include <algorithm>

#include "core/deferred_layout.h"

namespace rushlight {
namespace {

bool is_written_elsewhere(const Call& call, const Tensor& self) {
  return call.out && !(call.inplace && call.out->is_same(self));
}

// `self` with its image replaced in an in-place call, or a fresh tensor.
Tensor deferred_result(const Call& call, const Tensor& self, DeferredEpilogue pending) {
  if (!call.out) return defer_epilogue(std::move(pending));
  replace_deferred(self, std::move(pending));
  return self;
}

// Bounds that the dtype holds can be applied before or after rounding.
bool is_exact(DType dtype, double bound) {
  const auto narrow = static_cast<float>(bound);
  return static_cast<double>(narrow) == bound &&
         (dtype == DType::Float32 || static_cast<float>(BFloat16(narrow)) == narrow);
}

// A deferred epilogue to which a sum can still be added.
std::optional<DeferredEpilogue> awaiting_sum(const Tensor& t) {
  auto pending = deferred_epilogue_of(t);
  const bool taken = pending && (pending->epilogue.residual.defined() || pending->epilogue.bounded());
  return taken ? std::nullopt : pending;
}

}  // namespace

Tensor defer_affine(const Tensor& image, const Tensor& scale, const Tensor& shift) {
  const bool fits = image.dtype() == DType::Float32 || image.dtype() == DType::BFloat16;
  if (!fits || !can_defer(image)) return Tensor();
  Epilogue epilogue;
  epilogue.scale = scale, epilogue.shift = shift;
  return defer_epilogue({image, std::move(epilogue)});
}

Tensor defer_clamp(const Call& call, const Tensor& self, double low, double high) {
  if (self.has_data() || is_written_elsewhere(call, self)) [[likely]]
    return Tensor();
  auto pending = deferred_epilogue_of(self);
  if (!pending || !is_exact(self.dtype(), low) || !is_exact(self.dtype(), high) || !(low <= high))
    return Tensor();
  Epilogue& e = pending->epilogue;
  const auto least = static_cast<float>(low), most = static_cast<float>(high);
  e.low = std::clamp(e.low, least, most), e.high = std::clamp(e.high, least, most);
  return deferred_result(call, self, std::move(*pending));
}

Tensor defer_add(const Call& call, const Tensor& self, const Tensor& other) {
  if (self.has_data() || other.has_data() || is_written_elsewhere(call, self)) [[likely]]
    return Tensor();
  if (self.sizes() != other.sizes() || self.dtype() != other.dtype()) return Tensor();
  auto pending = awaiting_sum(self);
  const Tensor& residual = pending ? other : self;
  if (!pending && !call.out) pending = awaiting_sum(other);
  if (!pending || !has_deferred_layout(residual)) return Tensor();
  pending->epilogue.residual = image_of(residual);
  return deferred_result(call, self, std::move(*pending));
}

}  // namespace rushlight
