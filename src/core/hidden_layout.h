// Note [Hidden layouts]
// Convolutions and what follows them are fastest where the channels of a pixel lie next to each other. The
// result of a convolution of plain input is contiguous to everybody who asks, but its storage has no memory
// yet: the elements lie in an *image*, a tensor in channels-last layout, until somebody reads them through
// TensorImpl::data(). Then they are put in order, once, and the image is given up. An operator that knows
// takes image_of(t) and returns hide_layout(result); all others need no care.
//
// The rule: a two-dimensional convolution by oneDNN hides its result and the gradient of its input, unless
// the channels come last to the user as well. Normalisation by channel, pooling, pointwise operators, sums
// and concatenation keep what they find hidden. Writing forms that are given plain memory bring it to light.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// Whether the elements of t, all of its storage, lie in an image.
bool has_hidden_layout(const Tensor& t);
// That image; t itself when nothing is hidden.
Tensor image_of(const Tensor& t);
// A contiguous tensor of the elements of `image`, fresh memory in channels-last layout.
Tensor hide_layout(const Tensor& image);
// Puts the elements of a storage in order if they are hidden.
void reveal_layout(StorageImpl& storage);

// Filled in above: copies an image into plain memory.
extern void (*put_in_order)(const Tensor& image, const Tensor& plain);
// How many images have been put in order so far; for tests.
int64_t revealed_layouts();

}  // namespace rushlight
