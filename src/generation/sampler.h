// The next token: what transformers' processors and warpers do, with the library's own operators where the
// last bit decides, so that a seed gives Python's tokens.
#pragma once
#include "core/generator.h"
#include "rushlight/generation.h"

namespace rushlight::generation {

class Sampler {
 public:
  explicit Sampler(const Sampling& sampling);
  // `logits` are (1, words); `seen` are the tokens so far, the prompt's too.
  int64_t next(const Tensor& logits, const std::vector<int64_t>& seen);

 private:
  void penalize(std::span<float> scores, const std::vector<int64_t>& seen) const;
  void keep_largest(std::span<float> scores) const;
  void keep_nucleus(Tensor& scores) const;

  const Sampling sampling_;
  Ref<Generator> generator_;
};

}  // namespace rushlight::generation
