// A language model's file, and runs of its methods. The present format has one method, `step`, for tokens of
// any texts, with keys and values in pages; the first one had `prefill` and `decode` for one text.
#pragma once
#include <mutex>
#include <optional>
#include <span>

#include "rushlight/generation.h"

namespace rushlight::generation {

// Tokens of some texts that run together.
struct StepInput {
  std::vector<int64_t> tokens, positions, texts;
  std::vector<int64_t> pages;   // of each text, with the room that `pages_of_text` says
  std::vector<int64_t> wanted;  // a token of each text, behind which logits are asked for
};

struct TextModel::Data {
  explicit Data(runtime::Model of);

  bool paged() const { return page > 0; }
  int64_t pages_of_text() const { return (max_length + page - 1) / page; }
  // Bytes of keys and values of a page.
  size_t page_bytes() const;
  // [texts, vocabulary].
  Tensor step(runtime::Session& session, const StepInput& input) const;

  // The next token's logits; the ids before `from` are in the session's cache.
  Tensor run(runtime::Session& session, const std::vector<int64_t>& ids, size_t from) const;
  runtime::Session take() const;
  void give_back(runtime::Session session, int64_t used) const;
  void check(const std::vector<int64_t>& prompt, const Settings& settings) const;

  runtime::Model model;
  std::optional<Tokenizer> tokenizer;
  int64_t max_length = 0, vocabulary = 0;
  int64_t page = 0;   // positions in a page; 0: the first format
  int64_t reach = 0;  // of the first format: runs look at a multiple of it
  std::vector<int64_t> end;

 private:
  Tensor run_paged(runtime::Session& session, const std::vector<int64_t>& ids, size_t from) const;
  void check_logits(const std::vector<Tensor>& results, int64_t rows) const;

  mutable std::mutex mutex_;
  mutable std::vector<runtime::Session> idle_;
};

}  // namespace rushlight::generation
