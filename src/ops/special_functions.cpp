// Bessel and Airy functions and orthogonal polynomials, of torch.special.
#include "ops/pointwise_family.h"
#include "ops/register.h"

namespace rushlight {
namespace {

using cpu::Formula;
constexpr const char* kNoRule = "PyTorch offers no derivative either";

struct Function {
  const char* schema;
  Formula formula;
  const char* doc;
};

constexpr Function kFunctions[] = {
    {"special::airy_ai(Tensor x) -> Tensor", Formula::AiryAi, "Airy's function Ai."},
    {"special::bessel_j0(Tensor self) -> Tensor", Formula::BesselJ0,
     "Bessel function of the first kind of order 0."},
    {"special::bessel_j1(Tensor self) -> Tensor", Formula::BesselJ1,
     "Bessel function of the first kind of order 1."},
    {"special::bessel_y0(Tensor self) -> Tensor", Formula::BesselY0,
     "Bessel function of the second kind of order 0."},
    {"special::bessel_y1(Tensor self) -> Tensor", Formula::BesselY1,
     "Bessel function of the second kind of order 1."},
    {"special::modified_bessel_i0(Tensor self) -> Tensor", Formula::I0,
     "Modified Bessel function of the first kind of order 0."},
    {"special::modified_bessel_i1(Tensor self) -> Tensor", Formula::I1,
     "Modified Bessel function of the first kind of order 1."},
    {"special::modified_bessel_k0(Tensor self) -> Tensor", Formula::BesselK0,
     "Modified Bessel function of the second kind of order 0."},
    {"special::modified_bessel_k1(Tensor self) -> Tensor", Formula::BesselK1,
     "Modified Bessel function of the second kind of order 1."},
    {"special::scaled_modified_bessel_k0(Tensor x) -> Tensor", Formula::BesselK0e,
     "exp(x) * modified_bessel_k0(x)."},
    {"special::scaled_modified_bessel_k1(Tensor x) -> Tensor", Formula::BesselK1e,
     "exp(x) * modified_bessel_k1(x)."},
    {"special::spherical_bessel_j0(Tensor x) -> Tensor", Formula::SphericalBesselJ0,
     "Spherical Bessel function of the first kind of order 0: sin(x) / x."},
};

constexpr Function kPolynomials[] = {
    {"special::chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", Formula::ChebyshevT,
     "Chebyshev polynomial of the first kind of degree n at x."},
    {"special::chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", Formula::ChebyshevU,
     "Chebyshev polynomial of the second kind of degree n at x."},
    {"special::chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", Formula::ChebyshevV,
     "Chebyshev polynomial of the third kind of degree n at x."},
    {"special::chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", Formula::ChebyshevW,
     "Chebyshev polynomial of the fourth kind of degree n at x."},
    {"special::shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor", Formula::ShiftedChebyshevT,
     "Chebyshev polynomial of the first kind of degree n at 2 x - 1."},
    {"special::shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor", Formula::ShiftedChebyshevU,
     "Chebyshev polynomial of the second kind of degree n at 2 x - 1."},
    {"special::shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor", Formula::ShiftedChebyshevV,
     "Chebyshev polynomial of the third kind of degree n at 2 x - 1."},
    {"special::shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor", Formula::ShiftedChebyshevW,
     "Chebyshev polynomial of the fourth kind of degree n at 2 x - 1."},
    {"special::hermite_polynomial_h(Tensor x, Tensor n) -> Tensor", Formula::HermiteH,
     "Physicist's Hermite polynomial of degree n at x."},
    {"special::hermite_polynomial_he(Tensor x, Tensor n) -> Tensor", Formula::HermiteHe,
     "Probabilist's Hermite polynomial of degree n at x."},
    {"special::laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor", Formula::LaguerreL,
     "Laguerre polynomial of degree n at x."},
    {"special::legendre_polynomial_p(Tensor x, Tensor n) -> Tensor", Formula::LegendreP,
     "Legendre polynomial of degree n at x."},
};

Fn<Tensor(const Tensor&)> functions[std::size(kFunctions)];
Fn<Tensor(const Tensor&, const Tensor&)> polynomials[std::size(kPolynomials)];

}  // namespace

void register_special_function_operators(Table& t) {
  for (size_t i = 0; i < std::size(kFunctions); ++i) {
    const Function& f = kFunctions[i];
    t.op(functions[i], f.schema, pointwise::unary)
        .family(Family::Pointwise)
        .data(pointwise::make_spec(f.formula, Promote::Float))
        .out()
        .doc(f.doc)
        .not_differentiable(kNoRule);
  }
  for (size_t i = 0; i < std::size(kPolynomials); ++i) {
    const Function& f = kPolynomials[i];
    t.op(polynomials[i], f.schema, pointwise::binary)
        .family(Family::Pointwise)
        .numbers(Numbers::Mixed)
        .data(pointwise::make_spec(f.formula, Promote::Float))
        .out()
        .doc(f.doc)
        .not_differentiable(kNoRule);
  }
}

}  // namespace rushlight
