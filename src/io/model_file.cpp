#include "io/model_file.h"

#include <cstring>
#include <unordered_set>

#include "io/atomic_file.h"
#include "io/checksum.h"
#include "io/mapped_file.h"
#include "jit/lexer.h"
#include "jit/text.h"
#include "jit/words.h"
#include "ops/copy.h"
#include "ops/factory.h"

namespace rushlight::io {
namespace {

constexpr char kMagic[8] = {'\x93', 'R', 'L', 'M', 'O', 'D', 'E', 'L'};
constexpr size_t kAlignment = 64;
constexpr uint32_t kMaxSections = 64;
constexpr size_t kMaxMethods = 32;
constexpr int64_t kLargestState = int64_t{1} << 46;

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
  Reader(const std::string& path, Ref<MappedFile> file) : path_(path), file_(std::move(file)) {}

  ModelFile run() {
    check_head();
    ModelFile model;
    model.file = file_;
    try {
      read_methods(model);
      read_index(section("index"), [&](std::string name, DType dtype, const Dims& sizes, int64_t offset) {
        RL_CHECK_VALUE(offset >= 0, "a constant without elements");
        model.constants.insert_or_assign(std::move(name), constant(find("weights"), dtype, sizes, offset));
      });
      if (version_ > 1) read_state(model);
    } catch (const Error& e) {
      fail(e.what());
    }
    for (const Section& s : table_)
      if (s.text().starts_with('@')) model.texts.emplace(s.text().substr(1), bytes_of(s));
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
    version_ = header.version;
    if (version_ < 1 || version_ > kModelVersion)
      fail(str("it has version ", version_, " of the format, but this program reads versions 1 to ",
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
  std::string_view bytes_of(const Section& s) const {
    return {reinterpret_cast<const char*>(file_->data() + s.offset), static_cast<size_t>(s.size)};
  }
  std::string_view section(std::string_view name) const { return bytes_of(find(name)); }

  void read_methods(ModelFile& model) {
    if (version_ == 1) {
      model.methods.push_back({std::string(kOnlyMethod), jit::parse_graph(section("graph"))});
      RL_CHECK_VALUE(model.methods[0].graph.states().empty(), "the graph has a state, but the file has none");
      return;
    }
    jit::Lexer lexer(section("methods"));
    for (jit::Token name = lexer.next(); !name.is(jit::Token::Kind::End); name = lexer.next()) {
      const bool known = std::ranges::find(model.methods, name.string, &Method::name) != model.methods.end();
      if (!name.is(jit::Token::Kind::String) || name.string.empty() || known ||
          !lexer.next().is(jit::Token::Kind::NewLine))
        lexer.fail("the list of the methods is damaged");
      const std::string graph = str("graph.", model.methods.size());
      try {
        model.methods.push_back({std::move(name.string), jit::parse_graph(section(graph))});
      } catch (const Error& e) {
        RL_FAIL("its section '", graph, "': ", e.what());
      }
    }
    RL_CHECK(!model.methods.empty(), "it has no method");
  }

  void read_state(ModelFile& model) {
    try {
      read_index(section("state"), [&](std::string name, DType dtype, const Dims& sizes, int64_t offset) {
        StateTensor t{std::move(name), dtype, sizes, {}};
        RL_CHECK(std::ranges::find(model.state, t.name, &StateTensor::name) == model.state.end(),
                 "the tensor '", t.name, "' is there twice");
        RL_CHECK(checked_numel(sizes) <= kLargestState / static_cast<int64_t>(element_size(dtype)),
                 "the tensor '", t.name, "' is larger than any memory");
        if (offset >= 0) t.initial = constant(find("weights"), dtype, sizes, offset);
        model.state.push_back(std::move(t));
      });
    } catch (const Error& e) {
      RL_FAIL("its section 'state': ", e.what());
    }
    for (const Method& method : model.methods) check_state(model, method);
  }

  // What a graph says of its state is what the file holds.
  static void check_state(const ModelFile& model, const Method& method) {
    for (const jit::Node& node : method.graph.nodes) {
      if (!node.is_state()) continue;
      const auto found = std::ranges::find(model.state, node.constant, &StateTensor::name);
      RL_CHECK(found != model.state.end(), "the method '", method.name, "' uses the state '", node.constant,
               "', which is not in the file");
      if (node.results.empty() || node.results[0] == jit::kNoValue) continue;
      const jit::Type& type = method.graph.values[node.results[0]].type;
      const bool same = type.has_sizes && type.dtype == found->dtype &&
                        std::ranges::equal(type.sizes, found->sizes, [](const jit::Size& size, int64_t n) {
                          return size.is_number() && size.offset == n;
                        });
      RL_CHECK(same, "the method '", method.name, "' takes the state '", node.constant, "' for ",
               method.graph.type_text(type), ", but it is ", found->dtype, found->sizes);
    }
  }

  // Calls f(name, dtype, sizes, offset) for each line; the offset of `zeros` is -1.
  template <class F>
  static void read_index(std::string_view text, F&& f) {
    using Kind = jit::Token::Kind;
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
      const jit::Token offset = lexer.next();
      const bool zeros = offset.is_word("zeros");
      if (!zeros && (!offset.is(Kind::Integer) || offset.integer < 0))
        lexer.fail("the index of the constants is damaged");
      expect(Kind::NewLine);
      f(std::move(name.string), *dtype, sizes, zeros ? -1 : offset.integer);
    }
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
  uint32_t version_ = 0;
};

// --- writing

// A constant as it goes into the file.
Tensor plain(const std::string& name, const Tensor& t) {
  RL_CHECK(t.defined() && t.is_cpu() && !(t->flags & (kSpecialElements | kWrapped)), "the constant '", name,
           "' is no plain tensor on the CPU: move the model to the CPU before it is saved");
  return ops::contiguous(t);
}

constexpr size_t kSmallConstant = size_t{1} << 16;

struct Contents {
  std::vector<std::pair<std::string, std::string>> texts;  // sections before the weights
  std::vector<Tensor> weights;
};

// The constants of all methods under one name each.
class Merger {
 public:
  // The graph with the names that its constants have in the file.
  jit::Graph add(const WrittenMethod& method) {
    jit::Graph graph = method.graph;
    std::unordered_map<std::string, std::string> renamed;
    for (const std::string& name : graph.constants()) {
      const auto found = method.constants.find(name);
      RL_CHECK_VALUE(found != method.constants.end(), "there is no constant '", name,
                     "', which the graph reads");
      renamed[name] = place(name, method.name, plain(name, found->second));
    }
    for (jit::Node& node : graph.nodes)
      if (node.is_constant()) node.constant = renamed.at(node.constant);
    return graph;
  }
  std::vector<std::pair<std::string, Tensor>> take() { return std::move(named_); }

 private:
  std::string place(const std::string& name, const std::string& method, const Tensor& t) {
    const uint64_t sum = t.nbytes() ? xxh64(t.data_ptr(), t.nbytes()) : 0;
    const auto [first, last] = by_sum_.equal_range(sum);
    for (auto i = first; i != last; ++i) {
      const Tensor& other = named_[i->second].second;
      if (other.dtype() == t.dtype() && other.sizes() == t.sizes() &&
          (!t.nbytes() || std::memcmp(other.data_ptr(), t.data_ptr(), t.nbytes()) == 0))
        return named_[i->second].first;
    }
    std::string own = name;
    if (taken_.contains(own)) own = str(method, ".", name);
    while (!taken_.insert(own).second) own += '_';
    by_sum_.emplace(sum, named_.size());
    named_.emplace_back(own, t);
    return own;
  }

  std::vector<std::pair<std::string, Tensor>> named_;
  std::unordered_set<std::string> taken_;
  std::unordered_multimap<uint64_t, size_t> by_sum_;
};

bool all_zero(const Tensor& t) {
  const auto* bytes = static_cast<const char*>(t.data_ptr());
  return std::all_of(bytes, bytes + t.nbytes(), [](char c) { return c == 0; });
}

bool needs_version_2(const WrittenModel& model) {
  return model.methods.size() != 1 || model.methods[0].name != kOnlyMethod || !model.state.empty();
}

Contents collect(const WrittenModel& model) {
  RL_CHECK_VALUE(!model.methods.empty() && model.methods.size() <= kMaxMethods, "a model has from 1 to ",
                 kMaxMethods, " methods, not ", model.methods.size());
  Contents c;
  Merger merger;
  std::string names, index, state;
  std::vector<std::string> graphs;
  for (const WrittenMethod& method : model.methods) {
    names += jit::quoted(method.name) + "\n";
    graphs.push_back(jit::print_graph(merger.add(method)));
  }
  std::vector<std::pair<std::string, Tensor>> named = merger.take();
  // Small ones together: one between two large ones would keep pages of theirs in memory, megabytes of them.
  std::ranges::stable_partition(named, [](const auto& n) { return n.second.nbytes() < kSmallConstant; });
  size_t offset = 0;
  auto line = [&](const std::string& name, const Tensor& t) {
    c.weights.push_back(t);
    const size_t at = std::exchange(offset, aligned(offset + t.nbytes()));
    return str(jit::quoted(name), " ", t.dtype(), " ", t.sizes(), " ", at, "\n");
  };
  for (const auto& [name, t] : named) index += line(name, t);
  for (const auto& [name, given] : model.state) {
    const Tensor t = plain(name, given);
    const bool zeros = all_zero(t);
    state += zeros ? str(jit::quoted(name), " ", t.dtype(), " ", t.sizes(), " zeros\n") : line(name, t);
  }
  if (needs_version_2(model)) {
    c.texts.emplace_back("methods", std::move(names));
    for (size_t i = 0; i < graphs.size(); ++i) c.texts.emplace_back(str("graph.", i), std::move(graphs[i]));
    c.texts.emplace_back("state", std::move(state));
  } else {
    c.texts.emplace_back("graph", std::move(graphs[0]));
  }
  c.texts.emplace_back("index", std::move(index));
  for (const auto& [name, text] : model.texts) {
    RL_CHECK_VALUE(!name.empty() && name.size() < sizeof Section::name - 1,
                   "a text of a model needs a name of 1 to ", sizeof Section::name - 2, " letters, not '",
                   name, "'");
    c.texts.emplace_back("@" + name, text);
  }
  RL_CHECK_VALUE(c.texts.size() < kMaxSections, "a model of ", c.texts.size(), " sections");
  return c;
}

class Writer {
 public:
  explicit Writer(std::string path) : file_(std::move(path), "cannot write the model") {}

  void run(const Contents& c, uint32_t version) {
    std::string weights;  // padded, as they will lie
    for (const Tensor& t : c.weights) {
      if (t.nbytes()) weights.append(static_cast<const char*>(t.data_ptr()), t.nbytes());
      weights.resize(aligned(weights.size()));
    }
    std::vector<std::pair<std::string_view, std::string_view>> parts(c.texts.begin(), c.texts.end());
    parts.emplace_back("weights", weights);
    std::vector<Section> table(parts.size());
    size_t at = aligned(sizeof(Header) + table.size() * sizeof(Section));
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].first.copy(table[i].name, sizeof table[i].name - 1);
      table[i].offset = at;
      table[i].size = parts[i].second.size();
      table[i].checksum = xxh64(parts[i].second.data(), parts[i].second.size());
      at = aligned(at + parts[i].second.size());
    }
    Header header{{}, version, static_cast<uint32_t>(parts.size()), at, 0};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.checksum = head_checksum(header, table.data());
    file_.write({reinterpret_cast<const char*>(&header), sizeof header});
    file_.write({reinterpret_cast<const char*>(table.data()), table.size() * sizeof(Section)});
    for (const auto& [name, bytes] : parts) {
      pad();
      file_.write(bytes);
    }
    pad();
    file_.commit();
  }

 private:
  void pad() {
    static constexpr char zeros[kAlignment] = {};
    file_.write({zeros, aligned(file_.written()) - file_.written()});
  }

  AtomicFile file_;
};

}  // namespace

ModelFile read_model(const std::string& path) { return read_model(MappedFile::open(path), path); }

ModelFile read_model(Ref<MappedFile> file, const std::string& name) {
  RL_CHECK_VALUE(reinterpret_cast<uintptr_t>(file->data()) % kAlignment == 0,
                 "the bytes of a model must begin at a multiple of ", kAlignment);
  return Reader(name, std::move(file)).run();
}

void write_model(const std::string& path, const WrittenModel& model) {
  Writer(path).run(collect(model), needs_version_2(model) ? kModelVersion : 1);
}
void write_model(const std::string& path, const jit::Graph& graph, const jit::Constants& constants) {
  write_model(path, {{{std::string(kOnlyMethod), graph, constants}}, {}, {}});
}

jit::Constants ModelFile::constants_of(const Method& method) const {
  jit::Constants own;
  for (const std::string& name : method.graph.constants())
    if (const auto found = constants.find(name); found != constants.end()) own.insert(*found);
  return own;
}

std::vector<size_t> ModelFile::state_of(const Method& method) const {
  std::vector<size_t> places;
  for (const std::string& name : method.graph.states()) {
    const auto found = std::ranges::find(state, name, &StateTensor::name);
    RL_CHECK(found != state.end(), "there is no state '", name, "'");
    places.push_back(static_cast<size_t>(found - state.begin()));
  }
  return places;
}

size_t StateTensor::nbytes() const { return static_cast<size_t>(checked_numel(sizes)) * element_size(dtype); }

Tensor StateTensor::make() const {
  if (!initial.defined()) return ops::zeros(sizes, dtype, std::nullopt, std::nullopt, std::nullopt);
  return ops::clone(initial, std::nullopt);
}

void StateTensor::reset(const Tensor& t) const {
  if (initial.defined())
    ops::copy_(t, initial, false);
  else
    ops::zero_(t);
}

}  // namespace rushlight::io
