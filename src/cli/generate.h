// What rushlight-run does with --prompt.
#pragma once
#include <string>

#include "rushlight/generation.h"

namespace rushlight::cli {

struct PromptRequest {
  bool given = false;
  std::string prompt;
  generation::Settings settings;
  bool tokens = false;  // print numbers instead of text

  // Takes an option; false if it is none of these. `value` gives the option's value.
  template <class Value>
  bool take(std::string_view option, Value&& value);
};

extern const std::string_view kPromptUsage;

// Writes the text as it is generated.
int generate(const std::string& model, const PromptRequest& request);

double real_number(std::string_view option, const std::string& text);
int64_t whole_number(std::string_view option, const std::string& text);

template <class Value>
bool PromptRequest::take(std::string_view option, Value&& value) {
  const auto is = [&](std::string_view name) { return option == name; };
  if (is("--prompt"))
    prompt = value(), given = true;
  else if (is("--max-tokens"))
    settings.max_tokens = whole_number(option, value());
  else if (is("--temperature"))
    settings.temperature = real_number(option, value());
  else if (is("--top-k"))
    settings.top_k = whole_number(option, value());
  else if (is("--top-p"))
    settings.top_p = real_number(option, value());
  else if (is("--repetition-penalty"))
    settings.repetition_penalty = real_number(option, value());
  else if (is("--presence-penalty"))
    settings.presence_penalty = real_number(option, value());
  else if (is("--frequency-penalty"))
    settings.frequency_penalty = real_number(option, value());
  else if (is("--seed"))
    settings.seed = static_cast<uint64_t>(whole_number(option, value()));
  else if (is("--stop"))
    settings.stop.push_back(value());
  else if (is("--ignore-end"))
    settings.ignore_end = true;
  else if (is("--print-tokens"))
    tokens = true;
  else
    return false;
  return true;
}

}  // namespace rushlight::cli
