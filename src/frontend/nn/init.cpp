#include "rushlight/nn/init.h"

#include <cmath>

#include "rushlight/autograd.h"

namespace rushlight::nn::init {

double calculate_gain(Mode nonlinearity, double param) {
  if (nonlinearity == kTanh) return 5.0 / 3.0;
  if (nonlinearity == kReLU) return std::sqrt(2.0);
  if (nonlinearity == kLeakyReLU) return std::sqrt(2.0 / (1 + param * param));
  return 1.0;
}

Tensor constant_(Tensor t, Scalar value) {
  NoGradGuard no_grad;
  return t.fill_(value);
}
Tensor zeros_(Tensor t) { return constant_(std::move(t), 0); }
Tensor ones_(Tensor t) { return constant_(std::move(t), 1); }
Tensor eye_(Tensor matrix) {
  NoGradGuard no_grad;
  RL_CHECK(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  return matrix.copy_(eye(matrix.size(0), matrix.size(1), matrix.options()));
}
Tensor dirac_(Tensor t) {
  NoGradGuard no_grad;
  RL_CHECK(t.dim() >= 3 && t.dim() <= 5, "Only tensors with 3, 4, or 5 dimensions are supported");
  t.zero_();
  for (int64_t d = 0; d < std::min(t.size(0), t.size(1)); ++d) {
    Tensor at = t[d][d];
    while (at.dim() > 0) at = at[at.size(0) / 2];
    at.fill_(1);
  }
  return t;
}
Tensor normal_(Tensor t, double mean, double std) {
  NoGradGuard no_grad;
  return t.normal_(mean, std);
}
Tensor uniform_(Tensor t, double low, double high) {
  NoGradGuard no_grad;
  return t.uniform_(low, high);
}
Tensor trunc_normal_(Tensor t, double mean, double std, double low, double high) {
  NoGradGuard no_grad;
  // By the inverse of the distribution function, between its values at both ends.
  auto below = [&](double x) { return (1 + std::erf((x - mean) / (std * std::sqrt(2.0)))) / 2; };
  t.uniform_(2 * below(low) - 1, 2 * below(high) - 1);
  t.erfinv_();
  t.mul_(std * std::sqrt(2.0));
  t.add_(mean);
  return t.clamp_(low, high);
}
Tensor orthogonal_(Tensor t, double gain) {
  NoGradGuard no_grad;
  RL_CHECK(t.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  const int64_t rows = t.size(0), columns = t.numel() / std::max<int64_t>(1, rows);
  if (t.numel() == 0) return t;
  Tensor flat = t.new_empty({rows, columns}).normal_(0, 1);
  if (rows < columns) flat = flat.t();
  auto [q, r] = linalg::qr(flat);
  q = q * r.diag().sign();
  if (rows < columns) q = q.t();
  t.view_as(q).copy_(q);
  return t.mul_(gain);
}
Tensor sparse_(Tensor t, double sparsity, double std) {
  NoGradGuard no_grad;
  RL_CHECK(t.dim() == 2, "Only tensors with 2 dimensions are supported");
  const auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(t.size(0))));
  t.normal_(0, std);
  for (int64_t column = 0; column < t.size(1); ++column) {
    const Tensor rows = randperm(t.size(0), kLong).narrow(0, 0, zeros);
    t.select(1, column).index_fill_(0, rows, 0);
  }
  return t;
}

std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& t) {
  RL_CHECK(t.dim() >= 2, "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  const int64_t field = t.dim() > 2 ? t[0][0].numel() : 1;
  return {t.size(1) * field, t.size(0) * field};
}
static double kaiming_std(const Tensor& t, double a, Mode mode, Mode nonlinearity) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(t);
  return calculate_gain(nonlinearity, a) / std::sqrt(static_cast<double>(mode == kFanIn ? in : out));
}
Tensor kaiming_normal_(Tensor t, double a, Mode mode, Mode nonlinearity) {
  return init::normal_(t, 0, kaiming_std(t, a, mode, nonlinearity));
}
Tensor kaiming_uniform_(Tensor t, double a, Mode mode, Mode nonlinearity) {
  const double bound = std::sqrt(3.0) * kaiming_std(t, a, mode, nonlinearity);
  return init::uniform_(t, -bound, bound);
}
static double xavier_std(const Tensor& t, double gain) {
  const auto [in, out] = _calculate_fan_in_and_fan_out(t);
  return gain * std::sqrt(2.0 / static_cast<double>(in + out));
}
Tensor xavier_normal_(Tensor t, double gain) { return init::normal_(t, 0, xavier_std(t, gain)); }
Tensor xavier_uniform_(Tensor t, double gain) {
  const double bound = std::sqrt(3.0) * xavier_std(t, gain);
  return init::uniform_(t, -bound, bound);
}

void detail::default_weights(Tensor& weight, Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const auto [in, out] = _calculate_fan_in_and_fan_out(weight);
  const double bound = in > 0 ? 1 / std::sqrt(static_cast<double>(in)) : 0;
  init::uniform_(bias, -bound, bound);
}

}  // namespace rushlight::nn::init
