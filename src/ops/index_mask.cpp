// Positions of non-zero elements, and reading and writing under a mask.
#include "cpu/index.h"
#include "ops/copy.h"
#include "ops/factory.h"
#include "ops/index.h"
#include "ops/index_common.h"
#include "ops/join.h"
#include "ops/operators.h"
#include "ops/view.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor nonzero_kernel(const Call& call, const Tensor& self) {
  RL_CHECK(!call.out || call.out->dtype() == DType::Int64,
           "nonzero: Expected out tensor to have scalar type Long but got scalar type ",
           legacy_name(call.out->dtype()));
  if (self.device().is_cuda()) return nonzero_on_device(self);
  require_data(self, "nonzero");
  Tensor out;
  cpu::nonzero(self, [&](int64_t count) {
    out = empty_tensor({self.dim(), count}, DType::Int64, self.device());
    return out.data<int64_t>();
  });
  return ops::t(out);  // the coordinates of one dimension side by side, as in PyTorch
}

Tensor nonzero_static_kernel(const Call&, const Tensor& self, int64_t size, int64_t fill_value) {
  RL_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
  const Tensor out = empty_tensor({size, self.dim()}, DType::Int64, self.device());
  if (out.device().is_meta()) return out;
  const Tensor found = nonzero(self);
  if (!out.is_cpu()) {
    const int64_t rows = std::min(found.size(0), size);
    copy_result(narrow(out, 0, 0, rows), narrow(found, 0, 0, rows), false);
    fill_(narrow(out, 0, rows, size - rows), scalar_tensor_of(Scalar(fill_value), DType::Int64));
    return out;
  }
  const int64_t known = std::min(found.numel(), out.numel());
  std::copy_n(contiguous(found).data<int64_t>(), known, out.data<int64_t>());
  std::fill_n(out.data<int64_t>() + known, out.numel() - known, fill_value);
  return out;
}

Tensor argwhere_body(const Call&, const Tensor& self) { return nonzero(self); }

std::vector<Tensor> nonzero_columns(const Call&, const Tensor& self) {
  return unbind(nonzero(self.dim() == 0 ? unsqueeze(self, 0) : self), 1);
}

}  // namespace

Tensor select_under_mask(const Tensor& self, const Tensor& mask) {
  if (self.device().is_cuda()) return select_on_device(self, mask);
  require_data_beside(self, mask, "masked_select"), require_data(self, "masked_select");
  Tensor out;
  cpu::masked_select(dense(self), dense(mask), [&](int64_t count) {
    out = empty_tensor({count}, self.dtype(), self.device());
    return out.data_ptr();
  });
  return out;
}

namespace {

Tensor masked_select_kernel(const Call&, const Tensor& self, const Tensor& mask) {
  RL_CHECK(mask.dtype() == DType::Bool, "masked_select: expected BoolTensor for mask");
  const Dims sizes = broadcast_shapes(self.sizes(), mask.sizes());
  return select_under_mask(expand(self, sizes), expand(mask, sizes));
}

Tensor masked_scatter_kernel(const Call& call, const Tensor& self, const Tensor& given_mask,
                             const Tensor& source) {
  RL_CHECK(self.dtype() == source.dtype(),
           "masked_scatter: expected self and source to have same dtypes but got", legacy_name(self.dtype()),
           " and ", legacy_name(source.dtype()));
  RL_CHECK(given_mask.dtype() == DType::Bool,
           "masked_scatter_ only supports boolean masks, but got mask with dtype ",
           legacy_name(given_mask.dtype()));
  const Dims sizes = call.inplace ? self->sizes : broadcast_shapes(self.sizes(), given_mask.sizes());
  const Tensor mask = expand(given_mask, sizes);
  check_written_alone(call, {});
  if (mask.device().is_meta()) return working_copy(call, expand(self, sizes));
  if (mask.device().is_cuda()) {
    const Tensor values = dense(source), result = working_copy(call, expand(self, sizes));
    const Tensor target = dense(result);
    scatter_on_device(target, mask, apart_from(result, values));
    if (!target.is_same(result)) copy_result(result, target, false);
    return result;
  }
  const int64_t needed = cpu::count_true(mask);
  RL_CHECK(needed <= source.numel(), "masked_scatter: Number of elements of source < number of ones in mask");
  const Tensor values = dense(source), result = working_copy(call, expand(self, sizes));
  cpu::masked_scatter(result, mask, apart_from(result, values).data_ptr());
  return result;
}

// The selected gradients, followed by zeros for elements of the source that were not needed.
Tensor masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntList sizes) {
  const Tensor used = masked_select(grad, mask);
  const int64_t unused = checked_numel(sizes) - used.numel();
  return reshape(unused > 0 ? cat({used, zeros_of({unused}, grad)}) : used, sizes);
}

}  // namespace

void register_mask_operators(Table& t) {
  t.op(nonzero, "nonzero(Tensor self) -> Tensor", nonzero_kernel)
      .no_meta("how many elements there are depends on their values")
      .doc("Coordinates of the elements that are not zero, one row each.")
      .family(Family::Index)
      .out(OutRule::Disjoint)
      .on_devices()
      .data_dependent_shape()
      .not_differentiable("integer output");
  t.op(nonzero_static, "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
       nonzero_static_kernel)
      .doc("Coordinates of the elements that are not zero, cut or filled to a given number of rows.")
      .family(Family::Index)
      .on_devices()
      .out(OutRule::Disjoint)
      .not_differentiable("integer output");
  t.composite(argwhere, "argwhere(Tensor self) -> Tensor", argwhere_body)
      .no_meta("how many elements there are depends on their values")
      .example_by_example()
      .doc("Coordinates of the elements that are not zero.");
  t.composite(nonzero_numpy, "nonzero_numpy(Tensor self) -> Tensor[]", nonzero_columns)
      .no_meta("how many elements there are depends on their values")
      .doc("Coordinates of the elements that are not zero, one tensor per dimension.")
      .example_by_example()
      .batching(Batching::Refused)
      .internal();
  t.composite(where_condition, "where(Tensor condition) -> Tensor[]", nonzero_columns)
      .doc("Coordinates of the true elements, one tensor per dimension.")
      .example_by_example()
      .batching(Batching::Refused)
      .function_only()
      .numbers(Numbers::Mixed);
  t.op(masked_select, "masked_select(Tensor self, Tensor mask) -> Tensor", masked_select_kernel)
      .no_meta("how many elements there are depends on their values")
      .doc("The elements under a mask as a vector.")
      .family(Family::Index)
      .out(OutRule::Disjoint)
      .on_devices()
      .linear()
      .data_dependent_shape()
      .derivative([](Grad g, Shape<0> x, In<1> mask) {
        const Dims sizes = broadcast_shapes(x.sizes(), mask.sizes());
        return masked_scatter(zeros_of(sizes, g), mask, g);
      });
  t.op(masked_scatter, "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
       masked_scatter_kernel)
      .doc("Replaces the elements under a mask by those of source, in order.")
      .family(Family::Index)
      .on_devices()
      .inplace()
      .out()
      .derivative([](Grad g, In<1> mask, Shape<2> source, Needs need) {
        return Grads{rushlight::masked_fill(g, mask, Scalar(int64_t{0})), Tensor(),
                     need[2] ? masked_scatter_source_grad(g, mask, source.sizes()) : Tensor()};
      });
}

}  // namespace rushlight
