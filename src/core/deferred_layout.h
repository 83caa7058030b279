// Note [Deferred layout conversion]
// Convolutions and what follows them are fastest where the channels of a pixel lie next to each other. The
// result of a convolution of plain input is contiguous to everybody who asks, but its storage has no memory
// yet: the elements lie in an *image*, a tensor in channels-last layout, until somebody reads them through
// TensorImpl::data(). Then they are put in order, once, and the image is given up. An operator that knows
// takes image_of(t) and returns defer_layout(result); all others need no care.
//
// The rule: a two-dimensional convolution by oneDNN defers the layout of its result and of the gradient of
// its input, unless the channels come last to the user as well. Normalisation by channel, pooling, pointwise
// operators, sums and concatenation keep a layout deferred. Writing forms that are given plain memory convert
// it.
//
// Note [Deferred epilogues]
// What follows a convolution, normalisation, the sum with a residual, a bound from below, costs as much as
// reading and writing the image each time. So these operators only note their step in an epilogue, and the
// first reader of the image has all of them done in one pass: over the image itself where nobody else holds
// it. Nothing that a program can write to is kept for later: factors are copies, and an image that an
// epilogue holds is copied before it is written to. Steps are rounded as the operators alone round them.
#pragma once
#include <limits>
#include <optional>

#include "core/tensor.h"

namespace rushlight {

// clamp(image * scale + shift + residual), scale and shift by channel.
struct Epilogue {
  Tensor scale, shift;
  Tensor residual;  // an image; undefined: none
  float low = -std::numeric_limits<float>::infinity(), high = std::numeric_limits<float>::infinity();
  bool bounded() const;
};

// Whether the elements of t, all of its storage, lie in an image.
bool has_deferred_layout(const Tensor& t);
// That image, its epilogue computed, to read; t itself when nothing is deferred.
Tensor image_of(const Tensor& t);
// The same to write to: nobody else holds it.
Tensor writable_image_of(const Tensor& t);
// A contiguous tensor of the elements of `image`, fresh memory in channels-last layout.
Tensor defer_layout(const Tensor& image);
// Converts the elements of a storage to plain layout if that was deferred.
void materialize_layout(StorageImpl& storage);

// An image and the steps its elements still need.
struct DeferredEpilogue {
  Tensor image;
  Epilogue epilogue;
};
std::optional<DeferredEpilogue> deferred_epilogue_of(const Tensor& t);
// A fresh tensor of such elements. `image` must be one that defer_layout would take.
Tensor defer_epilogue(DeferredEpilogue pending);
// Lets t, whose elements lie in an image, take another one from now on: what an operator does in place.
void replace_deferred(const Tensor& t, DeferredEpilogue pending);
bool can_defer(const Tensor& image);

// Filled in above: copies an image into plain memory; computes an epilogue, `result` being the image itself
// or another one.
extern void (*copy_to_plain_layout)(const Tensor& image, const Tensor& plain);
extern void (*apply_epilogue)(const Tensor& image, const Epilogue& epilogue, const Tensor& result);
// How many images have been converted to plain layout so far; for tests.
int64_t materialized_layouts();

}  // namespace rushlight
