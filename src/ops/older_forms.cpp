// Forms of arithmetic that PyTorch still takes from older programs: the factor before the tensors it scales.
#include "dispatch/table.h"
#include "ops/matmul.h"
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

// Of sums and products of matrices: `x.add_(alpha, other)`, `x.addmm_(beta, alpha, a, b)`, `x.addmm_(beta, a,
// b)`, `addmm(beta, x, alpha, a, b)`.

void warn_positional(const Call& call, const char* tensors, const char* factors) {
  const std::string name = str(call.op.schema.name, call.inplace ? "_" : "");
  if (show_warning)
    show_warning(str("This overload of ", name,
                     " is deprecated: its factors stand before the tensors.\nConsider "
                     "using one of the following signatures instead:\n\t",
                     name, "(", tensors, ", *, ", factors, ")"));
}

template <auto& Op>
Tensor sum_body(const Call& call, const Tensor& self, const Scalar& alpha, const Tensor& other) {
  warn_positional(call, "Tensor other", "Number alpha = 1");
  return Op(self, other, alpha);
}
constexpr const char* kFactors = "Number beta = 1, Number alpha = 1";
template <auto& Op>
Tensor both_body(const Call& call, const Tensor& self, const Scalar& beta, const Scalar& alpha,
                 const Tensor& a, const Tensor& b) {
  warn_positional(call, "Tensor, Tensor", kFactors);
  return Op(self, a, b, beta, alpha);
}
template <auto& Op>
Tensor beta_body(const Call& call, const Tensor& self, const Scalar& beta, const Tensor& a, const Tensor& b) {
  warn_positional(call, "Tensor, Tensor", kFactors);
  return Op(self, a, b, beta, Scalar(1));
}

const char* const kDoc = "The form of older programs: the factor stands before the tensors.";

// As functions: each factor before what it scales.
template <auto& Op>
Tensor around_body(const Call& call, const Scalar& beta, const Tensor& self, const Scalar& alpha,
                   const Tensor& a, const Tensor& b) {
  return both_body<Op>(call, self, beta, alpha, a, b);
}
template <auto& Op>
Tensor before_body(const Call& call, const Scalar& beta, const Tensor& self, const Tensor& a,
                   const Tensor& b) {
  return beta_body<Op>(call, self, beta, a, b);
}

struct ProductForms {
  const char *factors_first, *beta_first;    // methods
  const char *factors_around, *beta_before;  // functions
};
// `declare` gives each form the traits that the operator has; `apart` are operands of the functions.
template <auto& Op>
void register_products(Table& t, const ProductForms& forms, void (*declare)(OpBuilder),
                       uint64_t apart = kSecond) {
  declare(t.composite(forms.factors_first, both_body<Op>).inplace().doc(kDoc).spelling(Spelling::Deprecated));
  declare(t.composite(forms.beta_first, beta_body<Op>).inplace().doc(kDoc).spelling(Spelling::Deprecated));
  declare(t.composite(forms.factors_around, around_body<Op>)
              .out()
              .out_apart(apart)
              .function_only()
              .doc(kDoc)
              .spelling(Spelling::Deprecated));
  declare(t.composite(forms.beta_before, before_body<Op>)
              .out()
              .out_apart(apart)
              .function_only()
              .doc(kDoc)
              .spelling(Spelling::Deprecated));
}

void cast_to_half(OpBuilder r) { r.autocast(Cast::Half); }
void cast_to_half_in_one_node(OpBuilder r) { r.autocast(Cast::Half).one_node(); }
void cast_on_cuda_in_one_node(OpBuilder r) { r.autocast(Cast::None, Cast::Half).one_node(); }

}  // namespace

