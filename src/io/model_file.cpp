#include "io/model_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "io/checksum.h"
#include "io/mapped_file.h"
#include "jit/lexer.h"
#include "jit/text.h"
#include "jit/words.h"
#include "ops/copy.h"

namespace rushlight::io {
namespace {

constexpr char kMagic[8] = {'\x93', 'R', 'L', 'M', 'O', 'D', 'E', 'L'};
constexpr size_t kAlignment = 64;
constexpr uint32_t kMaxSections = 64;

struct Header {
  char magic[8];
  uint32_t version, sections;
  uint64_t file_size;
  uint64_t checksum;  // of this header with zero here, and of the table
};
struct Section {
  char name[16];  // ends with zeros
  uint64_t offset, size, checksum;

  std::string_view text() const { return {name, strnlen(name, sizeof name)}; }
};
static_assert(sizeof(Header) == 32 && sizeof(Section) == 40);

uint64_t head_checksum(Header header, const Section* table) {
  header.checksum = 0;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes.append(reinterpret_cast<const char*>(table), header.sections * sizeof(Section));
  return xxh64(bytes.data(), bytes.size());
}

size_t aligned(size_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

// --- reading

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(MappedFile::open(path)) {}

  ModelFile run() {
    check_head();
    const std::string_view graph = section("graph"), index = section("index");
    ModelFile model;
    try {
      model.graph = jit::parse_graph(graph);
      model.constants = read_index(index);
    } catch (const Error& e) {
      fail(e.what());
    }
    return model;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    RL_FAIL("cannot read the model '", path_, "': ", what);
  }

  void check_head() {
    Header header;
    if (file_->size() < sizeof header) fail("it is no model, or was cut short: export it again");
    std::memcpy(&header, file_->data(), sizeof header);
    if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
      fail(std::memcmp(header.magic, "PK", 2) == 0
               ? "it is an archive of torch.save or torch.jit.save: load the model in Python and export it "
                 "with rushlight.export.save_file(model, path, example_inputs)"
               : "it is not a file that rushlight.export.save_file wrote");
    if (header.version != kModelVersion)
      fail(str("it has version ", header.version, " of the format, but this program reads version ",
               kModelVersion, ": export the model again"));
    if (header.file_size != file_->size())
      fail(str("it was cut short or appended to: it should have ", header.file_size, " bytes, but has ",
               file_->size()));
    if (header.sections > kMaxSections || file_->size() < sizeof header + header.sections * sizeof(Section))
      fail("its table of contents is damaged");
    table_.resize(header.sections);
    if (header.sections)
      std::memcpy(table_.data(), file_->data() + sizeof header, header.sections * sizeof(Section));
    if (head_checksum(header, table_.data()) != header.checksum) fail("its table of contents is damaged");
    for (const Section& s : table_) check_section(s);
  }
  void check_section(const Section& s) const {
    if (s.offset > file_->size() || s.size > file_->size() - s.offset || s.offset % kAlignment)
      fail("its table of contents is damaged");
    Xxh64 sum;
    file_->read_through(s.offset, s.size, [&](auto part) { sum.add(part.data(), part.size()); });
    if (sum.finish() != s.checksum)
      fail(str("its section '", s.text(), "' is damaged: the checksum differs"));
  }

  const Section& find(std::string_view name) const {
    for (const Section& s : table_)
      if (s.text() == name) return s;
    fail(str("it has no section '", name, "'"));
  }
  std::string_view section(std::string_view name) const {
    const Section& s = find(name);
    return {reinterpret_cast<const char*>(file_->data() + s.offset), s.size};
  }

  jit::Constants read_index(std::string_view text) {
    using Kind = jit::Token::Kind;
    const Section& weights = find("weights");
    jit::Constants constants;
    jit::Lexer lexer(text);
    auto expect = [&](Kind kind) {
      jit::Token t = lexer.next();
      if (!t.is(kind)) lexer.fail("the index of the constants is damaged");
      return t;
    };
    for (jit::Token name = lexer.next(); !name.is(Kind::End); name = lexer.next()) {
      if (!name.is(Kind::String)) lexer.fail("the index of the constants is damaged");
      const auto dtype = jit::dtype_word(expect(Kind::Word).text);
      if (!dtype || !expect(Kind::Mark).is_mark("[")) lexer.fail("the index of the constants is damaged");
      Dims sizes;
      for (jit::Token t = lexer.next(); !t.is_mark("]"); t = lexer.next()) {
        if (t.is_mark(",")) continue;
        if (!t.is(Kind::Integer) || t.integer < 0 || sizes.size() == 64)
          lexer.fail("the index of the constants is damaged");
        sizes.push_back(t.integer);
      }
      const int64_t offset = expect(Kind::Integer).integer;
      constants.insert_or_assign(std::move(name.string), constant(weights, *dtype, sizes, offset));
      expect(Kind::NewLine);
    }
    return constants;
  }

  Tensor constant(const Section& weights, DType dtype, const Dims& sizes, int64_t offset) {
    const int64_t count = checked_numel(sizes);
    const auto itemsize = static_cast<int64_t>(element_size(dtype));
    const auto room = static_cast<int64_t>(weights.size);
    RL_CHECK(offset >= 0 && offset <= room && offset % static_cast<int64_t>(kAlignment) == 0 &&
                 count <= (room - offset) / itemsize,
             "a constant lies outside of the file");
    const auto start = static_cast<size_t>(weights.offset) + static_cast<size_t>(offset);
    Storage storage = file_->storage(start, static_cast<size_t>(count * itemsize));
    Tensor t(Ref<TensorImpl>::adopt(new TensorImpl(std::move(storage), 0, dtype, {})));
    t->set_contiguous(sizes);
    return t;
  }

  const std::string& path_;
  Ref<MappedFile> file_;
  std::vector<Section> table_;
};

// --- writing

// A constant as it goes into the file.
Tensor plain(const std::string& name, const Tensor& t) {
  RL_CHECK(t.defined() && t.is_cpu() && !(t->flags & (kSparseTensor | kWrapped)), "the constant '", name,
           "' is no plain tensor on the CPU: move the model to the CPU before it is saved");
  return ops::contiguous(t);
}

constexpr size_t kSmallConstant = size_t{1} << 16;

struct Contents {
  std::string graph, index;
  std::vector<Tensor> weights;
};

Contents collect(const jit::Graph& graph, const jit::Constants& constants) {
  Contents c;
  c.graph = jit::print_graph(graph);
  std::vector<std::pair<std::string, Tensor>> named;
  for (const std::string& name : graph.constants()) {
    const auto found = constants.find(name);
    RL_CHECK_VALUE(found != constants.end(), "there is no constant '", name, "', which the graph reads");
    named.emplace_back(name, plain(name, found->second));
  }
  // Small ones together: one between two large ones would keep pages of theirs in memory, megabytes of them.
  std::ranges::stable_partition(named, [](const auto& n) { return n.second.nbytes() < kSmallConstant; });
  size_t offset = 0;
  for (const auto& [name, t] : named) {
    c.index += str(jit::quoted(name), " ", t.dtype(), " ", t.sizes(), " ", offset, "\n");
    offset = aligned(offset + t.nbytes());
    c.weights.push_back(t);
  }
  return c;
}

class Writer {
 public:
  explicit Writer(std::string path)
      : path_(std::move(path)), partial_(str(path_, ".", ::getpid(), ".partial")) {}
  ~Writer() {
    if (file_) std::fclose(file_), std::remove(partial_.c_str());
  }
  Writer(const Writer&) = delete;

