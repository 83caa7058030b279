// Products of matrices with a dtype for the result.
#include "dispatch/table.h"
#include "ops/copy.h"
#include "ops/matmul.h"

namespace rushlight {
namespace {

using namespace ops;

// Products of half matrices whose sums stay in float32.
Tensor widened(const char* op, const Tensor& t, DType wanted) {
  RL_CHECK(wanted == t.dtype() || (wanted == DType::Float32 && is_reduced_float(t.dtype())), op,
           "(): out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs, got ",
           dtype_name(wanted), " for ", dtype_name(t.dtype()));
  return to_dtype(t, wanted);
}
Tensor mm_dtype_body(const Call&, const Tensor& a, const Tensor& b, DType wanted) {
  return mm(widened("mm", a, wanted), widened("mm", b, wanted));
}
Tensor bmm_dtype_body(const Call&, const Tensor& a, const Tensor& b, DType wanted) {
  return bmm(widened("bmm", a, wanted), widened("bmm", b, wanted));
}
Tensor addmm_dtype_body(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, DType wanted,
                        const Scalar& beta, const Scalar& alpha) {
  return addmm(to_dtype(self, wanted), widened("addmm", a, wanted), widened("addmm", b, wanted), beta, alpha);
}
Tensor baddbmm_dtype_body(const Call&, const Tensor& self, const Tensor& a, const Tensor& b, DType wanted,
                          const Scalar& beta, const Scalar& alpha) {
  return baddbmm(to_dtype(self, wanted), widened("baddbmm", a, wanted), widened("baddbmm", b, wanted), beta,
                 alpha);
}

}  // namespace

void register_matmul_dtype_operators(Table& t) {
  t.composite("mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", mm_dtype_body)
      .out(OutRule::SameType)
      .function_only()
      .doc("mm of half matrices, summed and returned in float32.")
      .autocast(Cast::Half);
  t.composite("bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor", bmm_dtype_body)
      .out(OutRule::SameType)
      .function_only()
      .doc("bmm of half matrices, summed and returned in float32.")
      .autocast(Cast::Half);
  t.composite(
       "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar "
       "alpha=1) -> Tensor",
       addmm_dtype_body)
      .out(OutRule::SameType)
      .function_only()
      .doc("addmm of half matrices, summed and returned in float32.")
      .autocast(Cast::Half)
      .out_apart(kFirst);
  t.composite(
       "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, "
       "Scalar alpha=1) -> Tensor",
       baddbmm_dtype_body)
      .out(OutRule::SameType)
      .function_only()
      .doc("baddbmm of half matrices, summed and returned in float32.")
      .autocast(Cast::Half)
      .out_apart(kFirst);
}

}  // namespace rushlight
