// rushlight-serve: models of one file behind HTTP.
#include <cstdio>
#include <cstring>

#include "core/error.h"
#include "core/host/process.h"
#include "core/parallel.h"
#include "serve/app.h"
#include "serve/log.h"

using namespace rushlight;
using namespace rushlight::serve;

namespace {

void run(const Options& options) {
  if (options.threads) set_num_threads(options.threads);
  Counters counters;
  Server server(options, counters);
  Repository models(options);
  App app{options, counters, server, models};
  const std::string address =
      options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
  const std::string url =
      str(options.certificate.empty() ? "http" : "https", "://", address, ":", server.port());
  log::write(log::line("info", "listening").add("url", url).add("models", options.models.size()));
  const bool open = options.host != "127.0.0.1" && options.host != "::1";
  if (open && options.keys.empty())
    log::write(
        log::line("warning", "open").add("message", "others can reach this server, and it wants no key"));
  std::printf("rushlight-serve: %s\n", url.c_str());
  std::fflush(stdout);
  server.run({[&](const Request& request) { return refuse(app, request); },
              [&](const ExchangePtr& exchange) { handle(app, exchange); }},
             [&] {
               app.ending = true;
               log::info("ending", "no new connections are taken; what is under way is answered");
             });
  log::info("ended", "");
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
      std::fputs(kUsage, stdout);
      return 0;
    }
  host::ignore_closed_pipes();
  host::raise_file_limit();  // as many as there may be connections
  try {
    const Options options = parse_options(argc, argv);
    log::start();
    run(options);
    log::stop();
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rushlight-serve: %s\n", e.what());
    std::fflush(stderr);
    std::_Exit(1);  // the log's thread may be running
  }
}
