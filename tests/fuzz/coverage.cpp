// What reads files in C++, for libFuzzer: `./dev fuzz READER` builds it with clang's address and undefined
// sanitizers, and with the feedback of what an input reached. A reader gives a result or an exception that
// its callers expect; all else ends the process. RUSHLIGHT_READER names the reader.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/parallel.h"
#include "io/checksum.h"
#include "io/json.h"
#include "io/model_file.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "rushlight/generation.h"
#include "rushlight/script.h"
#include "rushlight/serialize.h"
#include "serve/chat_template.h"

using namespace rushlight;

namespace {

// A file in memory, for readers that open by name.
class Scratch {
 public:
  explicit Scratch(const std::string& bytes) : fd_(::memfd_create("input", 0)) {
    if (::write(fd_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  }
  ~Scratch() { ::close(fd_); }
  Scratch(const Scratch&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

void read_json(const std::string& bytes) {
  io::Json::parse(bytes, "input");
  io::Json::parse(bytes, "input", {.pack = true, .most_values = 1000});
}

void read_tokenizer(const std::string& bytes) {
  const auto tokenizer = generation::Tokenizer::parse(bytes);
  std::vector<int64_t> ids = tokenizer.encode("It's  a b<s>c 12\n\xc3\xa9\xcc\x81 \xe4\xbd\xa0 a");
  for (int64_t i = -1; i < 300; i += 7) ids.push_back(i);
  for (const bool skip : {true, false}) tokenizer.decode(ids, skip);
}

void read_safetensors(const std::string& bytes) {
  io::MemorySource source(bytes);
  io::read_safetensors_header(source, "input");
  load_safetensors(Scratch(bytes).path());
}

void read_pickle(const std::string& bytes) { pickle_load(std::vector<char>(bytes.begin(), bytes.end())); }

void read_pt(const std::string& bytes) { load_value(bytes.data(), bytes.size()); }

void read_torchscript(const std::string& bytes) {
  std::istringstream stream(bytes);
  jit::load(stream);
}

void read_npy(const std::string& bytes) { io::read_npy(Scratch(bytes).path()); }

// Checksums are made to fit: nobody finds them by chance.
void read_rl(const std::string& given) {
  std::string bytes = given;
  constexpr size_t kHeader = 32, kSection = 40;
  auto number = [&](size_t at) {
    uint64_t n = 0;
    std::memcpy(&n, bytes.data() + at, 8);
    return n;
  };
  auto put = [&](size_t at, uint64_t n) { std::memcpy(bytes.data() + at, &n, 8); };
  if (bytes.size() >= kHeader) {
    const size_t count = number(8) >> 32;
    if (count <= 64 && kHeader + count * kSection <= bytes.size()) {
      for (size_t i = 0; i < count; ++i) {
        const size_t entry = kHeader + i * kSection;
        const uint64_t from = number(entry + 16), size = number(entry + 24);
        if (from <= bytes.size() && size <= bytes.size() - from)
          put(entry + 32, io::xxh64(bytes.data() + from, size));
      }
      put(16, bytes.size());
      put(24, 0);
      put(24, io::xxh64(bytes.data(), kHeader + count * kSection));
    }
  }
  io::read_model(Scratch(bytes).path());
}

void read_template(const std::string& bytes) {
  const serve::ChatTemplate chat(bytes, "<s>", "</s>");
  chat.render({{"system", "a"}, {"user", "b \" <c>"}, {"assistant", ""}, {"user", "d"}});
}

struct Entry {
  std::string_view name;
  void (*read)(const std::string& bytes);
};
constexpr Entry kReaders[] = {
    {"json", read_json},
    {"tokenizer", read_tokenizer},
    {"safetensors", read_safetensors},
    {"pickle", read_pickle},
    {"pt", read_pt},
    {"torchscript", read_torchscript},
    {"npy", read_npy},
    {"rl", read_rl},
    {"template", read_template},
};
const Entry* reader = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("RUSHLIGHT_READER");
  for (const Entry& r : kReaders)
    if (name && r.name == name) reader = &r;
  if (!reader) {
    std::fprintf(stderr, "RUSHLIGHT_READER names none of the readers:");
    for (const Entry& r : kReaders) std::fprintf(stderr, " %s", r.name.data());
    std::fprintf(stderr, "\n");
    std::exit(2);
  }
  set_num_threads(1);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    reader->read(std::string(reinterpret_cast<const char*>(data), size));
  } catch (const Error&) {
  } catch (const std::bad_alloc&) {
  }
  return 0;
}
