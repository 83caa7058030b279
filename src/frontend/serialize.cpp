#include "rushlight/serialize.h"

#include <fstream>
#include <sstream>

#include "frontend/pickle.h"
#include "io/archive.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"
#include "io/safetensors.h"
#include "rushlight/autograd.h"

namespace rushlight {

namespace {

std::string bytes_of(const IValue& value) {
  std::string out;
  io::ArchiveWriter writer("archive");
  frontend::write_values(writer, out, value);
  writer.append(out, "byteorder", "little");
  writer.append(out, "version", "3\n");
  return out + writer.end();
}

IValue value_of(std::string_view bytes, const std::string& name = "the given bytes") {
  const io::Archive archive(std::make_unique<io::MemorySource>(bytes), name);
  if (archive.has("byteorder"))
    RL_CHECK(archive.read("byteorder") == "little",
             "load: the file was written on a machine of another byte order");
  frontend::StorageRecords storages(archive);
  return frontend::read_pickle(archive.read("data.pkl"), std::ref(storages));
}

}  // namespace

void frontend::write_file(const std::string& filename, const std::vector<std::string_view>& parts) {
  io::AtomicFile file(filename, "save: cannot write");
  for (const std::string_view part : parts) file.write(part);
  file.commit();
}

void save_value(const IValue& value, const std::string& filename) {
  frontend::write_file(filename, {bytes_of(value)});
}
void save_value(const IValue& value, std::ostream& stream) {
  const std::string bytes = bytes_of(value);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}
IValue load_value(const std::string& filename) {
  return value_of(io::MappedFile::open(filename)->bytes(), filename);
}
IValue load_value(std::istream& stream) {
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return value_of(bytes.str());
}
IValue load_value(const char* data, size_t size) { return value_of(std::string_view(data, size)); }
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
IValue pickle_load(const std::vector<char>& bytes) { return load_value(bytes.data(), bytes.size()); }

// --- safetensors: a length, a JSON header, the bytes
namespace {

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

bool is_safetensors(const std::string& filename) { return filename.ends_with(".safetensors"); }

}  // namespace

void save_safetensors(const OrderedDict<std::string, Tensor>& tensors, const std::string& filename) {
  std::string header = "{";
  std::vector<Tensor> kept;
  int64_t at = 0;
  for (const auto& item : tensors) {
    const Tensor t = item.value().detach().cpu().contiguous().resolve_conj().resolve_neg();
    const auto type = std::ranges::find(io::kSafetensorsTypes, t.dtype(), &io::SafetensorsType::dtype);
    RL_CHECK(type != std::end(io::kSafetensorsTypes), "save: safetensors files hold no tensors of dtype ",
             dtype_name(t.dtype()));
    const auto size = static_cast<int64_t>(t.nbytes());
    std::string shape;
    for (const int64_t s : t.sizes()) shape += (shape.empty() ? "" : ",") + std::to_string(s);
    header += str(header.size() > 1 ? "," : "", quoted(item.key()), ":{\"dtype\":\"", type->name,
                  "\",\"shape\":[", shape, "],\"data_offsets\":[", at, ",", at + size, "]}");
    at += size;
    kept.push_back(t);
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  const uint64_t length = header.size();
  std::vector<std::string_view> parts = {{reinterpret_cast<const char*>(&length), 8}, header};
  for (const Tensor& t : kept) parts.emplace_back(static_cast<const char*>(t.data_ptr()), t.nbytes());
  frontend::write_file(filename, parts);
}

OrderedDict<std::string, Tensor> load_safetensors(const std::string& filename) {
  const Ref<io::MappedFile> mapped = io::MappedFile::open(filename);
  io::MemorySource file(mapped->bytes());
  OrderedDict<std::string, Tensor> tensors("Tensor");
  for (const io::SafetensorsEntry& e : io::read_safetensors_header(file, filename).entries) {
    const Tensor t = empty_tensor(e.shape, e.dtype);
    RL_CHECK(file.read(e.begin, t.data_ptr(), t.nbytes()) == t.nbytes(), "load: ", filename, " ends early");
    tensors.insert(e.name, t);
  }
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
  for (const auto& item : entries) dict.push_back({IValue(item.key()), item.value()});
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
  for (const auto& [k, v] : dict.toDictRef())
    entries_.insert(k.isString() ? k.toStringRef() : std::to_string(k.toInt()), v);
}
void InputArchive::load_from(const std::string& filename, const std::optional<Device>& device) {
  if (!is_safetensors(filename)) return take(load_value(filename), device);
  IValue::Dict dict;
  for (const auto& item : load_safetensors(filename))
    dict.push_back({IValue(item.key()), IValue(item.value())});
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
