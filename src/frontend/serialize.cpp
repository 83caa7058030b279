#include "rushlight/serialize.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "frontend/archive.h"
#include "rushlight/autograd.h"

namespace rushlight {

namespace {

std::string bytes_of(const IValue& value) {
  std::vector<Tensor> storages;
  std::vector<std::pair<std::string, std::string>> records;
  records.emplace_back("archive/data.pkl", frontend::write_pickle(value, storages));
  records.emplace_back("archive/byteorder", "little");
  for (size_t i = 0; i < storages.size(); ++i)
    records.emplace_back("archive/data/" + std::to_string(i),
                         std::string(static_cast<const char*>(storages[i].data_ptr()), storages[i].nbytes()));
  records.emplace_back("archive/version", "3\n");
  return frontend::write_zip(records);
}

IValue value_of(std::string_view bytes) {
  const frontend::Records records = frontend::read_zip(bytes);
  const auto pickle = records.find("data.pkl");
  RL_CHECK(pickle != records.end(), "load: the archive holds no data.pkl; is it one of torch.save?");
  if (const auto order = records.find("byteorder"); order != records.end())
    RL_CHECK(order->second == "little", "load: the file was written on a machine of another byte order");
  std::unordered_map<std::string, Tensor> loaded;
  auto storage = [&](const std::string& key, ScalarType dtype, int64_t numel) {
    if (const auto found = loaded.find(key); found != loaded.end()) {
      RL_CHECK(found->second.dtype() == dtype && found->second.numel() == numel, "load: the storage ", key,
               " is described in two ways");
      return found->second;
    }
    const auto record = records.find("data/" + key);
    RL_CHECK(record != records.end(), "load: the record data/", key, " is missing");
    RL_CHECK(numel >= 0 && record->second.size() / element_size(dtype) >= static_cast<size_t>(numel),
             "load: the record data/", key, " is too short for ", numel, " elements");
    const Tensor t = empty_tensor(numel, dtype);
    if (numel) std::memcpy(t.data_ptr(), record->second.data(), t.nbytes());
    loaded.emplace(key, t);
    return t;
  };
  return frontend::read_pickle(pickle->second, storage);
}

std::string read_file(const std::string& filename) {
  std::ifstream file(filename, std::ios::binary);
  RL_CHECK(file, "load: cannot open ", filename, ": ", std::strerror(errno));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}

// Through a neighbour that takes the name at the end, so that no reader sees half a file.
void write_file(const std::string& filename, const std::vector<std::string_view>& parts) {
  const std::string fresh = filename + ".tmp" + std::to_string(getpid());
  {
    std::ofstream file(fresh, std::ios::binary);
    RL_CHECK(file, "save: cannot open ", fresh, ": ", std::strerror(errno));
    for (const std::string_view part : parts)
      file.write(part.data(), static_cast<std::streamsize>(part.size()));
    file.flush();
    if (!file) {
      std::remove(fresh.c_str());
      RL_FAIL("save: cannot write ", filename, ": ", std::strerror(errno));
    }
  }
  RL_CHECK(std::rename(fresh.c_str(), filename.c_str()) == 0, "save: cannot write ", filename, ": ",
           std::strerror(errno));
}

}  // namespace

void save_value(const IValue& value, const std::string& filename) { write_file(filename, {bytes_of(value)}); }
void save_value(const IValue& value, std::ostream& stream) {
  const std::string bytes = bytes_of(value);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
IValue load_value(const std::string& filename) { return value_of(read_file(filename)); }
IValue load_value(std::istream& stream) {
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return value_of(bytes.str());
}
IValue load_value(const char* data, size_t size) { return value_of({data, size}); }
void save_value(const IValue& value, const Writer& writer) {
  const std::string bytes = bytes_of(value);
  const size_t written = writer(bytes.data(), bytes.size());
  RL_CHECK(written == bytes.size(), "save: the writer took ", written, " of ", bytes.size(), " bytes");
}
IValue load_value(const Reader& reader, const std::function<size_t()>& size) {
  std::string bytes(size(), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const size_t got = reader(at, bytes.data() + at, bytes.size() - at);
    RL_CHECK(got > 0 && got <= bytes.size() - at, "load: the reader gave ", got, " bytes at position ", at,
             " of ", bytes.size());
    at += got;
  }
  return value_of(bytes);
}
std::vector<char> pickle_save(const IValue& value) {
  const std::string bytes = bytes_of(value);
  return {bytes.begin(), bytes.end()};
}
IValue pickle_load(const std::vector<char>& bytes) { return value_of({bytes.data(), bytes.size()}); }

// --- safetensors: a length, a JSON header, the bytes
namespace {

struct SafeName {
  ScalarType dtype;
  const char* name;
};
constexpr SafeName kSafeNames[] = {
    {DType::Float32, "F32"}, {DType::Float64, "F64"},  {DType::Float16, "F16"}, {DType::BFloat16, "BF16"},
    {DType::Int64, "I64"},   {DType::Int32, "I32"},    {DType::Int16, "I16"},   {DType::Int8, "I8"},
    {DType::UInt8, "U8"},    {DType::Bool, "BOOL"},    {DType::UInt16, "U16"},  {DType::UInt32, "U32"},
    {DType::UInt64, "U64"},  {DType::Complex64, "C64"}};

std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<uint8_t>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", c);
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// As much of JSON as the header uses.
class Json {
 public:
  explicit Json(std::string_view text) : text_(text) {}
  void expect(char c) {
    RL_CHECK(accept(c), "load: the header of the safetensors file is damaged at byte ", at_);
  }
  bool accept(char c) {
    skip();
    if (at_ < text_.size() && text_[at_] == c) return ++at_, true;
    return false;
  }
  std::string string() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'u') {
          RL_CHECK(text_.size() - at_ >= 4, "load: the header of the safetensors file is damaged");
          const long code = std::strtol(std::string(text_.substr(at_, 4)).c_str(), nullptr, 16);
          at_ += 4;
          if (code >= 0x800)
            out += static_cast<char>(0xe0 | code >> 12), out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
          else if (code >= 0x80)
            out += static_cast<char>(0xc0 | code >> 6);
          c = static_cast<char>(code < 0x80 ? code : 0x80 | (code & 0x3f));
        } else if (c == 'n') {
          c = '\n';
        } else if (c == 't') {
          c = '\t';
        }
      }
      out += c;
    }
    RL_CHECK(at_ < text_.size(), "load: the header of the safetensors file is truncated");
    ++at_;
    return out;
  }
  int64_t integer() {
    skip();
    int64_t v = 0;
    const size_t start = at_;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9')
      RL_CHECK(
          !__builtin_mul_overflow(v, int64_t{10}, &v) && !__builtin_add_overflow(v, text_[at_++] - '0', &v),
          "load: a number in the safetensors header is too large");
    RL_CHECK(at_ > start, "load: the header of the safetensors file is damaged at byte ", at_);
    return v;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> list;
    expect('[');
    if (accept(']')) return list;
    do list.push_back(integer());
    while (accept(','));
    expect(']');
    return list;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::strchr(" \t\r\n", text_[at_])) ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

