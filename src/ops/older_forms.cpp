// Forms of arithmetic that PyTorch still takes from older programs: the factor before the tensors it scales.
#include "dispatch/table.h"
#include "ops/operators.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using namespace ops;

Tensor addcmul_body(const Call&, const Tensor& self, const Scalar& value, const Tensor& a, const Tensor& b) {
  return addcmul(self, a, b, value);
}
Tensor addcdiv_body(const Call&, const Tensor& self, const Scalar& value, const Tensor& a, const Tensor& b) {
  return addcdiv(self, a, b, value);
}

}  // namespace

void register_older_forms(Table& t) {
  const char* doc = "The form of older programs: the factor stands before the tensors.";
  t.composite("addcmul.value_first(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
              addcmul_body)
      .inplace()
      .doc(doc);
  t.composite("addcdiv.value_first(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
              addcdiv_body)
      .inplace()
      .doc(doc);
}

}  // namespace rushlight
