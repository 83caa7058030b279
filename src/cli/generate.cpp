#include "cli/generate.h"

#include <charconv>
#include <chrono>
#include <cstdio>

namespace rushlight::cli {

const std::string_view kPromptUsage =
    "\n"
    "Language models that rushlight.export.save_language_model wrote:\n"
    "\n"
    "  --prompt TEXT  write how the text goes on, as it is generated; - reads the standard input\n"
    "  --max-tokens N, --temperature T, --top-k K, --top-p P, --repetition-penalty R, --seed S\n"
    "  --presence-penalty P, --frequency-penalty F\n"
    "                 how (128 tokens, and always the most likely one)\n"
    "  --stop TEXT    end before this text; may be given several times\n"
    "  --ignore-end   go on behind tokens that end a text\n"
    "  --print-tokens write numbers of tokens instead of text\n";

double real_number(std::string_view option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  RL_CHECK_VALUE(error == std::errc() && end == text.data() + text.size(), option, " needs a number, not '",
                 text, "'");
  return value;
}
int64_t whole_number(std::string_view option, const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  RL_CHECK_VALUE(error == std::errc() && end == text.data() + text.size() && value >= 0, option,
                 " needs a whole number, not '", text, "'");
  return value;
}

int generate(const std::string& path, const PromptRequest& request) {
  const auto model = generation::TextModel::load(path);
  std::string prompt = request.prompt;
  if (prompt == "-") {
    prompt.clear();
    char buffer[4096];
    while (const size_t n = std::fread(buffer, 1, sizeof buffer, stdin)) prompt.append(buffer, n);
  }
  RL_CHECK_VALUE(model.tokenizer(), "the file has no tokenizer");
  const auto write = [](std::string_view text) {
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  };
  const auto made = model.generate(
      model.tokenizer()->encode(prompt), request.settings,
      [&](int64_t token) { return !request.tokens || write(str(token, "\n")); },
      [&](std::string_view piece) { return request.tokens || write(piece); });
  RL_CHECK(made.finish != generation::Finish::Cancelled, "cannot write to the standard output");
  if (!request.tokens) write("\n");
  return 0;
}

}  // namespace rushlight::cli
