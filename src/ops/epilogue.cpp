#include "ops/epilogue.h"

#include <algorithm>

#include "core/hidden_layout.h"

namespace rushlight {
namespace {

bool is_written_elsewhere(const Call& call, const Tensor& self) {
  return call.out && !(call.inplace && call.out->is_same(self));
}

// `self` with its image replaced in an in-place call, or a fresh tensor.
Tensor left_for_later(const Call& call, const Tensor& self, UnfinishedImage unfinished) {
  if (!call.out) return hide_unfinished(std::move(unfinished));
  replace_hidden(self, std::move(unfinished));
  return self;
}

// Bounds that the dtype holds can be applied before or after rounding.
bool is_exact(DType dtype, double bound) {
  const auto narrow = static_cast<float>(bound);
  return static_cast<double>(narrow) == bound &&
         (dtype == DType::Float32 || static_cast<float>(BFloat16(narrow)) == narrow);
}

// An unfinished image to which a sum can still be added.
std::optional<UnfinishedImage> awaiting_sum(const Tensor& t) {
  auto unfinished = unfinished_image_of(t);
  const bool taken =
      unfinished && (unfinished->epilogue.residual.defined() || unfinished->epilogue.bounded());
  return taken ? std::nullopt : unfinished;
}

}  // namespace

Tensor affine_later(const Tensor& image, const Tensor& scale, const Tensor& shift) {
  const bool fits = image.dtype() == DType::Float32 || image.dtype() == DType::BFloat16;
  if (!fits || !can_hide(image)) return Tensor();
  Epilogue epilogue;
  epilogue.scale = scale, epilogue.shift = shift;
  return hide_unfinished({image, std::move(epilogue)});
}

Tensor clamp_later(const Call& call, const Tensor& self, double low, double high) {
  if (self.has_data() || is_written_elsewhere(call, self)) [[likely]]
    return Tensor();
  auto unfinished = unfinished_image_of(self);
  if (!unfinished || !is_exact(self.dtype(), low) || !is_exact(self.dtype(), high) || !(low <= high))
    return Tensor();
  Epilogue& e = unfinished->epilogue;
  const auto least = static_cast<float>(low), most = static_cast<float>(high);
  e.low = std::clamp(e.low, least, most), e.high = std::clamp(e.high, least, most);
  return left_for_later(call, self, std::move(*unfinished));
}

Tensor add_later(const Call& call, const Tensor& self, const Tensor& other) {
  if (self.has_data() || other.has_data() || is_written_elsewhere(call, self)) [[likely]]
    return Tensor();
  if (self.sizes() != other.sizes() || self.dtype() != other.dtype()) return Tensor();
  auto unfinished = awaiting_sum(self);
  const Tensor& residual = unfinished ? other : self;
  if (!unfinished && !call.out) unfinished = awaiting_sum(other);
  if (!unfinished || !has_hidden_layout(residual)) return Tensor();
  unfinished->epilogue.residual = image_of(residual);
  return left_for_later(call, self, std::move(*unfinished));
}

}  // namespace rushlight
