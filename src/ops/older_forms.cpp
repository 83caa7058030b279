// Forms of arithmetic that PyTorch still takes from older programs: the factor before the tensors it scales.
#include "dispatch/table.h"
#include "ops/operators.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using namespace ops;

void warn_older(const char* name) {
  if (show_warning)
    show_warning(str("This overload of ", name, " is deprecated:\n\t", name,
                     "(Tensor input, Number value, Tensor tensor1, Tensor tensor2, *, Tensor out = None)\n"
                     "Consider using one of the following signatures instead:\n\t",
                     name, "(Tensor input, Tensor tensor1, Tensor tensor2, *, Number value = 1)"));
}

Tensor addcmul_body(const Call&, const Tensor& self, const Scalar& value, const Tensor& a, const Tensor& b) {
  warn_older("addcmul");
  return addcmul(self, a, b, value);
}
Tensor addcdiv_body(const Call&, const Tensor& self, const Scalar& value, const Tensor& a, const Tensor& b) {
  warn_older("addcdiv");
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
