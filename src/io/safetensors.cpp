#include "io/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "core/error.h"
#include "io/json_string.h"

namespace rushlight::io {
namespace {

constexpr uint64_t kLargestHeader = 100'000'000;

// --- JSON, as much of it as a header uses

class HeaderText {
 public:
  HeaderText(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  [[noreturn]] void fail(const std::string& what) const {
    RL_FAIL("safetensors: the header of ", file_, " ", what, " at byte ", at_);
  }
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    return ++at_, true;
  }
  void expect(char c) {
    if (!accept(c)) fail(str("is not JSON of this format: expected '", c, "'"));
  }
  void expect_end() {
    skip_space();
    if (at_ != text_.size()) fail("goes on behind its table");
  }
  bool accept_null() {
    skip_space();
    const bool found = text_.substr(at_, 4) == "null";
    if (found) at_ += 4;
    return found;
  }
  std::string string() {
    expect('"');
    return read_json_string(text_, at_, [&](const char* what) { fail(what); });
  }
  int64_t size() {
    skip_space();
    const size_t start = at_;
    int64_t v = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_)
      if (__builtin_mul_overflow(v, int64_t{10}, &v) || __builtin_add_overflow(v, text_[at_] - '0', &v))
        fail("has a number that is too large");
    if (at_ == start || (text_[start] == '0' && at_ > start + 1)) fail("has no size where one is expected");
    return v;
  }
  template <class F>
  void list(char open, char close, F&& item) {
    expect(open);
    if (accept(close)) return;
    do item();
    while (accept(','));
    expect(close);
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_]) && text_[at_]) ++at_;
  }

  std::string_view text_;
  const std::string& file_;
  size_t at_ = 0;
};

// --- the header

class HeaderReader {
 public:
  HeaderReader(std::string_view text, uint64_t data, uint64_t file_size, const std::string& file)
      : json_(text, file), data_(data), file_size_(file_size), file_(file) {}

  SafetensorsHeader run() {
    json_.list('{', '}', [&] { entry(); });
    json_.expect_end();
    check_order();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(std::string_view name, const std::string& what) const {
    RL_FAIL("safetensors: ", file_, ": `", name.substr(0, 200), "` ", what);
  }

  void entry() {
    std::string name = json_.string();
    json_.expect(':');
    if (!names_.insert(name).second) json_.fail("has the name `" + name.substr(0, 200) + "` twice");
    if (name != "__metadata__") return tensor(std::move(name));
    if (json_.accept_null()) return;
    header_.metadata.emplace();
    json_.list('{', '}', [&] {
      std::string key = json_.string();
      json_.expect(':');
      header_.metadata->emplace_back(std::move(key), json_.string());
    });
  }

  void tensor(std::string name) {
    SafetensorsEntry e;
    e.name = std::move(name);
    std::string type;
    std::vector<int64_t> shape, offsets;
    unsigned seen = 0;
    const auto first_time = [&](unsigned bit) {
      if (seen & bit) fail(e.name, "is described twice");
      seen |= bit;
    };
    json_.list('{', '}', [&] {
      const std::string key = json_.string();
      json_.expect(':');
      if (key == "dtype") {
        first_time(1), type = json_.string();
      } else if (key == "shape") {
        first_time(2), json_.list('[', ']', [&] { shape.push_back(json_.size()); });
      } else if (key == "data_offsets") {
        first_time(4), json_.list('[', ']', [&] { offsets.push_back(json_.size()); });
      } else {
        fail(e.name, "has the unknown property '" + key.substr(0, 40) + "'");
      }
    });
    if (seen != 7 || offsets.size() != 2 || shape.size() > 64)
      fail(e.name, "is not described by dtype, shape and data_offsets");
    const auto found = std::ranges::find(kSafetensorsTypes, type, &SafetensorsType::name);
    if (found == std::end(kSafetensorsTypes))
      fail(e.name, "has the unknown type '" + type.substr(0, 40) + "'");
    e.dtype = found->dtype;
    e.shape = Dims(shape.data(), shape.size());
    int64_t nbytes = 0;
    if (offsets[0] > offsets[1] ||
        __builtin_mul_overflow(checked_numel(e.shape), static_cast<int64_t>(element_size(e.dtype)),
                               &nbytes) ||
        nbytes != offsets[1] - offsets[0])
      fail(e.name, str("of type ", type, ", shape ", e.shape, " does not fill the bytes from ", offsets[0],
                       " to ", offsets[1]));
    e.begin = static_cast<uint64_t>(offsets[0]), e.end = static_cast<uint64_t>(offsets[1]);
    header_.entries.push_back(std::move(e));
  }

  // Nothing lies between the tensors, and no two share bytes. Turns offsets into positions in the file.
  void check_order() {
    std::ranges::sort(header_.entries, {}, [](const auto& e) { return std::pair(e.begin, e.end); });
    uint64_t at = 0;
    for (SafetensorsEntry& e : header_.entries) {
      if (e.begin != at) fail(e.name, str("begins at ", e.begin, " where ", at, " was expected"));
      at = e.end;
      e.begin += data_, e.end += data_;
    }
    if (at != file_size_ - data_)
      RL_FAIL("safetensors: ", file_, " holds ", file_size_ - data_, " bytes of data, its header wants ", at);
  }

  HeaderText json_;
  uint64_t data_, file_size_;
  const std::string& file_;
  std::unordered_set<std::string> names_;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader read_safetensors_header(ByteSource& bytes, const std::string& file) {
  uint64_t length = 0;
  RL_CHECK(bytes.read(0, &length, sizeof length) == sizeof length, "safetensors: ", file, " is too short, ",
           bytes.size(), " bytes");
  RL_CHECK(length <= std::min(bytes.size() - sizeof length, kLargestHeader), "safetensors: ", file, " has ",
           bytes.size(), " bytes, but a header of ", length);
  std::string text(length, '\0');
  RL_CHECK(bytes.read(sizeof length, text.data(), length) == length, "safetensors: ", file, " ends early");
  return HeaderReader(text, sizeof length + length, bytes.size(), file).run();
}

}  // namespace rushlight::io
