// Mutation fuzzing of everything that reads files in C++: models of one file, .pt, safetensors, .npy,
// tokenizers.
//
//   rushlight-fuzz-readers --cases 100000 --seed 1 [--first N] [--seconds S] FILE...
//
// Seeds are real files, by their suffix. Half of the mutations change bytes anywhere; the others know the
// format, change words of a graph, an index, a pickle or a header, and put lengths and checksums right, so
// that what lies behind them is reached. A case gives a result or a rushlight::Error; anything else ends the
// process, and the last line that was written tells the number, which `--first N --cases 1` runs alone. Made
// for builds with sanitizers.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>

#include "core/crc32.h"
#include "core/parallel.h"
#include "dispatch/table.h"
#include "io/archive.h"
#include "io/checksum.h"
#include "io/model_file.h"
#include "io/npy.h"
#include "jit/executor.h"
#include "rushlight/generation.h"
#include "rushlight/serialize.h"

using namespace rushlight;

namespace {

constexpr std::array<const char*, 22> kWords = {
    "None", "True", "False", "inf", "nan", "-0.5", "1e300", "[]",  "[None]", "float64", "int64",
    "bool", "\"\"", "0",     "1",   "-1",  "2",    "64",    "255", "4096",   "F32",     "data_offsets"};
constexpr std::array<int64_t, 16> kNumbers = {
    0,         1,         -1,           2,         3,         7,        64, 65, 255, 4096,
    INT32_MAX, 1ll << 31, -(1ll << 31), 1ll << 40, INT64_MAX, INT64_MIN};

// --- chance

struct Draw {
  std::mt19937_64 bits;
  size_t below(size_t n) { return n ? bits() % n : 0; }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class List>
  auto of(const List& list) {
    return list[below(std::size(list))];
  }
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
}

std::string number(Draw& draw) { return std::to_string(draw.of(kNumbers)); }

// --- mutations of bytes and of text

void change_bytes(std::string& bytes, Draw& draw) {
  for (size_t edits = 1 + draw.below(3) * draw.below(3); edits && !bytes.empty(); --edits) {
    const size_t reach = draw.one_in(2) ? std::min<size_t>(bytes.size(), 256) : bytes.size();
    const size_t at = draw.below(reach), length = std::min(1 + draw.below(32), bytes.size() - at);
    switch (draw.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ 1 << draw.below(8));
        break;
      case 1:
        bytes[at] = static_cast<char>(draw.below(256));
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(draw.below(bytes.size()), length));
        break;
      case 4: {
        const int64_t n = draw.of(kNumbers);
        std::memcpy(&bytes[at], &n, std::min<size_t>(bytes.size() - at, draw.one_in(2) ? 4 : 8));
        break;
      }
      default:
        bytes.resize(at);
    }
  }
}

// Puts something else in the place of a word.
void change_word(std::string& text, Draw& draw, const std::vector<std::string>& names) {
  size_t at = draw.below(text.size()), end = at;
  while (at > 0 && is_word(text[at - 1])) --at;
  while (end < text.size() && is_word(text[end])) ++end;
  std::string other;
  switch (draw.below(4)) {
    case 0:
      other = number(draw);
      break;
    case 1:
      other = draw.of(kWords);
      break;
    case 2:
      other = names.empty() ? "x" : draw.of(names);
      break;
    default: {  // a word of the same text
      size_t from = draw.below(text.size()), to = from;
      while (from > 0 && is_word(text[from - 1])) --from;
      while (to < text.size() && is_word(text[to])) ++to;
      other = text.substr(from, to - from);
    }
  }
  text.replace(at, end - at, other);
}

void change_line(std::string& text, Draw& draw) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) return;
  const size_t a = draw.below(lines.size()), b = draw.below(lines.size());
  if (draw.one_in(3))
    std::swap(lines[a], lines[b]);
  else if (draw.one_in(2))
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(a), lines[b]);
  else
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(a));
  text.clear();
  for (const std::string& line : lines) text += line + "\n";
}

void change_text(std::string& text, Draw& draw, const std::vector<std::string>& names) {
  for (size_t edits = 1 + draw.below(3); edits && !text.empty(); --edits) {
    const size_t kind = draw.below(8);
    if (kind == 0)
      change_line(text, draw);
    else if (kind == 1)
      change_bytes(text, draw);
    else
      change_word(text, draw, names);
  }
}

// --- formats

template <class T>
T at(const std::string& bytes, size_t place) {
  T value{};
  if (place + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + place, sizeof value);
  return value;
}
template <class T>
void put(std::string& bytes, size_t place, T value) {
  if (place + sizeof value <= bytes.size()) std::memcpy(bytes.data() + place, &value, sizeof value);
}
size_t aligned(size_t n) { return (n + 63) / 64 * 64; }

