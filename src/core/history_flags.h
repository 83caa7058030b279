// Bits of TensorImpl::flags that say how a tensor came about; only autograd reads them.
#pragma once
#include <cstdint>

namespace rushlight {

class Tensor;

// Beside kNoGradView: the view was taken under inference mode, or handed out by a custom Function.
constexpr uint32_t kInferenceView = 1u << 16, kCustomView = 1u << 17;
// All that a view of a view takes over beside kNoGradView and kMultiView.
constexpr uint32_t kViewOrigin = kInferenceView | kCustomView;
// A view of a view that was taken so; its own view is an ordinary one.
constexpr uint32_t kOriginInherited = 1u << 18;
// A result that detach_() cut from its graph.
constexpr uint32_t kDetachedInPlace = 1u << 19;
// Beside kNoGradView: AutogradMeta::seen_version is that of the base when the view was taken.
constexpr uint32_t kKnowsVersion = 1u << 21;

// Filled by autograd: notes the version in a view that was just taken under no_grad.
extern void (*note_version)(const Tensor& view);

}  // namespace rushlight