Tensor read_entry(Json& json, std::string_view data, const std::string& name) {
  std::string dtype;
  std::vector<int64_t> shape, offsets;
  json.expect('{');
  do {
    const std::string key = json.string();
    json.expect(':');
    if (key == "dtype")
      dtype = json.string();
    else if (key == "shape")
      shape = json.integers();
    else if (key == "data_offsets")
      offsets = json.integers();
    else
      RL_FAIL("load: the safetensors header has an entry '", key, "' for ", name);
  } while (json.accept(','));
  json.expect('}');
  for (const SafeName& s : kSafeNames) {
    if (dtype != s.name) continue;
    const int64_t numel = checked_numel(shape);
    RL_CHECK(offsets.size() == 2 && offsets[0] >= 0 && offsets[0] <= offsets[1] &&
                 static_cast<uint64_t>(offsets[1]) <= data.size() &&
                 static_cast<uint64_t>(offsets[1] - offsets[0]) / element_size(s.dtype) ==
                     static_cast<uint64_t>(numel) &&
                 static_cast<uint64_t>(offsets[1] - offsets[0]) % element_size(s.dtype) == 0,
             "load: the tensor ", name, " does not fit its place in the file");
    const Tensor t = empty_tensor(shape, s.dtype);
    if (numel) std::memcpy(t.data_ptr(), data.data() + offsets[0], t.nbytes());
    return t;
  }
  RL_FAIL("load: the tensor ", name, " has an unknown dtype '", dtype, "'");
}