// A model whose graph or index differs, with sizes and checksums that fit (io/model_file.h).
std::string change_model(const std::string& file, Draw& draw, const std::vector<std::string>& operators) {
  constexpr size_t kHeader = 32, kSection = 40;
  const size_t count = at<uint32_t>(file, 12), changed = draw.one_in(4) ? 1 : 0;
  std::string out(aligned(kHeader + count * kSection), '\0');
  std::memcpy(out.data(), file.data(), kHeader + count * kSection);
  for (size_t i = 0; i < count; ++i) {
    const size_t entry = kHeader + i * kSection;
    std::string part = file.substr(at<uint64_t>(file, entry + 16), at<uint64_t>(file, entry + 24));
    if (i == changed) change_text(part, draw, operators);
    put<uint64_t>(out, entry + 16, out.size());
    put<uint64_t>(out, entry + 24, part.size());
    put<uint64_t>(out, entry + 32, io::xxh64(part.data(), part.size()));
    if (draw.one_in(200)) put<int64_t>(out, entry + 16 + 8 * draw.below(2), draw.of(kNumbers));
    out += part;
    out.resize(aligned(out.size()));
  }
  put<uint64_t>(out, 16, out.size());
  put<uint64_t>(out, 24, 0);
  put<uint64_t>(out, 24, io::xxh64(out.data(), kHeader + count * kSection));
  return out;
}

// An archive whose pickle differs, with lengths and checksums that fit.
std::string change_archive(const std::string& file, Draw& draw) {
  const io::Archive archive(std::make_unique<io::MemorySource>(file), "the seed");
  std::string out;
  io::ArchiveWriter writer("archive");
  const std::string left_out =
      draw.one_in(10) ? archive.records()[draw.below(archive.records().size())].name : "";
  for (const io::Archive::Record& record : archive.records()) {
    std::string content = archive.read(record.name);
    if (record.name == "data.pkl" || draw.one_in(10)) change_bytes(content, draw);
    if (record.name == left_out) continue;
    out += writer.header(record.name, content.size(), crc32(content.data(), content.size())) + content;
  }
  return out + writer.end();
}

std::string change_safetensors(const std::string& file, Draw& draw) {
  const auto length = std::min<uint64_t>(at<uint64_t>(file, 0), file.size() - 8);
  std::string header = file.substr(8, length);
  change_text(header, draw, {});
  std::string out(8, '\0');
  put<uint64_t>(out, 0, draw.one_in(20) ? static_cast<uint64_t>(draw.of(kNumbers)) : header.size());
  return out + header + file.substr(8 + length);
}

std::string change_npy(const std::string& file, Draw& draw) {
  const size_t length = std::min<size_t>(at<uint16_t>(file, 8), file.size() - 10);
  std::string header = file.substr(10, length);
  change_text(header, draw, {"'<f4'", "'|b1'", "'>i8'", "'<c16'", "'O'", "(2,3)", "fortran_order"});
  std::string out = file.substr(0, 10);
  put<uint16_t>(out, 8, static_cast<uint16_t>(header.size()));
  return out + header + file.substr(10 + length);
}

// --- what is done with a file

// Inputs as the graph wants them, with small numbers where callers choose; none where they would be large.
std::vector<Tensor> inputs_of(const jit::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const jit::ValueId id : graph.inputs) {
    const jit::Type& type = graph.values[id].type;
    Dims sizes;
    double count = 1;
    for (const jit::Size& s : type.sizes) {
      const int64_t n = s.symbol < 0 ? s.offset : s.offset + s.factor * 3;
      sizes.push_back(std::max<int64_t>(n, 0));
      count *= static_cast<double>(sizes[sizes.size() - 1]);
    }
    if (!(count <= 1 << 16)) RL_FAIL("an input is too large for this test");
    inputs.push_back(empty_tensor(sizes, type.dtype));
    if (const size_t nbytes = inputs.back().nbytes()) std::memset(inputs.back().data_ptr(), 0, nbytes);
  }
  return inputs;
}

void read_model(const std::string& path) {
  io::ModelFile file = io::read_model(path);
  size_t bytes = 0;
  for (const io::StateTensor& t : file.state) bytes += t.nbytes();
  if (bytes > 1 << 20) RL_FAIL("the state is too large for this test");
  std::vector<Tensor> all;
  for (const io::StateTensor& t : file.state) all.push_back(t.make());
  for (const io::Method& method : file.methods) {
    jit::Executor executor(method.graph, file.constants_of(method), {.mapped_constants = true});
    std::vector<Tensor> state;
    for (const size_t i : file.state_of(method)) state.push_back(all[i]);
    for (int i = 0; i < 2; ++i) executor.run(inputs_of(executor.graph()), state);
  }
}

