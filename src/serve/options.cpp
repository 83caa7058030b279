#include "serve/options.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string_view>
#include <system_error>

#include "core/error.h"

namespace rushlight::serve {

const char* const kUsage =
    "usage: rushlight-serve [NAME=]MODEL.rl... [options]\n"
    "\n"
    "Serves models of one file by HTTP: the Open Inference Protocol v2 at /v2, OpenAI's protocol at /v1 for\n"
    "language models, a page at /, metrics at /metrics (docs/serving.md).\n"
    "\n"
    "  --host ADDRESS        where to listen (127.0.0.1: this machine alone)\n"
    "  --port P              (8000; 0 chooses a free one)\n"
    "  --threads N           threads of one computation\n"
    "  --io-threads N        threads that read and write (2)\n"
    "  --batch N             rows that are computed together (32; 1: none are)\n"
    "  --delay-ms D          how long the first of a batch waits for others (0: not at all)\n"
    "  --queue N             requests that wait for one model; others get 503 (256)\n"
    "  --memory M            of all requests together, such as 512M or 2G (1G)\n"
    "  --max-body M          of one request (64M)\n"
    "  --max-header M        of one request (16K)\n"
    "  --max-tokens N        of one answer of a language model\n"
    "  --max-texts N         texts that a language model writes together (16)\n"
    "  --connections N       open at once (1024)\n"
    "  --deadline S          seconds that a request may take (60)\n"
    "  --drain S             seconds for what is under way when the server is told to end (30)\n"
    "  --reload S            seconds between looks at the models' files (1; 0: never)\n"
    "  --api-key-file FILE   keys, one a line; also RUSHLIGHT_API_KEYS, with commas between them\n"
    "  --cert FILE --key FILE    TLS, in PEM\n"
    "  --log all|errors|none     which requests are told on standard error (all)\n"
    "  --help                this text\n";

namespace {

template <class T>
T number(std::string_view option, const std::string& text, T least, T most) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  RL_CHECK_VALUE(error == std::errc() && end == text.data() + text.size() && value >= least && value <= most,
                 option, " needs a number from ", least, " to ", most, ", not '", text, "'");
  return value;
}

size_t bytes(std::string_view option, const std::string& text) {
  static constexpr std::string_view kUnits = "KMG";
  std::string digits = text;
  int shift = 0;
  if (!text.empty())
    if (const size_t unit = kUnits.find(text.back()); unit != std::string_view::npos)
      shift = static_cast<int>(unit + 1) * 10, digits.pop_back();
  return static_cast<size_t>(number<int64_t>(option, digits, 1, int64_t{1} << (50 - shift))) << shift;
}

void add_keys(std::vector<std::string>& keys, std::string_view text, std::string_view between) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(between), text.size());
    std::string_view key = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = key.find_first_not_of(" \t\r");
    if (first == std::string_view::npos) continue;
    key = key.substr(first, key.find_last_not_of(" \t\r") - first + 1);
    keys.emplace_back(key);
  }
}

void read_keys(std::vector<std::string>& keys, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const int reason = file ? 0 : errno;
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  RL_CHECK_VALUE(file.good() || file.eof(), "cannot read the keys in '", path,
                 "': ", std::generic_category().message(reason ? reason : EIO));
  const size_t before = keys.size();
  add_keys(keys, text, "\n");
  RL_CHECK_VALUE(keys.size() > before, "'", path, "' holds no key");
}

