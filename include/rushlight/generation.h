// Text from language models of one file: a tokenizer, sampling, and generation in a session. Files are made
// by rushlight.export.save_language_model (docs/generation.md).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rushlight/runtime.h"

namespace rushlight::generation {

// Byte-pair encoding as a tokenizer.json describes it. Threads may share one.
class Tokenizer {
 public:
  static Tokenizer parse(std::string_view json);

  // `special`: with what the model wants before and after a text.
  std::vector<int64_t> encode(std::string_view text, bool special = true) const;
  std::string decode(const std::vector<int64_t>& ids, bool skip_special = true) const;
  int64_t id_of(std::string_view token) const;  // -1 if there is none
  // Whether it is a byte such as <0x41>: what it means is known when all bytes of a row are there.
  bool is_byte(int64_t id) const;
  // Whether texts leave it out: a special token, or a number without one.
  bool is_silent(int64_t id) const;
  // What it adds within a text: maybe a part of a character, maybe nothing but the name of a special token.
  std::string bytes(int64_t id) const;
  size_t size() const;

 private:
  struct Data;
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

// How tokens are chosen, in the order of transformers: the penalty, the temperature, top-k, top-p. The
// penalties of OpenAI's protocol and its bias come behind the first one.
struct Sampling {
  double temperature = 0;  // 0: always the most likely token
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double repetition_penalty = 1;
  uint64_t seed = 0;             // of numbers equal to Python's after manual_seed
  double presence_penalty = 0;   // taken from the logit of each token that the text has, the prompt apart
  double frequency_penalty = 0;  // the same, as often as the text has it
  std::vector<std::pair<int64_t, double>> bias;  // of tokens, added to their logits

  void check() const;  // one ValueError for numbers that mean nothing
};

struct Settings : Sampling {
  int64_t max_tokens = 128;
  std::vector<std::string> stop;  // texts that end it; they are no part of the result
  bool ignore_end = false;        // go on behind tokens that end a text
  int64_t logprobs = -1;  // with each token its chance, and so many of the likeliest ones; -1: neither
};

enum class Finish { Length, End, Stop, Cancelled };

// The logarithm of a token's probability, as the model gives it: before penalties, temperature and the like.
struct Likelihood {
  int64_t token = 0;
  double logprob = 0;
};
struct TokenChance {
  Likelihood chosen;
  std::vector<Likelihood> top;  // the likeliest first
  size_t place = 0;             // how many bytes of the text there were before it
};

struct Generated {
  std::vector<int64_t> tokens;  // without the prompt's
  std::string text;             // empty without a tokenizer
  Finish finish = Finish::Length;
  std::vector<TokenChance> chances;  // of each token, where Settings::logprobs asks for them
};

// Generates in sessions of its own; threads may share one.
class TextModel {
 public:
  static TextModel load(const std::string& path);

  const Tokenizer* tokenizer() const;  // null if the file has none
  int64_t max_length() const;          // of prompt and result together
  int64_t vocabulary() const;

  // Calls `token` for each token, and `text` for pieces of the text as they become known, which together are
  // the result's. What returns false cancels.
  using OnToken = std::function<bool(int64_t token)>;
  using OnText = std::function<bool(std::string_view piece)>;
  Generated generate(const std::vector<int64_t>& prompt, const Settings& settings, const OnToken& token = {},
                     const OnText& text = {}) const;
  Generated generate(std::string_view prompt, const Settings& settings, const OnText& text = {}) const;

 private:
  friend class TextService;
  friend class TextEngine;
  struct Data;
  explicit TextModel(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace rushlight::generation
