// The C interface to language models of one file.
#include "frontend/c_common.h"
#include "rushlight/generation.h"

using namespace rushlight;
using namespace rushlight::c;
using generation::Generated;
using generation::Settings;
using generation::TextModel;

namespace {

const TextModel& model_at(rl_text_model model) {
  RL_CHECK_VALUE(model, "the model is NULL");
  return *reinterpret_cast<const TextModel*>(model);
}

Settings settings_of(const rl_text_settings* given) {
  Settings s;
  if (!given) return s;
  RL_CHECK_VALUE(given->struct_size == sizeof(rl_text_settings),
                 "the settings were not made by rl_text_settings_init()");
  s.max_tokens = given->max_tokens, s.temperature = given->temperature, s.top_k = given->top_k;
  s.top_p = given->top_p, s.repetition_penalty = given->repetition_penalty, s.seed = given->seed;
  s.ignore_end = given->ignore_end != 0;
  RL_CHECK_VALUE(given->stop || !given->stop_count, "the list of stop texts is NULL");
  for (size_t i = 0; i < given->stop_count; ++i) s.stop.emplace_back(checked(given->stop[i], "a stop text"));
  return s;
}

void tell_finish(const Generated& made, int* finish) {
  if (finish) *finish = static_cast<int>(made.finish);
}

}  // namespace

static_assert(static_cast<int>(generation::Finish::Length) == RL_FINISH_LENGTH &&
              static_cast<int>(generation::Finish::End) == RL_FINISH_END &&
              static_cast<int>(generation::Finish::Stop) == RL_FINISH_STOP &&
              static_cast<int>(generation::Finish::Cancelled) == RL_FINISH_CANCELLED);

extern "C" {

void rl_text_settings_init(rl_text_settings* settings) {
  const Settings s;
  *settings = {.struct_size = sizeof(rl_text_settings),
               .max_tokens = s.max_tokens,
               .temperature = s.temperature,
               .top_k = s.top_k,
               .top_p = s.top_p,
               .repetition_penalty = s.repetition_penalty,
               .seed = s.seed,
               .stop = nullptr,
               .stop_count = 0,
               .ignore_end = s.ignore_end};
}

int rl_text_model_load(const char* filename, rl_text_model* model) {
  return guarded([&] {
    auto loaded = std::make_unique<TextModel>(TextModel::load(checked(filename, "the file's name")));
    *checked(model, "model") = reinterpret_cast<rl_text_model>(loaded.release());
  });
}
void rl_text_model_release(rl_text_model model) { delete reinterpret_cast<TextModel*>(model); }

int rl_text_generate(rl_text_model model, const char* prompt, const rl_text_settings* settings,
                     rl_on_text on_text, void* context, int* finish) {
  return guarded([&] {
    TextModel::OnText tell;
    if (on_text)
      tell = [&](std::string_view piece) {
        const std::string ended(piece);
        return on_text(context, ended.c_str(), ended.size()) != 0;
      };
    const Settings s = settings_of(settings);
    tell_finish(model_at(model).generate(checked(prompt, "the prompt"), s, tell), finish);
  });
}

int rl_text_generate_tokens(rl_text_model model, const int64_t* prompt, size_t count,
                            const rl_text_settings* settings, rl_on_token on_token, void* context,
                            int* finish) {
  return guarded([&] {
    RL_CHECK_VALUE(prompt || !count, "the prompt is NULL");
    TextModel::OnToken tell;
    if (on_token) tell = [&](int64_t token) { return on_token(context, token) != 0; };
    const Settings s = settings_of(settings);
    tell_finish(model_at(model).generate(std::vector<int64_t>(prompt, prompt + count), s, tell), finish);
  });
}

}  // extern "C"