// A tokenizer, and what it makes of a text and of numbers.
void read_tokenizer(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  const auto tokenizer = generation::Tokenizer::parse(content.str());
  const std::string text = "It's  a b<s>c 12\n\xc3\xa9\xcc\x81 \xe4\xbd\xa0 \xf0\x9f\x8e\x89 a";
  std::vector<int64_t> ids = tokenizer.encode(text);
  for (int64_t i = -1; i < 300; i += 7) ids.push_back(i);
  for (const bool skip : {true, false}) tokenizer.decode(ids, skip);
}

struct Seed {
  std::string path, suffix, content;
};

std::string mutate(const Seed& seed, Draw& draw, const std::vector<std::string>& operators) {
  std::string changed = seed.content;
  if (draw.one_in(2)) {
    change_bytes(changed, draw);
    return changed;
  }
  if (seed.suffix == "rl") return change_model(changed, draw, operators);
  if (seed.suffix == "pt") return change_archive(changed, draw);
  if (seed.suffix == "safetensors") return change_safetensors(changed, draw);
  if (seed.suffix == "json") {
    change_text(changed, draw,
                {"null", "true", "{}", "\"Sequence\"", "\"a\"", "\"<s>\"", "\"(a|b)*+\"", "[[]]"});
    return changed;
  }
  return change_npy(changed, draw);
}

void use(const Seed& seed, const std::string& path) {
  if (seed.suffix == "rl")
    read_model(path);
  else if (seed.suffix == "pt")
    load_value(path);
  else if (seed.suffix == "safetensors")
    load_safetensors(path);
  else if (seed.suffix == "json")
    read_tokenizer(path);
  else
    io::read_npy(path);
}

// --- the program

struct Request {
  uint64_t cases = 10000, seed = 0, first = 0;
  double seconds = 1e9;
  std::vector<Seed> seeds;
};

Request parse(int argc, char** argv) {
  Request request;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    auto value = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--cases")
      request.cases = value();
    else if (word == "--seed")
      request.seed = value();
    else if (word == "--first")
      request.first = value();
    else if (word == "--seconds")
      request.seconds = static_cast<double>(value());
    else {
      std::ifstream in(word, std::ios::binary);
      std::stringstream content;
      content << in.rdbuf();
      request.seeds.push_back({word, word.substr(word.rfind('.') + 1), content.str()});
    }
  }
  return request;
}

// A file in memory that readers open by name.
class Scratch {
 public:
  Scratch() : fd_(::memfd_create("case", 0)), path_("/proc/self/fd/" + std::to_string(fd_)) {}
  ~Scratch() { ::close(fd_); }
  Scratch(const Scratch&) = delete;
  void fill(const std::string& bytes) const {
    const bool good = ::ftruncate(fd_, 0) == 0 &&
                      ::pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    if (!good) std::abort();
  }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

// Of this process, not of the clock: the machine may have other things to do.
void limit_processor_time(time_t seconds) {
  const itimerval timer = {.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  const Request request = parse(argc, argv);
  if (request.seeds.empty()) {
    std::fprintf(stderr, "no seeds are given: files .rl, .pt, .safetensors, .npy\n");
    return 2;
  }
  set_num_threads(1);
  std::vector<std::string> operators;
  for (const Op& op : operator_table().ops())
    operators.emplace_back(op.schema.text.substr(0, op.schema.text.find('(')));
  uint64_t read = 0, refused = 0, number = request.first;
  const auto start = std::chrono::steady_clock::now();
  for (const uint64_t end = number + request.cases; number < end; ++number) {
    Draw draw{std::mt19937_64(request.seed * 0x9E3779B97F4A7C15 + number)};
    const Seed& seed = request.seeds[draw.below(request.seeds.size())];
    std::fprintf(stderr, "\r%llu %s", static_cast<unsigned long long>(number), seed.suffix.c_str());
    limit_processor_time(60);  // a case that takes this long is a fault
    const Scratch scratch;     // a new one each time: models that live keep theirs
    try {
      scratch.fill(mutate(seed, draw, operators));
      use(seed, scratch.path());
      ++read;
    } catch (const Error&) {
      ++refused;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > request.seconds) {
      ++number;
      break;
    }
  }
  std::printf("\n%llu cases: %llu read, %llu refused\n",
              static_cast<unsigned long long>(number - request.first), static_cast<unsigned long long>(read),
              static_cast<unsigned long long>(refused));
  return 0;
}
