// Samples from distributions given by tensors.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/comparison.h"
#include "ops/copy.h"
#include "ops/device_positions.h"
#include "ops/factory.h"
#include "ops/operators.h"
#include "ops/pointwise.h"
#include "ops/random.h"
#include "ops/random_common.h"
#include "ops/reduction.h"
#include "ops/register.h"
#include "ops/scan.h"
#include "ops/sort.h"
#include "ops/view.h"

namespace rushlight {

namespace {

using namespace ops;

// `parameter` in the shape of `self` and in the order in which write_random walks it, contiguous.
Tensor aligned(const Tensor& parameter, const Tensor& self) {
  GradMode off(false);
  const Tensor expanded = expand(parameter, self.sizes());
  if (self.is_contiguous()) return contiguous(expanded);
  Dims order;
  in_memory_order(self, &order);
  return contiguous(permute(expanded, order));
}

// On devices; false on the CPU.
bool draw_by_probability(const Tensor& self, const Tensor& values, Generator* generator) {
  return draw_on_device(self, generator, [&](const Tensor& target, Generator& g) {
    return loops::moves_on(target).bernoulli(target, values, g);
  });
}

Tensor bernoulli_tensor_kernel(const Call&, const Tensor& self, const Tensor& p, OptGenerator generator) {
  const Tensor values = aligned(p, self);
  if (draw_by_probability(self, values, generator)) return self;
  const bool half = p.dtype() == DType::Float16 || p.dtype() == DType::BFloat16;
  const Tensor limits = half ? to_dtype(values, DType::Float32) : values;
  write_random(self, [&](cpu::RandomOut out) {
    cpu::fill_bernoulli(out, limits.dtype(), limits.data_ptr(), generator_or_default(generator));
  });
  return self;
}

Tensor bernoulli_kernel(const Call& call, const Tensor& self, OptGenerator generator) {
  const DType dtype = call.out ? call.out->dtype() : self.dtype();
  return bernoulli_tensor_kernel(call, call.output(self.sizes(), dtype, self.device()), self, generator);
}

Tensor bernoulli_p_kernel(const Call&, const Tensor& self, double p, OptGenerator generator) {
  RL_CHECK(0 <= p && p <= 1, "bernoulli expects p to be in [0, 1], but got p=", p);
  const Tensor result = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (draw_on_device(DeviceKernels::Random::Bernoulli, result, p, 0, 0, generator)) return result;
  write_random(result,
               [&](cpu::RandomOut out) { cpu::fill_bernoulli(out, p, generator_or_default(generator)); });
  return result;
}

// standard normal * std + mean, into a fresh tensor.
template <class Std, class Mean>
Tensor shifted_normal(IntList sizes, DType dtype, Device device, const Std& std, const Mean& mean,
                      OptGenerator generator) {
  GradMode off(false);
  const Tensor result = empty_tensor(sizes, dtype, device);
  normal_(result, 0, 1, generator);
  mul.inplace(result, std);
  add.inplace(result, mean);
  return result;
}

void check_std(const Tensor& std) {
  RL_CHECK(!is_complex(std.dtype()), "normal expects standard deviation to be non-complex");
  GradMode off(false);
  if (!std.is_cpu()) return;
  const Tensor values = contiguous(to_dtype(std, DType::Float64));
  const double* v = values.data<double>();
  RL_CHECK(std::all_of(v, v + values.numel(), [](double x) { return !(x < 0); }),
           "normal expects all elements of std >= 0.0");
}

Tensor normal_mean_kernel(const Call&, const Tensor& mean, double std, OptGenerator generator) {
  RL_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
  return shifted_normal(mean.sizes(), mean.dtype(), mean.device(), wrapped_number(std), mean, generator);
}

Tensor normal_std_kernel(const Call&, double mean, const Tensor& std, OptGenerator generator) {
  check_std(std);
  return shifted_normal(std.sizes(), std.dtype(), std.device(), std, wrapped_number(mean), generator);
}

Tensor normal_kernel(const Call&, const Tensor& mean, const Tensor& std, OptGenerator generator) {
  check_std(std);
  return shifted_normal(broadcast_shapes(mean.sizes(), std.sizes()), mean.dtype(), mean.device(), std, mean,
                        generator);
}

template <class Draw>
Tensor sample_each(const Tensor& self, Draw draw) {
  const Tensor result = empty_tensor(self.sizes(), self.dtype(), self.device());
  if (!self.is_cpu()) return result;
  const Tensor parameter = aligned(self, result);
  write_random(result, [&](cpu::RandomOut out) { draw(out, parameter.data_ptr()); });
  return result;
}

Tensor poisson_kernel(const Call&, const Tensor& self, OptGenerator generator) {
  return sample_each(self, [&](cpu::RandomOut out, const void* rate) {
    cpu::draw_poisson(out, rate, generator_or_default(generator));
  });
}

Tensor standard_gamma_kernel(const Call&, const Tensor& self, OptGenerator generator) {
  return sample_each(self, [&](cpu::RandomOut out, const void* alpha) {
    cpu::draw_gamma(out, alpha, generator_or_default(generator));
  });
}

Tensor binomial_kernel(const Call&, const Tensor& count, const Tensor& prob, OptGenerator generator) {
  RL_CHECK_VALUE(is_floating(count.dtype()),
                 "binomial only supports floating-point dtypes for count, got: ", legacy_name(count.dtype()));
  RL_CHECK_VALUE(is_floating(prob.dtype()),
                 "binomial only supports floating-point dtypes for prob, got: ", legacy_name(prob.dtype()));
  RL_CHECK(count.dtype() == prob.dtype(), "Found dtype ", legacy_name(prob.dtype()), " but expected ",
           legacy_name(count.dtype()));
  const Tensor result =
      empty_tensor(broadcast_shapes(count.sizes(), prob.sizes()), count.dtype(), count.device());
  if (!count.is_cpu()) return result;
  const Tensor n = aligned(count, result), p = aligned(prob, result);
  write_random(result, [&](cpu::RandomOut out) {
    cpu::draw_binomial(out, n.data_ptr(), p.data_ptr(), generator_or_default(generator));
  });
  return result;
}

// --- multinomial

template <class T>
void check_weights(const T* weights, int64_t rows, int64_t categories) {
  for (int64_t i = 0; i < rows * categories; ++i) {
    const auto w = static_cast<double>(static_cast<compute_type<T>>(weights[i]));
    RL_CHECK(w >= 0 && std::isfinite(w), "probability tensor contains either `inf`, `nan` or element < 0");
  }
  for (int64_t r = 0; r < rows; ++r, weights += categories)
    RL_CHECK(
        std::any_of(weights, weights + categories, [](T w) { return static_cast<compute_type<T>>(w) > 0; }),
        "invalid multinomial distribution (sum of probabilities <= 0)");
}

// An exponential race: the categories with the largest weight / exponential number win, of equal ones those
// that `topk` names first.
Tensor race(const Tensor& weights, int64_t samples, OptGenerator generator) {
  const Tensor keys = weights / exponential_(empty_like_tensor(weights, weights.dtype()), 1.0, generator);
  return samples == 1 ? argmax(keys, -1, true) : std::get<1>(topk(keys, samples, -1, true, true));
}

// On devices the same race, whose numbers are PyTorch's there; with replacement, where uniform numbers fall
// among the running sums.
Tensor multinomial_on_device(const Tensor& weights, int64_t samples, bool replacement,
                             OptGenerator generator) {
  // NaN is the largest and the smallest of its row.
  const Tensor largest = amax(weights, IntList{-1}, false), zero = wrapped_number(0);
  const Tensor valid =
      logical_and(ge(amin(weights, IntList{}, false), zero), isfinite(amax(largest, IntList{}, false)));
  RL_CHECK(read_scalar(valid).to<bool>(), "probability tensor contains either `inf`, `nan` or element < 0");
  RL_CHECK(read_scalar(ops::all(gt(largest, zero))).to<bool>(),
           "invalid multinomial distribution (sum of probabilities <= 0)");
  if (!replacement || samples == 1) return race(weights, samples, generator);
  const Tensor sums = cumsum(to_dtype(weights, compute_dtype(weights.dtype())), -1, std::nullopt);
  const Tensor total = narrow(sums, -1, sums.size(-1) - 1, 1);
  Dims sizes = weights->sizes;
  sizes.back() = samples;
  const Tensor drawn =
      uniform_(empty_tensor(sizes, sums.dtype(), sums.device()), 0.0, 1.0, generator) * total;
  const Tensor passed = le(unsqueeze(sums, -2), unsqueeze(drawn, -1));
  // A product may round to the total: the last category that has a weight, then.
  return minimum(sum_dim(passed, IntList{-1}, false, DType::Int64),
                 sum_dim(lt(sums, total), IntList{-1}, true, DType::Int64));
}

Tensor multinomial_kernel(const Call& call, const Tensor& self, int64_t samples, bool replacement,
                          OptGenerator generator) {
  RL_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
  RL_CHECK(is_floating(self.dtype()),
           "multinomial only supports floating-point dtypes for input, got: ", legacy_name(self.dtype()));
  RL_CHECK(!call.out || call.out->dtype() == DType::Int64,
           "multinomial expects Long tensor out, got: ", legacy_name(call.out->dtype()));
  RL_CHECK(samples > 0, "cannot sample n_sample <= 0 samples");
  const int64_t categories = self.size(-1);
  RL_CHECK(replacement || samples <= categories,
           "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
  RL_CHECK(categories <= int64_t{1} << 24, "number of categories cannot exceed 2^24");
  const Dims sizes = self.dim() == 1 ? Dims{samples} : Dims{self.size(0), samples};
  const Tensor result = call.output(sizes, DType::Int64, self.device());
  if (self.device().is_meta() || result.numel() == 0) return result;
  RL_CHECK(categories > 0, "invalid multinomial distribution (sum of probabilities <= 0)");
  GradMode off(false);
  if (!self.is_cpu()) return multinomial_on_device(self, samples, replacement, generator);
  const Tensor weights = contiguous(self);
  if (!replacement || samples == 1) {
    visit_dtype(FloatTypes{}, weights.dtype(), "multinomial", [&](auto tag) {
      check_weights(weights.data<decltype(tag)>(), weights.numel() / categories, categories);
    });
    return race(self, samples, generator);  // drawn in the layout of the input, as PyTorch does
  }
  const Tensor drawn = result.is_contiguous() ? result : empty_tensor(sizes, DType::Int64);
  cpu::draw_with_replacement(weights.dtype(), weights.data_ptr(), weights.numel() / categories, categories,
                             samples, drawn.data<int64_t>(), generator_or_default(generator));
  return drawn;
}

}  // namespace

void register_random_sample_operators(Table& t) {
  t.op(bernoulli_tensor_,
       "bernoulli_.Tensor(Tensor(a!) self, Tensor p, *, Generator? generator=None) -> Tensor(a!)",
       bernoulli_tensor_kernel)
      .doc("Fills with ones with the probabilities in p, broadcast, and zeros otherwise.")
      .family(Family::Random)
      .on_devices()
      .method_only()
      .derivative([](Grad g, Shape<1> p) { return Grads{zeros_like(g), zeros(p, p.dtype())}; });
  t.op(bernoulli, "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", bernoulli_kernel)
      .doc("Ones with the probabilities that the input holds, else zeros.")
      .family(Family::Random)
      .on_devices()
      .out()
      .tangent(Tangent::Zero)
      .out_apart(kFirst)
      .derivative([](Grad g) { return zeros_like(g); });
  t.op(bernoulli_p, "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor",
       bernoulli_p_kernel)
      .doc("Ones with probability p and zeros otherwise, in the shape and dtype of self.")
      .family(Family::Random)
      .on_devices()
      .tangent(Tangent::Zero)
      .batching(Batching::RandomLike)
      .derivative([](Grad g) { return zeros_like(g); });
  t.op(normal, "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
       normal_kernel)
      .doc("Normal numbers, each with its own mean and standard deviation.")
      .family(Family::Random)
      .function_only()
      .out()
      .tangent(Tangent::Zero)
      .out_apart(kAllOperands)
      .node("NormalBackward3")
      .derivative([](Grad, Shape<0> mean, Shape<1> std) {
        return Grads{zeros(mean, mean.dtype()), zeros(std, std.dtype())};
      });
  t.op(normal_mean, "normal.Tensor_float(Tensor mean, float std=1, *, Generator? generator=None) -> Tensor",
       normal_mean_kernel)
      .doc("Normal numbers with the means in a tensor and one standard deviation.")
      .family(Family::Random)
      .function_only()
      .out()
      .tangent(Tangent::Zero)
      .out_apart(kAllOperands)
      .node("NormalBackward1")
      .derivative([](Grad g) { return zeros_like(g); });
  t.op(normal_std, "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
       normal_std_kernel)
      .doc("Normal numbers with one mean and the standard deviations in a tensor.")
      .family(Family::Random)
      .function_only()
      .out()
      .tangent(Tangent::Zero)
      .out_apart(kAllOperands)
      .node("NormalBackward2")
      .derivative([](Grad g) { return zeros_like(g); });
  t.op(poisson, "poisson(Tensor self, Generator? generator=None) -> Tensor", poisson_kernel)
      .doc("Poisson numbers with the rates that the input holds.")
      .family(Family::Random)
      .function_only()
      .tangent(Tangent::Zero)
      .derivative([](Grad g) { return zeros_like(g); });
  t.op(binomial, "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor", binomial_kernel)
      .doc("Numbers of successes in `count` trials of probability `prob`.")
      .family(Family::Random)
      .function_only()
      .tangent(Tangent::Zero)
      .derivative([](Grad, Shape<0> count, Shape<1> prob) {
        return Grads{zeros(count, count.dtype()), zeros(prob, prob.dtype())};
      });
  t.op(standard_gamma, "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor",
       standard_gamma_kernel)
      .doc("Gamma numbers with the shape parameters in self and rate 1.")
      .family(Family::Random)
      .function_only()
      .doc("Gamma numbers of the given concentrations and rate 1.")
      .derivative([](Grad g, In<0> alpha, Out<0> x) { return g * standard_gamma_grad(alpha, x); });
  t.op(multinomial,
       "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> "
       "Tensor",
       multinomial_kernel)
      .doc("Indices drawn with the weights in each row.")
      .family(Family::Random)
      .out()
      .on_devices()
      .batching(Batching::RandomEach)
      .not_differentiable("integer output");
}

}  // namespace rushlight