ModelSource source(const std::string& word) {
  const size_t at = word.find('=');
  ModelSource model{word.substr(0, at == std::string::npos ? 0 : at),
                    at == std::string::npos ? word : word.substr(at + 1)};
  if (model.name.empty()) {
    model.name = model.path.substr(model.path.find_last_of('/') + 1);
    if (const size_t dot = model.name.rfind('.'); dot != std::string::npos && dot) model.name.resize(dot);
  }
  RL_CHECK_VALUE(!model.name.empty() && !model.path.empty(), "'", word, "' names no model");
  RL_CHECK_VALUE(model.name.find('/') == std::string::npos, "'", model.name,
                 "' can't be a model's name, since no address reaches one with '/': a model is NAME=FILE");
  return model;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options o;
  std::string_view name;
  constexpr int kMany = 1 << 20;
  const std::map<std::string_view, std::function<void(const std::string&)>> known = {
      {"--host", [&](auto& v) { o.host = v; }},
      {"--port", [&](auto& v) { o.port = number<uint16_t>(name, v, 0, 65535); }},
      {"--threads", [&](auto& v) { o.threads = number<int>(name, v, 1, 4096); }},
      {"--io-threads", [&](auto& v) { o.io_threads = number<int>(name, v, 1, 256); }},
      {"--batch", [&](auto& v) { o.batch = number<int64_t>(name, v, 1, kMany); }},
      {"--delay-ms", [&](auto& v) { o.delay_ms = number<double>(name, v, 0, 60000); }},
      {"--queue", [&](auto& v) { o.queue = static_cast<size_t>(number<int>(name, v, 1, kMany)); }},
      {"--memory", [&](auto& v) { o.memory = bytes(name, v); }},
      {"--max-body", [&](auto& v) { o.max_body = bytes(name, v); }},
      {"--max-header", [&](auto& v) { o.max_header = std::min<size_t>(bytes(name, v), 1 << 20); }},
      {"--max-tokens", [&](auto& v) { o.max_tokens = number<int64_t>(name, v, 1, int64_t{1} << 40); }},
      {"--max-texts", [&](auto& v) { o.max_texts = number<int64_t>(name, v, 1, 4096); }},
      {"--connections",
       [&](auto& v) { o.connections = static_cast<size_t>(number<int>(name, v, 1, kMany)); }},
      {"--deadline", [&](auto& v) { o.deadline = number<double>(name, v, 0.001, 1e6); }},
      {"--drain", [&](auto& v) { o.drain = number<double>(name, v, 0, 1e6); }},
      {"--reload", [&](auto& v) { o.reload = number<double>(name, v, 0, 1e6); }},
      {"--api-key-file", [&](auto& v) { read_keys(o.keys, v); }},
      {"--cert", [&](auto& v) { o.certificate = v; }},
      {"--key", [&](auto& v) { o.private_key = v; }},
      {"--log",
       [&](auto& v) {
         RL_CHECK_VALUE(v == "all" || v == "errors" || v == "none", "--log is all, errors or none, not '", v,
                        "'");
         o.log = v == "all" ? LogChoice::All : v == "errors" ? LogChoice::Errors : LogChoice::None;
       }},
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("-")) {
      o.models.push_back(source(word));
      continue;
    }
    const size_t at = word.find('=');
    name = std::string_view(word).substr(0, at);
    const auto found = known.find(name);
    RL_CHECK_VALUE(found != known.end(), "unknown option ", name, "; see rushlight-serve --help");
    RL_CHECK_VALUE(at != std::string::npos || i + 1 < argc, name,
                   " needs a value; see rushlight-serve --help");
    found->second(at != std::string::npos ? word.substr(at + 1) : std::string(argv[++i]));
  }
  if (const char* keys = std::getenv("RUSHLIGHT_API_KEYS")) add_keys(o.keys, keys, ",");
  RL_CHECK_VALUE(!o.models.empty(), "no model is given; see rushlight-serve --help");
  RL_CHECK_VALUE(o.certificate.empty() == o.private_key.empty(), "TLS needs both --cert and --key");
  for (size_t i = 0; i < o.models.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      RL_CHECK_VALUE(o.models[i].name != o.models[j].name, "two models are called '", o.models[i].name,
                     "': name one of them, as in other=", o.models[i].path);
  return o;
}

}  // namespace rushlight::serve