bool is_safetensors(const std::string& filename) { return filename.ends_with(".safetensors"); }

}  // namespace

void save_safetensors(const OrderedDict<std::string, Tensor>& tensors, const std::string& filename) {
  std::string header = "{";
  std::vector<Tensor> kept;
  int64_t at = 0;
  for (const auto& item : tensors) {
    const Tensor t = item.value().detach().cpu().contiguous();
    const char* dtype = nullptr;
    for (const SafeName& s : kSafeNames)
      if (s.dtype == t.dtype()) dtype = s.name;
    RL_CHECK(dtype, "save: safetensors files hold no tensors of dtype ", dtype_name(t.dtype()));
    const auto size = static_cast<int64_t>(t.nbytes());
    std::string shape;
    for (const int64_t s : t.sizes()) shape += (shape.empty() ? "" : ",") + std::to_string(s);
    header += str(header.size() > 1 ? "," : "", quoted(item.key()), ":{\"dtype\":\"", dtype, "\",\"shape\":[",
                  shape, "],\"data_offsets\":[", at, ",", at + size, "]}");
    at += size;
    kept.push_back(t);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), 8}, header};
  for (const Tensor& t : kept) parts.emplace_back(static_cast<const char*>(t.data_ptr()), t.nbytes());
  write_file(filename, parts);
}

OrderedDict<std::string, Tensor> load_safetensors(const std::string& filename) {
  const std::string bytes = read_file(filename);
  uint64_t length = 0;
  RL_CHECK(bytes.size() >= 8, "load: ", filename, " is too short for a safetensors file");
  std::memcpy(&length, bytes.data(), 8);
  RL_CHECK(length <= bytes.size() - 8, "load: ", filename, " is truncated, or no safetensors file");
  Json json(std::string_view(bytes).substr(8, length));
  const std::string_view data = std::string_view(bytes).substr(8 + length);
  OrderedDict<std::string, Tensor> tensors("Tensor");
  json.expect('{');
  if (json.accept('}')) return tensors;
  do {
    const std::string name = json.string();
    json.expect(':');
    if (name != "__metadata__") {
      tensors.insert(name, read_entry(json, data, name));
      continue;
    }
    json.expect('{');
    if (json.accept('}')) continue;
    do json.string(), json.expect(':'), json.string();
    while (json.accept(','));
    json.expect('}');
  } while (json.accept(','));
  json.expect('}');
  return tensors;
}

