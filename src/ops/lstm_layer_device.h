// An LSTM layer on a device: a launch a step for few rows, else two, a product and what is pointwise.
#pragma once
#include "core/tensor.h"

namespace rushlight {

// All [steps, batch, ...] and contiguous but for the weight, as of _lstm_layer. Without `gates` and `cells`
// nothing is kept for gradients.
struct DeviceLstmLayer {
  Tensor projected, hx, cx, w_hh;
  bool reverse;
  Tensor output, last_h, last_c, gates, cells;  // written
};
void lstm_layer_on_device(const DeviceLstmLayer& layer);

struct DeviceLstmLayerGradients {
  Tensor grad_output, grad_hidden, grad_cell;  // may be undefined
  Tensor cx, w_hh, gates, cells;
  bool reverse;
  Tensor grad_gates, grad_hx, grad_cx;  // written
};
void lstm_layer_gradients_on_device(const DeviceLstmLayerGradients& layer);

}  // namespace rushlight
