// TORCH_LIBRARY(name, m) { m.def("add_one(Tensor x) -> Tensor", &add_one); }
#pragma once
#include "torch/extension.h"