// --- archives
namespace serialize {

void OutputArchive::write(const std::string& key, const IValue& value) { entries_.insert(key, value); }
void OutputArchive::write(const std::string& key, const Tensor& tensor, bool) {
  entries_.insert(key, IValue(tensor.defined() ? tensor.detach() : tensor));
}
void OutputArchive::write(const std::string& key, OutputArchive& nested) {
  for (const auto& item : nested.entries_) entries_.insert(key + "." + item.key(), item.value());
}
static IValue dict_of(const OrderedDict<std::string, IValue>& entries) {
  IValue::Dict dict;
  for (const auto& item : entries) dict.emplace_back(IValue(item.key()), item.value());
  return dict;
}
void OutputArchive::save_to(const std::string& filename) const {
  if (!is_safetensors(filename)) return save_value(dict_of(entries_), filename);
  OrderedDict<std::string, Tensor> tensors("Tensor");
  for (const auto& item : entries_) {
    RL_CHECK(item.value().isTensor(), "save: safetensors files hold tensors only, but '", item.key(),
             "' is of type ", item.value().kind());
    tensors.insert(item.key(), item.value().toTensor());
  }
  save_safetensors(tensors, filename);
}
void OutputArchive::save_to(std::ostream& stream) const { save_value(dict_of(entries_), stream); }
void OutputArchive::save_to(const Writer& writer) const { save_value(dict_of(entries_), writer); }

bool InputArchive::try_read(const std::string& key, IValue& value) {
  const IValue* found = entries_.find(key);
  if (found) value = *found;
  return found;
}
void InputArchive::read(const std::string& key, IValue& value) {
  RL_CHECK(try_read(key, value), "No such serialized value '", place_, key, "'");
}
bool InputArchive::try_read(const std::string& key, Tensor& tensor, bool) {
  const IValue* found = entries_.find(key);
  if (!found || !found->isTensor()) return false;
  const Tensor& t = found->toTensor();
  if (!tensor.defined()) {
    tensor = t;
    return true;
  }
  RL_CHECK(tensor.sizes() == t.sizes(), "load: '", place_, key, "' has the shape ", t.sizes(),
           " in the file, but ", tensor.sizes(), " here");
  NoGradGuard no_grad;
  tensor.copy_(t);
  return true;
}
void InputArchive::read(const std::string& key, Tensor& tensor, bool is_buffer) {
  RL_CHECK(try_read(key, tensor, is_buffer), "No such serialized tensor '", place_, key, "'");
}
bool InputArchive::try_read(const std::string& key, InputArchive& nested) {
  nested.place_ = place_ + key + ".";
  OrderedDict<std::string, IValue> inner("Entry");
  for (const auto& item : entries_)
    if (item.key().starts_with(key + ".")) inner.insert(item.key().substr(key.size() + 1), item.value());
  if (const IValue* dict = entries_.find(key); dict && dict->isGenericDict()) nested.load_dict(*dict);
  for (const auto& item : inner) nested.entries_.insert(item.key(), item.value());
  return !nested.entries_.is_empty();
}
// A module without parameters has no entries, as in Python.
void InputArchive::read(const std::string& key, InputArchive& nested) { try_read(key, nested); }

void InputArchive::take(IValue value, const std::optional<Device>& device) {
  RL_CHECK(value.isGenericDict(), "load: expected a file of named values, but it holds ", value.kind());
  load_dict(value);
  if (device)
    for (auto& item : entries_)
      if (item.value().isTensor()) item.value() = IValue(item.value().toTensor().to(*device));
}
void InputArchive::load_dict(const IValue& dict) {
  entries_.clear();
  for (const auto& [k, v] : dict.toGenericDict())
    entries_.insert(k.isString() ? k.toStringRef() : std::to_string(k.toInt()), v);
}
void InputArchive::load_from(const std::string& filename, const std::optional<Device>& device) {
  if (!is_safetensors(filename)) return take(load_value(filename), device);
  IValue::Dict dict;
  for (const auto& item : load_safetensors(filename))
    dict.emplace_back(IValue(item.key()), IValue(item.value()));
  take(dict, device);
}
void InputArchive::load_from(std::istream& stream, const std::optional<Device>& device) {
  take(load_value(stream), device);
}
void InputArchive::load_from(const char* data, size_t size, const std::optional<Device>& device) {
  take(load_value(data, size), device);
}
void InputArchive::load_from(const Reader& reader, const std::function<size_t()>& size,
                             const std::optional<Device>& device) {
  take(load_value(reader, size), device);
}

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor) {
  archive.write("0", tensor);
  return archive;
}
InputArchive& operator>>(InputArchive& archive, Tensor& tensor) {
  archive.read("0", tensor);
  return archive;
}

}  // namespace serialize

}  // namespace rushlight
