// Printed from the operator table by `python tools/print_operators.py`; do not edit.
// clang-format off

#include "frontend/call.h"
#include "rushlight/printed/functions.h"

namespace rushlight::special {

using namespace frontend;

Tensor xlog1py(const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::xlog1py"); const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor& xlog1py_(Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::xlog1py"); const Value boxed[] = {Value(self), Value(other)}; return call_inplace(op, boxed, self); }
Tensor& xlog1py_out(Tensor& out, const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::xlog1py"); const Value boxed[] = {Value(self), Value(other)}; return call_out(op, boxed, out); }
Tensor gammainc(const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammainc"); const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor& gammainc_(Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammainc"); const Value boxed[] = {Value(self), Value(other)}; return call_inplace(op, boxed, self); }
Tensor& gammainc_out(Tensor& out, const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammainc"); const Value boxed[] = {Value(self), Value(other)}; return call_out(op, boxed, out); }
Tensor gammaincc(const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammaincc"); const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor& gammaincc_(Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammaincc"); const Value boxed[] = {Value(self), Value(other)}; return call_inplace(op, boxed, self); }
Tensor& gammaincc_out(Tensor& out, const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::gammaincc"); const Value boxed[] = {Value(self), Value(other)}; return call_out(op, boxed, out); }
Tensor zeta(const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::zeta"); const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor& zeta_(Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::zeta"); const Value boxed[] = {Value(self), Value(other)}; return call_inplace(op, boxed, self); }
Tensor& zeta_out(Tensor& out, const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::zeta"); const Value boxed[] = {Value(self), Value(other)}; return call_out(op, boxed, out); }
Tensor erfcx(const Tensor& self) { static const Op& op = find_operator("special::erfcx"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& erfcx_(Tensor& self) { static const Op& op = find_operator("special::erfcx"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& erfcx_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::erfcx"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor ndtri(const Tensor& self) { static const Op& op = find_operator("special::ndtri"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& ndtri_(Tensor& self) { static const Op& op = find_operator("special::ndtri"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& ndtri_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::ndtri"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor log_ndtr(const Tensor& self) { static const Op& op = find_operator("special::log_ndtr"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& log_ndtr_(Tensor& self) { static const Op& op = find_operator("special::log_ndtr"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& log_ndtr_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::log_ndtr"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor ndtr(const Tensor& self) { static const Op& op = find_operator("special::ndtr"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& ndtr_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::ndtr"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor i0e(const Tensor& self) { static const Op& op = find_operator("special::i0e"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& i0e_(Tensor& self) { static const Op& op = find_operator("special::i0e"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& i0e_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::i0e"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor i1(const Tensor& self) { static const Op& op = find_operator("special::i1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& i1_(Tensor& self) { static const Op& op = find_operator("special::i1"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& i1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::i1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor i1e(const Tensor& self) { static const Op& op = find_operator("special::i1e"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& i1e_(Tensor& self) { static const Op& op = find_operator("special::i1e"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& i1e_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::i1e"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor entr(const Tensor& self) { static const Op& op = find_operator("special::entr"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& entr_(Tensor& self) { static const Op& op = find_operator("special::entr"); const Value boxed[] = {Value(self)}; return call_inplace(op, boxed, self); }
Tensor& entr_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::entr"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor exp2(const Tensor& self) { static const Op& op = find_operator("special::exp2"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& exp2_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::exp2"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor expm1(const Tensor& self) { static const Op& op = find_operator("special::expm1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& expm1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::expm1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor log1p(const Tensor& self) { static const Op& op = find_operator("special::log1p"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& log1p_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::log1p"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor erf(const Tensor& self) { static const Op& op = find_operator("special::erf"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& erf_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::erf"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor erfc(const Tensor& self) { static const Op& op = find_operator("special::erfc"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& erfc_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::erfc"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor erfinv(const Tensor& self) { static const Op& op = find_operator("special::erfinv"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& erfinv_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::erfinv"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor gammaln(const Tensor& self) { static const Op& op = find_operator("special::gammaln"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& gammaln_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::gammaln"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor digamma(const Tensor& self) { static const Op& op = find_operator("special::digamma"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& digamma_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::digamma"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor psi(const Tensor& self) { static const Op& op = find_operator("special::psi"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& psi_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::psi"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor polygamma(int64_t n, const Tensor& self) { static const Op& op = find_operator("special::polygamma"); const Value boxed[] = {Value(n), Value(self)}; return call<Tensor>(op, boxed); }
Tensor& polygamma_out(Tensor& out, int64_t n, const Tensor& self) { static const Op& op = find_operator("special::polygamma"); const Value boxed[] = {Value(n), Value(self)}; return call_out(op, boxed, out); }
Tensor multigammaln(const Tensor& self, int64_t p) { static const Op& op = find_operator("special::multigammaln"); const Value boxed[] = {Value(self), Value(p)}; return call<Tensor>(op, boxed); }
Tensor& multigammaln_out(Tensor& out, const Tensor& self, int64_t p) { static const Op& op = find_operator("special::multigammaln"); const Value boxed[] = {Value(self), Value(p)}; return call_out(op, boxed, out); }
Tensor i0(const Tensor& self) { static const Op& op = find_operator("special::i0"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& i0_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::i0"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor sinc(const Tensor& self) { static const Op& op = find_operator("special::sinc"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& sinc_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::sinc"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor logit(const Tensor& self, std::optional<double> eps) { static const Op& op = find_operator("special::logit"); const Value boxed[] = {Value(self), Value(eps)}; return call<Tensor>(op, boxed); }
Tensor& logit_out(Tensor& out, const Tensor& self, std::optional<double> eps) { static const Op& op = find_operator("special::logit"); const Value boxed[] = {Value(self), Value(eps)}; return call_out(op, boxed, out); }
Tensor xlogy(const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::xlogy"); const Value boxed[] = {Value(self), Value(other)}; return call<Tensor>(op, boxed); }
Tensor& xlogy_out(Tensor& out, const Tensor& self, const Tensor& other) { static const Op& op = find_operator("special::xlogy"); const Value boxed[] = {Value(self), Value(other)}; return call_out(op, boxed, out); }
Tensor round(const Tensor& self, int64_t decimals) { static const Op& op = find_operator("special::round"); const Value boxed[] = {Value(self), Value(decimals)}; return call<Tensor>(op, boxed); }
Tensor& round_out(Tensor& out, const Tensor& self, int64_t decimals) { static const Op& op = find_operator("special::round"); const Value boxed[] = {Value(self), Value(decimals)}; return call_out(op, boxed, out); }
Tensor airy_ai(const Tensor& x) { static const Op& op = find_operator("special::airy_ai"); const Value boxed[] = {Value(x)}; return call<Tensor>(op, boxed); }
Tensor& airy_ai_out(Tensor& out, const Tensor& x) { static const Op& op = find_operator("special::airy_ai"); const Value boxed[] = {Value(x)}; return call_out(op, boxed, out); }
Tensor bessel_j0(const Tensor& self) { static const Op& op = find_operator("special::bessel_j0"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& bessel_j0_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::bessel_j0"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor bessel_j1(const Tensor& self) { static const Op& op = find_operator("special::bessel_j1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& bessel_j1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::bessel_j1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor bessel_y0(const Tensor& self) { static const Op& op = find_operator("special::bessel_y0"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& bessel_y0_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::bessel_y0"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor bessel_y1(const Tensor& self) { static const Op& op = find_operator("special::bessel_y1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& bessel_y1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::bessel_y1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor modified_bessel_i0(const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_i0"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& modified_bessel_i0_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_i0"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor modified_bessel_i1(const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_i1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& modified_bessel_i1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_i1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor modified_bessel_k0(const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_k0"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& modified_bessel_k0_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_k0"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor modified_bessel_k1(const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_k1"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& modified_bessel_k1_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::modified_bessel_k1"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor scaled_modified_bessel_k0(const Tensor& x) { static const Op& op = find_operator("special::scaled_modified_bessel_k0"); const Value boxed[] = {Value(x)}; return call<Tensor>(op, boxed); }
Tensor& scaled_modified_bessel_k0_out(Tensor& out, const Tensor& x) { static const Op& op = find_operator("special::scaled_modified_bessel_k0"); const Value boxed[] = {Value(x)}; return call_out(op, boxed, out); }
Tensor scaled_modified_bessel_k1(const Tensor& x) { static const Op& op = find_operator("special::scaled_modified_bessel_k1"); const Value boxed[] = {Value(x)}; return call<Tensor>(op, boxed); }
Tensor& scaled_modified_bessel_k1_out(Tensor& out, const Tensor& x) { static const Op& op = find_operator("special::scaled_modified_bessel_k1"); const Value boxed[] = {Value(x)}; return call_out(op, boxed, out); }
Tensor spherical_bessel_j0(const Tensor& x) { static const Op& op = find_operator("special::spherical_bessel_j0"); const Value boxed[] = {Value(x)}; return call<Tensor>(op, boxed); }
Tensor& spherical_bessel_j0_out(Tensor& out, const Tensor& x) { static const Op& op = find_operator("special::spherical_bessel_j0"); const Value boxed[] = {Value(x)}; return call_out(op, boxed, out); }
Tensor chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_t"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_t"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_u"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_u"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_v"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_v"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_w"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::chebyshev_polynomial_w"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor shifted_chebyshev_polynomial_t(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_t"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& shifted_chebyshev_polynomial_t_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_t"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor shifted_chebyshev_polynomial_u(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_u"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& shifted_chebyshev_polynomial_u_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_u"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor shifted_chebyshev_polynomial_v(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_v"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& shifted_chebyshev_polynomial_v_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_v"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor shifted_chebyshev_polynomial_w(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_w"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& shifted_chebyshev_polynomial_w_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::shifted_chebyshev_polynomial_w"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor hermite_polynomial_h(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::hermite_polynomial_h"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& hermite_polynomial_h_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::hermite_polynomial_h"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor hermite_polynomial_he(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::hermite_polynomial_he"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& hermite_polynomial_he_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::hermite_polynomial_he"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor laguerre_polynomial_l(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::laguerre_polynomial_l"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& laguerre_polynomial_l_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::laguerre_polynomial_l"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor legendre_polynomial_p(const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::legendre_polynomial_p"); const Value boxed[] = {Value(x), Value(n)}; return call<Tensor>(op, boxed); }
Tensor& legendre_polynomial_p_out(Tensor& out, const Tensor& x, const Tensor& n) { static const Op& op = find_operator("special::legendre_polynomial_p"); const Value boxed[] = {Value(x), Value(n)}; return call_out(op, boxed, out); }
Tensor expit(const Tensor& self) { static const Op& op = find_operator("special::expit"); const Value boxed[] = {Value(self)}; return call<Tensor>(op, boxed); }
Tensor& expit_out(Tensor& out, const Tensor& self) { static const Op& op = find_operator("special::expit"); const Value boxed[] = {Value(self)}; return call_out(op, boxed, out); }
Tensor logsumexp(const Tensor& self, IntArrayRef dim, bool keepdim) { static const Op& op = find_operator("special::logsumexp"); const Value boxed[] = {Value(self), Value(dim), Value(keepdim)}; return call<Tensor>(op, boxed); }
Tensor& logsumexp_out(Tensor& out, const Tensor& self, IntArrayRef dim, bool keepdim) { static const Op& op = find_operator("special::logsumexp"); const Value boxed[] = {Value(self), Value(dim), Value(keepdim)}; return call_out(op, boxed, out); }
Tensor softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) { static const Op& op = find_operator("special::softmax"); const Value boxed[] = {Value(self), Value(dim), Value(dtype)}; return call<Tensor>(op, boxed); }
Tensor log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) { static const Op& op = find_operator("special::log_softmax"); const Value boxed[] = {Value(self), Value(dim), Value(dtype)}; return call<Tensor>(op, boxed); }

}  // namespace rushlight::special
