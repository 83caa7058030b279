// Products by a matrix that is laid out once: what torch.compile makes of layers whose weights do not change
// between runs, or that run many times in one.
#include "ops/packed_product.h"

#include "cpu/packed_product.h"
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/factory.h"

namespace rushlight {
namespace ops {
inline Fn<Tensor(const Tensor& matrix)> pack_matrix;
inline Fn<Tensor(const Tensor& input, const Tensor& panels, int64_t columns, const Tensor& bias, double low,
                 double high)>
    packed_product;
}  // namespace ops

namespace {

void check_dtype(const Call& call, const Tensor& t) {
  RL_CHECK(t.is_cpu() && (t.dtype() == DType::Float32 || t.dtype() == DType::Float64), call.op.name(),
           "(): expected a tensor of float32 or float64 on the CPU, but got ", describe(t));
}

Tensor pack_matrix_kernel(const Call& call, const Tensor& matrix) {
  check_dtype(call, matrix);
  RL_CHECK(matrix.dim() == 2, call.op.name(), "(): expected a matrix, but got ", describe(matrix));
  const int64_t k = matrix->sizes[0], n = matrix->sizes[1];
  const Tensor panels = empty_tensor(IntList{cpu::panel_elements(k, n)}, matrix.dtype());
  if (panels.numel() == 0) return panels;  // of however many columns
  cpu::pack_panels(matrix.dtype(), k, n, {matrix.data_ptr(), matrix->strides[0], matrix->strides[1]},
                   panels.data_ptr());
  return panels;
}

Tensor packed_product_kernel(const Call& call, const Tensor& input, const Tensor& panels, int64_t columns,
                             const Tensor& bias, double low, double high) {
  check_dtype(call, input);
  RL_CHECK(input.dim() > 0, call.op.name(), "(): the input has no dimensions");
  const int64_t k = input->sizes[input.dim() - 1];
  RL_CHECK(panels.dtype() == input.dtype() && panels.is_contiguous() && columns >= 0 &&
               panels.numel() == cpu::panel_elements(k, columns),
           call.op.name(), "(): the panels are not of a matrix of ", k, " by ", columns);
  if (bias.defined())
    RL_CHECK(bias.dtype() == input.dtype() && bias.dim() == 1 && bias.numel() == columns, call.op.name(),
             "(): expected ", columns, " terms, but got ", describe(bias));
  const bool rows_apart = input.dim() == 2 && input->strides[1] == 1;
  const Tensor a = rows_apart ? input : ops::contiguous(input, MemoryFormat::Contiguous);
  const Tensor terms = bias.defined() ? ops::contiguous(bias, MemoryFormat::Contiguous) : Tensor();
  Dims sizes = input.sizes().dims();
  sizes.back() = columns;
  const Tensor result = empty_tensor(sizes, input.dtype());
  cpu::packed_product({.dtype = input.dtype(),
                       .m = k ? input.numel() / k : (columns ? result.numel() / columns : 0),
                       .n = columns,
                       .k = k,
                       .a = a.data_ptr(),
                       .a_row = rows_apart ? a->strides[0] : k,
                       .panels = panels.data_ptr(),
                       .bias = terms.defined() ? terms.data_ptr() : nullptr,
                       .low = low,
                       .high = high,
                       .c = result.data_ptr()});
  return result;
}

}  // namespace

int64_t most_packed_rows(int64_t k, int64_t n) { return cpu::most_packed_rows(k, n); }

void register_packed_product_operators(Table& t) {
  t.op(ops::pack_matrix, "_pack_matrix(Tensor matrix) -> Tensor", pack_matrix_kernel)
      .absent_in_pytorch()
      .doc("A matrix in the panels that _packed_product reads; their order is this processor's.")
      .internal()
      .no_meta("it stands in graphs that were captured already")
      .family(Family::Matmul)
      .not_differentiable("it stands in graphs that record no gradients");
  t.op(ops::packed_product,
       "_packed_product(Tensor input, Tensor panels, int columns, Tensor? bias, float low, float high) -> "
       "Tensor",
       packed_product_kernel)
      .absent_in_pytorch()
      .doc("A product by a matrix in panels, with a row that is added and bounds of the results.")
      .internal()
      .no_meta("it stands in graphs that were captured already")
      .family(Family::Matmul)
      .not_differentiable("it stands in graphs that record no gradients");
}

}  // namespace rushlight
