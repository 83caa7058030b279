#include <algorithm>
#include <numeric>

#include "generation/sampler.h"
#include "generation/text_model_data.h"
#include "generation/text_stream.h"
#include "io/json.h"
#include "ops/copy.h"
#include "ops/view.h"

namespace rushlight::generation {
namespace {

using runtime::Model;
using runtime::Session;

constexpr size_t kIdleSessions = 4;
constexpr size_t kChunk = 256;  // tokens of a prompt that run together: memory is bounded

Tensor integers(int64_t first, int64_t count, bool row) {
  Tensor t = row ? empty_tensor({1, count}, DType::Int64) : empty_tensor({count}, DType::Int64);
  std::iota(t.data<int64_t>(), t.data<int64_t>() + count, first);
  return t;
}

Tensor integers(std::span<const int64_t> values) {
  Tensor t = empty_tensor({static_cast<int64_t>(values.size())}, DType::Int64);
  std::ranges::copy(values, t.data<int64_t>());
  return t;
}

}  // namespace

TextModel::Data::Data(Model of) : model(std::move(of)) {
  const std::string* settings = model.text("generate.json");
  const auto has = [&](const char* name) { return std::ranges::count(model.methods(), name) > 0; };
  RL_CHECK(settings && (has("step") || (has("prefill") && has("decode"))),
           "the file holds no language model: write it with rushlight.export.save_language_model");
  const io::Json json = io::Json::parse(*settings, "the section '@generate.json'");
  auto number = [&](const char* name) {
    const int64_t* value = json[name].integer();
    RL_CHECK(value && *value > 0, "the section '@generate.json' has no number '", name, "'");
    return *value;
  };
  const int64_t version = number("version");
  RL_CHECK(version == (has("step") ? 2 : 1),
           "the section '@generate.json' has another version: export the model again");
  max_length = number("max_length"), vocabulary = number("vocabulary");
  (version == 1 ? reach : page) = number(version == 1 ? "step" : "page");
  if (const auto* list = json["end"].list())
    for (const io::Json& id : *list)
      if (id.integer()) end.push_back(*id.integer());
  if (const std::string* text = model.text("tokenizer.json")) tokenizer = Tokenizer::parse(*text);
}

size_t TextModel::Data::page_bytes() const {
  size_t bytes = 0;
  for (const auto& info : model.state()) {
    int64_t elements = 1;
    for (size_t d = 1; d < info.sizes.size(); ++d) elements *= info.sizes[d];
    bytes += static_cast<size_t>(elements) * element_size(info.dtype);
  }
  return bytes;
}

// A session whose cache is zeros, or holds what nobody looks at.
Session TextModel::Data::take() const {
  std::lock_guard lock(mutex_);
  if (idle_.empty()) return Session(model);
  Session session = std::move(idle_.back());
  idle_.pop_back();
  return session;
}
// Nothing of one text may reach another one, not even numbers that are not finite, through a factor of
// zero. Of pages attention never reads what lies behind a token.
void TextModel::Data::give_back(Session session, int64_t used) const {
  const GradMode no_grad(false);
  if (!paged())
    for (const auto& info : model.state()) {
      const Tensor t = session.state(info.name);
      ops::zero_(t.dim() == 4 && t.size(2) == max_length ? ops::slice(t, 2, 0, used, 1) : t);
    }
  std::lock_guard lock(mutex_);
  if (idle_.size() < kIdleSessions) idle_.push_back(std::move(session));
}

void TextModel::Data::check_logits(const std::vector<Tensor>& results, int64_t rows) const {
  RL_CHECK(!results.empty() && results[0].numel() == rows * vocabulary && is_floating(results[0].dtype()),
           "the model gives no logits for its ", vocabulary, " tokens: export it again");
}

Tensor TextModel::Data::step(Session& session, const StepInput& input) const {
  const GradMode no_grad(false);
  const auto rows = static_cast<int64_t>(input.wanted.size());
  const Tensor pages = ops::view(integers(input.pages), IntList{-1, pages_of_text()});
  const std::vector<Tensor> results =
      session.run("step", std::vector<Tensor>{integers(input.tokens), integers(input.positions),
                                              integers(input.texts), pages, integers(input.wanted)});
  check_logits(results, rows);
  return ops::view(results[0], IntList{rows, vocabulary});
}

Tensor TextModel::Data::run_paged(Session& session, const std::vector<int64_t>& ids, size_t from) const {
  StepInput input;
  input.pages.resize(static_cast<size_t>(pages_of_text()));
  std::iota(input.pages.begin(), input.pages.end(), 0);
  for (;;) {
    const size_t end = std::min(ids.size(), from + kChunk);
    input.tokens.assign(ids.begin() + static_cast<ptrdiff_t>(from),
                        ids.begin() + static_cast<ptrdiff_t>(end));
    input.positions.resize(end - from);
    std::iota(input.positions.begin(), input.positions.end(), static_cast<int64_t>(from));
    input.texts.assign(end - from, 0);
    input.wanted = {static_cast<int64_t>(end - from) - 1};
    const Tensor logits = step(session, input);
    if (end == ids.size()) return logits;
    from = end;
  }
}

Tensor TextModel::Data::run(Session& session, const std::vector<int64_t>& ids, size_t from) const {
  if (paged()) return run_paged(session, ids, from);
  const auto count = static_cast<int64_t>(ids.size() - from), all = static_cast<int64_t>(ids.size());
  const Tensor tokens = integers(0, count, true);
  std::copy(ids.begin() + static_cast<ptrdiff_t>(from), ids.end(), tokens.data<int64_t>());
  const Tensor positions = integers(static_cast<int64_t>(from), count, false);
  const Tensor seen = integers(0, std::min(max_length, (all + reach - 1) / reach * reach), false);
  const std::vector<Tensor> results =
      session.run(count == 1 ? "decode" : "prefill", std::vector<Tensor>{tokens, positions, seen});
  check_logits(results, 1);
  return results[0];
}

void TextModel::Data::check(const std::vector<int64_t>& prompt, const Settings& settings) const {
  settings.check();
  RL_CHECK_VALUE(settings.max_tokens > 0, "max_tokens must be above zero, not ", settings.max_tokens);
  RL_CHECK_VALUE(settings.stop.empty() || tokenizer,
                 "stop texts need a tokenizer, which the file does not have");
  for (const std::string& stop : settings.stop) RL_CHECK_VALUE(!stop.empty(), "a stop text is empty");
  for (const auto& [id, value] : settings.bias)
    RL_CHECK_VALUE(id >= 0 && id < vocabulary, "the bias is of the token ", id,
                   ", which is not one of the model's ", vocabulary);
  RL_CHECK_VALUE(!prompt.empty(), "the prompt has no tokens");
  RL_CHECK_VALUE(static_cast<int64_t>(prompt.size()) < max_length, "the prompt has ", prompt.size(),
                 " tokens, but the model holds ", max_length);
  for (const int64_t id : prompt)
    RL_CHECK_VALUE(id >= 0 && id < vocabulary, "the prompt's token ", id, " is not one of the model's ",
                   vocabulary);
}

TextModel TextModel::load(const std::string& path) {
  return TextModel(std::make_shared<const Data>(Model::load(path)));
}

const Tokenizer* TextModel::tokenizer() const { return data_->tokenizer ? &*data_->tokenizer : nullptr; }
int64_t TextModel::max_length() const { return data_->max_length; }
int64_t TextModel::vocabulary() const { return data_->vocabulary; }

Generated TextModel::generate(const std::vector<int64_t>& prompt, const Settings& settings,
                              const OnToken& on_token, const OnText& on_text) const {
  const Data& d = *data_;
  d.check(prompt, settings);
  Sampler sampler(settings);
  std::optional<TextStream> stream;
  if (d.tokenizer) stream.emplace(*d.tokenizer, prompt, settings.stop);
  Session session = d.take();
  Generated result;
  std::vector<int64_t> ids = prompt;
  bool cancelled = false;
  auto tell = [&](const std::string& piece) {
    result.text += piece;
    if (on_text && !piece.empty()) cancelled |= !on_text(piece);
  };
  for (size_t from = 0;;) {
    const Tensor logits = d.run(session, ids, from);
    from = ids.size();
    const int64_t token = sampler.next(logits, ids, prompt.size());
    if (settings.logprobs >= 0) result.chances.push_back(chance_of(logits, token, settings.logprobs));
    ids.push_back(token);
    result.tokens.push_back(token);
    if (on_token) cancelled |= !on_token(token);
    const bool end = !settings.ignore_end && std::ranges::count(d.end, token);
    const std::string piece = stream && !end ? stream->add(token) : std::string();
    if (stream && settings.logprobs >= 0)
      result.chances.back().place = end ? stream->size() : stream->place();
    tell(piece);
    const bool full = static_cast<int64_t>(result.tokens.size()) == settings.max_tokens ||
                      static_cast<int64_t>(ids.size()) == d.max_length;
    if (cancelled)
      result.finish = Finish::Cancelled;
    else if (stream && stream->stopped())
      result.finish = Finish::Stop;
    else if (end)
      result.finish = Finish::End;
    else if (!full)
      continue;
    break;
  }
  if (stream && !cancelled && !stream->stopped()) tell(stream->finish());
  d.give_back(std::move(session), static_cast<int64_t>(ids.size()));
  return result;
}

Generated TextModel::generate(std::string_view prompt, const Settings& settings, const OnText& text) const {
  RL_CHECK_VALUE(data_->tokenizer, "the file has no tokenizer: give the prompt as tokens");
  return generate(data_->tokenizer->encode(prompt), settings, {}, text);
}

}  // namespace rushlight::generation
