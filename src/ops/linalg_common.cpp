#include "ops/linalg_common.h"

#include "dispatch/cpu_fallback.h"

namespace rushlight::linalg {

using namespace ops;

void check_floating(std::string_view who, const Tensor& a, bool low_precision) {
  RL_CHECK(is_differentiable(a.dtype()), who, ": Expected a floating point or complex tensor as input. Got ",
           legacy_name(a.dtype()));
  RL_CHECK(low_precision || element_size(real_dtype(a.dtype())) >= 4, who,
           ": Low precision dtypes not supported. Got ", legacy_name(a.dtype()));
}
void check_lapack_type(std::string_view who, const Tensor& a, RefusedBy by) {
  if (by != RefusedBy::Kernel) check_floating(who, a, by == RefusedBy::KernelIfHalf);
  if (!is_differentiable(a.dtype()) || element_size(real_dtype(a.dtype())) < 4)
    RL_NOT_IMPLEMENTED("\"", who, "\" not implemented for '", legacy_name(a.dtype()),
                       "': it computes in float32, float64, complex64 and complex128");
}
void check_matrix(std::string_view who, const Tensor& a, std::string_view name) {
  RL_CHECK(a.dim() >= 2, who, ": The input tensor ", name, " must have at least 2 dimensions.");
}
void check_square(std::string_view who, const Tensor& a, RefusedBy by, std::string_view name) {
  check_matrix(who, a, name);
  RL_CHECK(a.size(-1) == a.size(-2), who, ": ", name, " must be batches of square matrices, but they are ",
           a.size(-2), " by ", a.size(-1), " matrices");
  check_lapack_type(who, a, by);
}
void check_same_type(std::string_view who, const Tensor& a, const Tensor& b) {
  RL_CHECK(a.dtype() == b.dtype(), who, ": Expected A and B to have the same dtype, but found A of type ",
           legacy_name(a.dtype()), " and B of type ", legacy_name(b.dtype()), " instead");
}
void check_solve_shapes(std::string_view who, const Tensor& a, const Tensor& b, bool left, RefusedBy by) {
  check_square(who, a, by);
  check_matrix(who, b, "B");
  RL_CHECK(a.size(-1) == b.size(left ? -2 : -1), who, ": Incompatible shapes of A and B for the equation ",
           left ? "AX = B" : "XA = B", " (", a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x",
           b.size(-1), ")");
}

void check_info(std::string_view who, const Tensor& info) {
  Tensor values = info;  // of all examples, where a function transform hides them
  while (values->wrapping) values = Tensor(wrapping_hooks.inner(*values.impl()));
  linalg_check_errors(values, who, values.dim() == 0);
}

static void check_errors_kernel(const Call&, const Tensor& info, std::string_view who, bool) {
  RL_CHECK(info.dtype() == DType::Int32, "_linalg_check_errors: expected info of dtype int32, but got ",
           info.dtype());
  if (info.device().is_meta() || !info.has_data()) return;  // while a program is traced
  Tensor values = contiguous(info);
  if (!values.is_cpu()) {  // waits for the device
    const Tensor here = empty_tensor(values.sizes(), DType::Int32);
    copy_result(here, values, false);
    values = here;
  }
  const int32_t* first = values.data<int32_t>();
  const int32_t* bad = std::find_if(first, first + values.numel(), [](int32_t i) { return i != 0; });
  if (bad == first + values.numel()) return;
  const std::string where =
      values.dim() > 0 ? str(who, ": (Batch element ", bad - first, "): ") : str(who, ": ");
  auto concerns = [&](std::string_view word) { return who.find(word) != who.npos; };
  RL_CHECK_AS(Linalg, *bad > 0, where,
              "The algorithm failed to converge because the input matrix contained non-finite values.");
  if (concerns("inv"))
    RL_FAIL_AS(Linalg, where, "The diagonal element ", *bad,
               " is zero, the inversion could not be completed because the input matrix is singular.");
  if (concerns("solve")) RL_FAIL_AS(Linalg, where, "The solver failed because the input matrix is singular.");
  if (concerns("cholesky"))
    RL_FAIL_AS(
        Linalg, where,
        "The factorization could not be completed because the input is not positive-definite (the leading "
        "minor of order ",
        *bad, " is not positive-definite).");
  if (concerns("lu_factor"))
    RL_FAIL_AS(
        Runtime, where, "U[", *bad, ",", *bad,
        "] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)");
  if (concerns("lstsq"))
    RL_FAIL_AS(
        Linalg, where,
        "The least squares solution could not be computed because the input matrix does not have full rank "
        "(error code: ",
        *bad, ").");
  if (concerns("ldl"))
    RL_FAIL_AS(
        Linalg, where, "D[", *bad, ",", *bad,
        "] is zero, and using it in linalg.ldl_solve would divide by zero; the input matrix is singular.");
  RL_FAIL_AS(Linalg, where,
             "The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
             "repeated ",
             concerns("svd") ? "singular values" : "eigenvalues", " (error code: ", *bad, ").");
}

void register_linalg_checks(Table& t) {
  t.op(linalg_check_errors, "_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
       check_errors_kernel)
      .doc("Raises LinAlgError that names the first example whose `info`, of LAPACK, is not 0.")
      .family(Family::LinearAlgebra)
      .on_devices()
      .not_differentiable("it checks a status")
      .function_only();
}

Dims with(IntList batch, std::initializer_list<int64_t> sizes) {
  Dims result = batch.dims();
  for (int64_t s : sizes) result.push_back(s);
  return result;
}
Tensor uninitialized(IntList sizes, DType dtype, const Tensor& like) {
  return empty_tensor(sizes, dtype, like.device());
}

Tensor by_columns(IntList batch, int64_t rows, int64_t columns, const Tensor& like) {
  const Dims sizes = with(batch, {rows, columns});
  Dims strides = contiguous_strides(with(batch, {columns, rows}));
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return empty_strided_tensor(sizes, strides, like.dtype(), like.device());
}
Tensor by_columns(const Tensor& a) {
  Tensor copy = by_columns(batch_of(a), a.size(-2), a.size(-1), a);
  copy_result(copy, a, false);
  return copy;
}
Tensor readable_by_columns(const Tensor& t) { return transposed(t).is_contiguous() ? t : by_columns(t); }
Tensor new_info(IntList batch, const Tensor& like) {
  return zeros(batch, DType::Int32, std::nullopt, like.device(), std::nullopt);
}

Results computed_on_cpu(const Call& call, std::initializer_list<Value> arguments, Device device) {
  Results results;
  run_on_cpu(call.op, arguments.begin(), results, device);
  return results;
}

Dims common_batch(const Tensor& a, const Tensor& b) { return broadcast_shapes(batch_of(a), batch_of(b)); }
Tensor stretched(const Tensor& t, IntList batch) {
  return batch_of(t) == batch ? t : expand(t, with(batch, {t.size(-2), t.size(-1)}), false);
}
Tensor identity(int64_t n, DType dtype, const Tensor& like) {
  return eye(n, n, dtype, std::nullopt, like.device(), std::nullopt);
}
void fill_identity(const Tensor& t) {
  const Tensor one = eye(t.size(-2), t.size(-1), t.dtype(), std::nullopt, t.device(), std::nullopt);
  copy_result(t, expand(one, t.sizes(), false), false);
}

}  // namespace rushlight::linalg
