// What the files of the normalisation family share.
#include "ops/norm_common.h"

#include "ops/copy.h"
#include "ops/device_loops.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/reduction.h"
#include "ops/view.h"

namespace rushlight {

using namespace ops;

int64_t wanted_gradients(const Needs& need, int weight, int bias) {
  return (need[0] ? 1 : 0) | (need[weight] ? 2 : 0) | (bias >= 0 && need[bias] ? 4 : 0);
}

Tensor norm_parameter(const Tensor& t, DType compute) {
  return t.defined() ? as_contiguous(to_dtype(t, compute)) : t;
}

void check_parameter_types(std::string_view who, const Tensor& input,
                           std::initializer_list<NamedParameter> all) {
  DType wanted = input.dtype();
  for (const NamedParameter& p : all) {
    if (!p.tensor.defined()) continue;
    wanted = p.tensor.dtype();
    break;
  }
  if (wanted != input.dtype()) {
    for (const NamedParameter& p : all)
      RL_CHECK(!p.tensor.defined() || p.tensor.dtype() == DType::Float32,
               "mixed dtype (CPU): expect parameter to have scalar type of Float, but ", who, " got ", p.name,
               " ", describe(p.tensor), " with input ", describe(input));
    RL_CHECK(is_reduced_float(input.dtype()), "mixed dtype (CPU): all inputs must share same datatype, but ",
             who, " got input ", describe(input), " with parameters of float32");
  }
  if (!is_floating(input.dtype())) return;  // for which there is no kernel
  for (const NamedParameter& p : all)
    RL_CHECK(!p.tensor.defined() || p.tensor.dtype() == wanted, "expected scalar type ", legacy_name(wanted),
             " but found ", legacy_name(p.tensor.dtype()), ": ", who, " got ", p.name, " ",
             describe(p.tensor), " with input ", describe(input));
}

DType statistics_dtype(const Tensor& input, std::initializer_list<const Tensor*> parameters) {
  for (const Tensor* t : parameters)
    if (t->defined() && t->dtype() != input.dtype()) return compute_dtype(input.dtype());
  return input.dtype();
}

void clear(const Tensor& t) {
  if (t.numel()) loops::copy(t, scalar_tensor_of(0, t.dtype()));
}

bool observed(std::initializer_list<const Tensor*> tensors, uint32_t besides) {
  uint32_t flags = 0;
  for (const Tensor* t : tensors) flags |= detail::flags_of(*t) & ~besides;
  return (dispatch_state.always | (flags & dispatch_state.consider)) != 0;
}

Normalized normalized_reference(const Tensor& x, IntList dims, double eps, bool subtract_mean) {
  const Tensor shifted = subtract_mean ? x - mean_dim(x, dims, true) : x;
  const Tensor rstd = rsqrt(mean_dim(shifted * shifted, dims, true) + Scalar(eps));
  return {shifted * rstd, rstd};
}

Tensor normalized_gradient(const Tensor& grad, const Normalized& n, IntList dims, bool subtract_mean) {
  const Tensor along = n.centred * mean_dim(grad * n.centred, dims, true);
  return n.rstd * (subtract_mean ? grad - mean_dim(grad, dims, true) - along : grad - along);
}

}  // namespace rushlight
