// The next token: what transformers' processors and warpers do, with the library's own operators where the
// last bit decides, so that a seed gives Python's tokens.
#pragma once
#include "core/generator.h"
#include "rushlight/generation.h"

namespace rushlight::generation {

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling);
  // `logits` are (1, words); `seen` are the tokens so far, of which the first are the prompt's.
  int64_t next(const Tensor& logits, std::span<const int64_t> seen, size_t prompt);

 private:
  void penalize(std::span<float> scores, std::span<const int64_t> seen) const;
  void discourage(std::span<float> scores, std::span<const int64_t> made) const;
  void keep_largest(std::span<float> scores) const;
  void keep_nucleus(Tensor& scores) const;

  const Sampling sampling_;
  Ref<Generator> generator_;
};

// Of the token that was chosen by these logits, and of `count` likeliest ones.
TokenChance chance_of(const Tensor& logits, int64_t token, int64_t count);

}  // namespace rushlight::generation
