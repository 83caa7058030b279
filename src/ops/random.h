// Random numbers: fills in place, factories, samples from distributions, dropout.
#pragma once
#include "dispatch/op.h"

namespace rushlight::ops {

inline Fn<Tensor(const Tensor& self, double from, double to, OptGenerator generator)> uniform_;
inline Fn<Tensor(const Tensor& self, double mean, double std, OptGenerator generator)> normal_, log_normal_;
inline Fn<Tensor(const Tensor& self, double median, double sigma, OptGenerator generator)> cauchy_;
inline Fn<Tensor(const Tensor& self, double lambd, OptGenerator generator)> exponential_;
inline Fn<Tensor(const Tensor& self, double p, OptGenerator generator)> geometric_, bernoulli_, bernoulli_p;
inline Fn<Tensor(const Tensor& self, const Tensor& p, OptGenerator generator)> bernoulli_tensor_;
inline Fn<Tensor(const Tensor& self, OptGenerator generator)> random_;
inline Fn<Tensor(const Tensor& self, int64_t to, OptGenerator generator)> random_to_;
inline Fn<Tensor(const Tensor& self, int64_t from, OptInt to, OptGenerator generator)> random_from_;

inline Fn<Tensor(IntList size, OptGenerator generator, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory)>
    rand, randn;
inline Fn<Tensor(int64_t high, IntList size, OptGenerator generator, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    randint;
inline Fn<Tensor(int64_t low, int64_t high, IntList size, OptGenerator generator, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    randint_low;
inline Fn<Tensor(int64_t n, OptGenerator generator, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory)>
    randperm;
inline Fn<Tensor(const Tensor& self, OptGenerator generator, OptDType dtype, std::optional<Layout> layout,
                 OptDevice device, std::optional<bool> pin_memory, std::optional<MemoryFormat> memory_format)>
    rand_like, randn_like;
inline Fn<Tensor(const Tensor& self, int64_t high, OptGenerator generator, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format)>
    randint_like;
inline Fn<Tensor(const Tensor& self, int64_t low, int64_t high, OptGenerator generator, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory,
                 std::optional<MemoryFormat> memory_format)>
    randint_like_low;
inline Fn<Tensor(double mean, double std, IntList size, OptGenerator generator, OptDType dtype,
                 std::optional<Layout> layout, OptDevice device, std::optional<bool> pin_memory)>
    normal_size;

inline Fn<Tensor(const Tensor& self, OptGenerator generator)> bernoulli, poisson, standard_gamma,
    sample_dirichlet;
inline Fn<Tensor(const Tensor& self, const Tensor& output)> standard_gamma_grad;
inline Fn<Tensor(const Tensor& x, const Tensor& alpha, const Tensor& total)> dirichlet_grad;
inline Fn<Tensor(const Tensor& mean, double std, OptGenerator generator)> normal_mean;
inline Fn<Tensor(double mean, const Tensor& std, OptGenerator generator)> normal_std;
inline Fn<Tensor(const Tensor& mean, const Tensor& std, OptGenerator generator)> normal;
inline Fn<Tensor(const Tensor& count, const Tensor& prob, OptGenerator generator)> binomial;
inline Fn<Tensor(const Tensor& self, int64_t num_samples, bool replacement, OptGenerator generator)>
    multinomial;

// Independent values of self's dtype: 0 with probability 1 - keep, else 1, or 1 / keep when scaled.
inline Fn<Tensor(const Tensor& self, IntList size, double keep, bool scaled)> dropout_noise;
inline Fn<Tensor(const Tensor& self, double p, bool train)> dropout, dropout_, alpha_dropout, alpha_dropout_,
    feature_dropout, feature_dropout_, feature_alpha_dropout, feature_alpha_dropout_;
inline Fn<std::tuple<Tensor, Tensor>(const Tensor& self, double p, std::optional<bool> train)> native_dropout;

inline Fn<Tensor(const Tensor& self, double lower, double upper, OptGenerator generator)> rrelu_slopes;
inline Fn<Tensor(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
                 OptGenerator generator)>
    rrelu, rrelu_;

}  // namespace rushlight::ops