  void run(const Contents& c) {
    std::string weights;  // padded, as they will lie
    for (const Tensor& t : c.weights) {
      if (t.nbytes()) weights.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
      weights.resize(aligned(weights.size()));
    }
    const std::pair<const char*, std::string_view> parts[] = {
        {"graph", c.graph}, {"index", c.index}, {"weights", weights}};
    Section table[std::size(parts)] = {};
    size_t at = aligned(sizeof(Header) + sizeof table);
    for (size_t i = 0; i < std::size(parts); ++i) {
      std::strncpy(table[i].name, parts[i].first, sizeof table[i].name - 1);
      table[i].offset = at;
      table[i].size = parts[i].second.size();
      table[i].checksum = xxh64(parts[i].second.data(), parts[i].second.size());
      at = aligned(at + parts[i].second.size());
    }
    Header header{{}, kModelVersion, std::size(parts), at, 0};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.checksum = head_checksum(header, table);
    file_ = std::fopen(partial_.c_str(), "wb");
    check(file_ != nullptr);
    put({reinterpret_cast<const char*>(&header), sizeof header});
    put({reinterpret_cast<const char*>(table), sizeof table});
    for (const auto& [name, bytes] : parts) {
      pad();
      put(bytes);
    }
    pad();
    finish();
  }

 private:
  void check(bool good) const {
    RL_CHECK(good, "cannot write the model '", path_, "': ", std::strerror(errno));
  }
  void put(std::string_view bytes) {
    check(bytes.empty() || std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
    written_ += bytes.size();
  }
  void pad() {
    static constexpr char zeros[kAlignment] = {};
    put({zeros, aligned(written_) - written_});
  }
  void finish() {
    const int status = std::fclose(std::exchange(file_, nullptr));
    const bool moved = status == 0 && std::rename(partial_.c_str(), path_.c_str()) == 0;
    if (!moved) std::remove(partial_.c_str());
    check(moved);
  }

  const std::string path_, partial_;
  std::FILE* file_ = nullptr;
  size_t written_ = 0;
};

}  // namespace

ModelFile read_model(const std::string& path) { return Reader(path).run(); }

void write_model(const std::string& path, const jit::Graph& graph, const jit::Constants& constants) {
  Writer(path).run(collect(graph, constants));
}

}  // namespace rushlight::io
