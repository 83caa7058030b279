// rushlight-run: runs a model of one file on arrays in .npy files.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#ifdef RUSHLIGHT_GENERATION  // not in the small runtime
#include "cli/generate.h"
#endif
#include "io/npy.h"
#include "rushlight/runtime.h"

using namespace rushlight;

namespace {

constexpr std::string_view kUsage =
    "usage: rushlight-run MODEL [--input [NAME=]FILE.npy]... [--output [NAME=]FILE.npy]... [options]\n"
    "\n"
    "Runs a model that rushlight.export.save wrote. Files without a name are taken in the model's order.\n"
    "Without inputs it tells what the model expects.\n"
    "\n"
    "  --method NAME  the method that the inputs and outputs after it are for; several run one after the\n"
    "                 other, in one session\n"
    "  --repeat N     run N times and print the median time of a run\n"
    "  --help         this text\n";

struct Named {
  std::string name, path;  // the name may be empty
};
struct Call {
  std::string method;  // empty: the first
  std::vector<Named> inputs, outputs;
};
struct Request {
  std::string model;
  std::vector<Call> calls;
  int repeat = 1;
#ifdef RUSHLIGHT_GENERATION
  cli::PromptRequest prompt;
#endif

  Call& last() {
    if (calls.empty()) calls.emplace_back();
    return calls.back();
  }
};

Named named_file(const std::string& text) {
  const size_t at = text.find('=');
  if (at == std::string::npos) return {"", text};
  return {text.substr(0, at), text.substr(at + 1)};
}

Request parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto value = [&] {
      if (const size_t at = word.find('='); word.starts_with("--") && at != std::string::npos)
        return word.substr(at + 1);
      RL_CHECK_VALUE(i + 1 < argc, word, " needs a value; see rushlight-run --help");
      return std::string(argv[++i]);
    };
#ifdef RUSHLIGHT_GENERATION
    if (request.prompt.take(word.substr(0, word.find('=')), value)) continue;
#endif
    if (word.starts_with("--input")) {
      request.last().inputs.push_back(named_file(value()));
    } else if (word.starts_with("--output")) {
      request.last().outputs.push_back(named_file(value()));
    } else if (word.starts_with("--method")) {
      request.calls.push_back({value(), {}, {}});
    } else if (word.starts_with("--repeat")) {
      request.repeat = std::atoi(value().c_str());
      RL_CHECK_VALUE(request.repeat > 0, "--repeat needs a number above zero");
    } else {
      RL_CHECK_VALUE(!word.starts_with("-") && request.model.empty(), "unexpected argument '", word,
                     "'; see rushlight-run --help");
      request.model = std::move(word);
    }
  }
  RL_CHECK_VALUE(!request.model.empty(), "no model is given; see rushlight-run --help");
  return request;
}

void print(const char* title, const std::vector<runtime::TensorInfo>& list) {
  std::printf("%s\n", title);
  for (const runtime::TensorInfo& info : list)
    std::printf("  %s: %s\n", info.name.c_str(), info.type.empty() ? "tensor" : info.type.c_str());
}

void describe(const runtime::Model& model) {
  for (const std::string& method : model.methods()) {
    if (model.methods().size() > 1) std::printf("method %s\n", method.c_str());
    print("inputs", model.inputs(method));
    print("outputs", model.outputs(method));
  }
  if (!model.state().empty()) print("state", model.state());
}

// The place of a file without a name is the first that is not taken.
size_t place_of(const Named& file, const std::vector<runtime::TensorInfo>& infos,
                const std::vector<std::string>& taken, const char* what) {
  for (size_t i = 0; i < infos.size(); ++i)
    if (file.name.empty() ? taken[i].empty() : infos[i].name == file.name) return i;
  std::string known;
  for (const runtime::TensorInfo& info : infos) known += str(known.empty() ? "" : ", ", info.name);
  RL_FAIL("there is no ", what, " for '", file.name.empty() ? file.path : file.name, "'; the model has ",
          known);
}
std::vector<std::string> assign(const std::vector<Named>& files,
                                const std::vector<runtime::TensorInfo>& infos, const char* what) {
  std::vector<std::string> paths(infos.size());
  for (const Named& file : files) paths[place_of(file, infos, paths, what)] = file.path;
  return paths;
}

// A call with its files found in the model.
struct Prepared {
  std::string method;
  std::unordered_map<std::string, Tensor> inputs, outputs;
  std::vector<std::string> targets;
};

Prepared prepare(const Call& call, const runtime::Model& model) {
  Prepared p{call.method.empty() ? model.methods()[0] : call.method, {}, {}, {}};
  const auto& infos = model.inputs(p.method);
  const std::vector<std::string> paths = assign(call.inputs, infos, "input");
  for (size_t i = 0; i < paths.size(); ++i)
    if (!paths[i].empty()) p.inputs.emplace(infos[i].name, io::read_npy(paths[i]));
  p.targets = assign(call.outputs, model.outputs(p.method), "output");
  return p;
}

int run(const Request& request) {
#ifdef RUSHLIGHT_GENERATION
  if (request.prompt.given) return cli::generate(request.model, request.prompt);
#endif
  const runtime::Model model = runtime::Model::load(request.model);
  std::vector<Call> calls = request.calls;
  if (calls.empty() && model.methods().size() == 1 && model.inputs().empty()) calls.emplace_back();
  if (calls.empty()) {
    describe(model);
    return 0;
  }
  std::vector<Prepared> prepared;
  for (const Call& call : calls) prepared.push_back(prepare(call, model));
  runtime::Session session(model);
  std::vector<double> milliseconds;
  for (int i = 0; i < request.repeat; ++i) {
    if (i) session.reset();
    const auto start = std::chrono::steady_clock::now();
    for (Prepared& call : prepared) {
      call.outputs.clear();
      call.outputs = session.run(call.method, call.inputs);
    }
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  for (const Prepared& call : prepared)
    for (size_t i = 0; i < call.targets.size(); ++i)
      if (!call.targets[i].empty())
        io::write_npy(call.targets[i], call.outputs.at(model.outputs(call.method)[i].name));
  if (request.repeat > 1) {
    std::ranges::sort(milliseconds);
    std::printf("median of %d runs: %.3f ms\n", request.repeat, milliseconds[milliseconds.size() / 2]);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--help" || std::string_view(argv[i]) == "-h") {
      std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
#ifdef RUSHLIGHT_GENERATION
      std::fwrite(cli::kPromptUsage.data(), 1, cli::kPromptUsage.size(), stdout);
#endif
      return 0;
    }
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rushlight-run: %s\n", e.what());
    return 1;
  }
}
