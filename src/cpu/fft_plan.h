// FftPlan: what the own one-dimensional transform of length n needs to know. Mixed radix by Stockham's
// method; lengths with a large prime factor go through Bluestein's convolution.
#pragma once
#include <complex>
#include <memory>
#include <vector>

#include "cpu/isa_variant.h"

namespace rushlight::cpu {

template <class T>
struct FftPlan {
  // One pass of `radix`: sub-transforms of length radix * rest become radix ones of length `rest`.
  struct Pass {
    int64_t radix, rest;
    std::vector<std::complex<T>> twiddles;  // w^(p k) at [p * (radix - 1) + k - 1], w the root of the length
    std::vector<std::complex<T>> roots;     // of the radix itself, where it has no butterfly of its own
  };
  // The transform as a convolution with a chirp, of a smooth length.
  struct Chirp {
    std::shared_ptr<const FftPlan> plan;       // of the convolution's length
    std::vector<std::complex<T>> chirp;        // e^(-pi i k^2 / n)
    std::vector<std::complex<T>> transformed;  // of the conjugate chirp, scaled by 1 / length
  };

  explicit FftPlan(int64_t n);

  int64_t n;
  std::vector<Pass> passes;
  std::unique_ptr<Chirp> chirp;
  // Lines worth transforming side by side, which is what the loops vectorise over when passes are short.
  int64_t lines_at_once() const { return n <= 2048 ? 8 : n <= 16384 ? 2 : 1; }
  size_t buffer_size() const;  // in numbers for one line; includes the line itself
};

// A shared plan; few are kept.
template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(int64_t n);

// e^(-2 pi i k / n), each part rounded once or nearly so.
std::complex<double> unit_root(int64_t k, int64_t n);

// Transforms `lines` interleaved lines (element i of line j at [i * lines + j]) forward. `data` has room for
// buffer_size() * lines numbers, of which the first n * lines are the input; returns where the output is.
RL_DECLARE_VARIANTS(std::complex<float>* fft_lines(const FftPlan<float>& plan, int64_t lines,
                                                   std::complex<float>* data);
                    std::complex<double> *
                    fft_lines(const FftPlan<double>& plan, int64_t lines, std::complex<double>* data);)

}  // namespace rushlight::cpu
