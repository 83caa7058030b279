// Random kernels on contiguous memory; they draw what PyTorch's CPU kernels draw, value for value and in
// their order. The caller holds no lock: every function takes the generator's mutex once.
#pragma once
#include "core/dtype.h"
#include "core/generator.h"

namespace rushlight::cpu {

// A run of elements of one type.
struct RandomOut {
  DType dtype;
  void* data;
  int64_t n;
};

// [from, to); float types.
void fill_uniform(RandomOut out, double from, double to, Generator& g);
// PyTorch draws contiguous tensors of 16 elements and more in blocks, others one by one: two different
// streams.
void fill_normal(RandomOut out, double mean, double std, bool blocks, Generator& g);

// base + draw % range. A range from 2^28 on takes 64 random bits.
void fill_integers(RandomOut out, int64_t base, uint64_t range, Generator& g);
// All values of an integer type that are not negative; for float types every integer they represent exactly.
void fill_integers(RandomOut out, Generator& g);
// Any 64 bits, read as a signed number.
void fill_integers64(RandomOut out, Generator& g);

void fill_bernoulli(RandomOut out, double p, Generator& g);
// One probability per element; p_dtype is a float type.
void fill_bernoulli(RandomOut out, DType p_dtype, const void* p, Generator& g);
void fill_exponential(RandomOut out, double lambda, Generator& g);
void fill_cauchy(RandomOut out, double median, double sigma, Generator& g);
void fill_log_normal(RandomOut out, double mean, double std, Generator& g);
void fill_geometric(RandomOut out, double p, Generator& g);
// A permutation of 0 ... n-1.
void fill_permutation(RandomOut out, Generator& g);

// Element by element from parameters of the output's dtype.
void draw_poisson(RandomOut out, const void* rate, Generator& g);
void draw_binomial(RandomOut out, const void* count, const void* probability, Generator& g);
void draw_gamma(RandomOut out, const void* alpha, Generator& g);
// 1 where the input is positive, else uniform on [lower, upper); only the latter draw.
void draw_rrelu_slopes(RandomOut out, const void* input, double lower, double upper, Generator& g);
// `rows` rows of `categories` weights in, `samples` indices out for each.
void draw_with_replacement(DType dtype, const void* weights, int64_t rows, int64_t categories,
                           int64_t samples, int64_t* out, Generator& g);

}  // namespace rushlight::cpu
