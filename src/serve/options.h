// What the command line of rushlight-serve says.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rushlight::serve {

struct ModelSource {
  std::string name, path;
};

enum class LogChoice { All, Errors, None };

struct Options {
  std::vector<ModelSource> models;
  std::string host = "127.0.0.1";
  uint16_t port = 8000;
  int threads = 0;                     // of one computation; 0: as many as the library would take
  int io_threads = 2;                  // which read and write
  int64_t batch = 32;                  // rows that are computed together
  double delay_ms = 0;                 // how long the first of a batch waits for others
  size_t queue = 256;                  // requests that wait for one model
  size_t memory = size_t{1} << 30;     // of bodies, tensors and results of all requests together
  size_t max_body = size_t{64} << 20;  // bytes
  size_t max_header = 16 << 10;
  int64_t max_tokens = 0;  // of one answer; 0: what the model holds
  int64_t max_texts = 16;  // that one language model writes together
  size_t connections = 1024;
  double deadline = 60;  // seconds from a request's arrival to its answer
  double drain = 30;     // seconds for what is under way when the server ends
  double reload = 1;     // seconds between looks at the models' files; 0: never
  std::vector<std::string> keys;
  std::string certificate, private_key;
  LogChoice log = LogChoice::All;
};

extern const char* const kUsage;

// One ValueError for words that mean nothing.
Options parse_options(int argc, char** argv);

}  // namespace rushlight::serve