void register_older_forms(Table& t) {
  t.composite("add.alpha_first(Tensor self, Scalar alpha, Tensor other) -> Tensor", sum_body<add>)
      .inplace()
      .doc(kDoc)
      .spelling(Spelling::Deprecated)
      .numbers(Numbers::All)
      .elementwise();
  t.composite("sub.alpha_first(Tensor self, Scalar alpha, Tensor other) -> Tensor", sum_body<sub>)
      .inplace()
      .doc(kDoc)
      .spelling(Spelling::Deprecated)
      .numbers(Numbers::All)
      .elementwise();
  register_products<addmm>(
      t,
      {"addmm.factors_first(Tensor self, Scalar beta, Scalar alpha, Tensor mat1, Tensor mat2) -> Tensor",
       "addmm.beta_first(Tensor self, Scalar beta, Tensor mat1, Tensor mat2) -> Tensor",
       "addmm.factors_around(Scalar beta, Tensor self, Scalar alpha, Tensor mat1, Tensor mat2) -> Tensor",
       "addmm.beta_before(Scalar beta, Tensor self, Tensor mat1, Tensor mat2) -> Tensor"},
      cast_to_half);
  register_products<addmv>(
      t,
      {"addmv.factors_first(Tensor self, Scalar beta, Scalar alpha, Tensor mat, Tensor vec) -> Tensor",
       "addmv.beta_first(Tensor self, Scalar beta, Tensor mat, Tensor vec) -> Tensor",
       "addmv.factors_around(Scalar beta, Tensor self, Scalar alpha, Tensor mat, Tensor vec) -> Tensor",
       "addmv.beta_before(Scalar beta, Tensor self, Tensor mat, Tensor vec) -> Tensor"},
      cast_on_cuda_in_one_node);
  register_products<addr>(
      t,
      {"addr.factors_first(Tensor self, Scalar beta, Scalar alpha, Tensor vec1, Tensor vec2) -> Tensor",
       "addr.beta_first(Tensor self, Scalar beta, Tensor vec1, Tensor vec2) -> Tensor",
       "addr.factors_around(Scalar beta, Tensor self, Scalar alpha, Tensor vec1, Tensor vec2) -> Tensor",
       "addr.beta_before(Scalar beta, Tensor self, Tensor vec1, Tensor vec2) -> Tensor"},
      cast_on_cuda_in_one_node, kAllOperands);
  register_products<addbmm>(
      t,
      {"addbmm.factors_first(Tensor self, Scalar beta, Scalar alpha, Tensor batch1, Tensor batch2) -> Tensor",
       "addbmm.beta_first(Tensor self, Scalar beta, Tensor batch1, Tensor batch2) -> Tensor",
       "addbmm.factors_around(Scalar beta, Tensor self, Scalar alpha, Tensor batch1, Tensor batch2) -> "
       "Tensor",
       "addbmm.beta_before(Scalar beta, Tensor self, Tensor batch1, Tensor batch2) -> Tensor"},
      cast_to_half_in_one_node);
  register_products<baddbmm>(
      t,
      {"baddbmm.factors_first(Tensor self, Scalar beta, Scalar alpha, Tensor batch1, Tensor batch2) -> "
       "Tensor",
       "baddbmm.beta_first(Tensor self, Scalar beta, Tensor batch1, Tensor batch2) -> Tensor",
       "baddbmm.factors_around(Scalar beta, Tensor self, Scalar alpha, Tensor batch1, Tensor batch2) -> "
       "Tensor",
       "baddbmm.beta_before(Scalar beta, Tensor self, Tensor batch1, Tensor batch2) -> Tensor"},
      cast_to_half);
  t.composite("addcmul.value_first(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
              addcmul_body)
      .inplace()
      .doc(kDoc)
      .spelling(Spelling::Deprecated)
      .autocast(Cast::None, Cast::Widest)
      .elementwise();
  t.composite("addcdiv.value_first(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
              addcdiv_body)
      .inplace()
      .doc(kDoc)
      .spelling(Spelling::Deprecated)
      .autocast(Cast::None, Cast::Widest)
      .elementwise();
}

}  // namespace rushlight
