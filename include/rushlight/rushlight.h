// The C++ front end: tensors, gradients, networks, optimizers, data, files. See docs/cpp.md.
#pragma once
#include "rushlight/autograd.h"
#include "rushlight/data.h"
#include "rushlight/data_chunks.h"
#include "rushlight/determinism.h"
#include "rushlight/losses.h"
#include "rushlight/nn.h"
#include "rushlight/optim.h"
#include "rushlight/serialize.h"
#include "rushlight/tensor.h"

namespace rushlight {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

}  // namespace rushlight
