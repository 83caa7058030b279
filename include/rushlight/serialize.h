// torch::save and torch::load. Files are those of Python's torch.save: a zip with one pickle, read with a
// closed list of types, never code; or safetensors, chosen by the file's name.
#pragma once
#include <istream>
#include <ostream>

#include "rushlight/ivalue.h"
#include "rushlight/nn/container.h"

namespace rushlight {

// The file's value: tensors, numbers, strings, lists and dicts of them.
void save_value(const IValue& value, const std::string& filename);
void save_value(const IValue& value, std::ostream& stream);
IValue load_value(const std::string& filename);
IValue load_value(std::istream& stream);
IValue load_value(const char* data, size_t size);
// By functions of the caller's: one takes the next bytes; one gives those from a position on, and one how
// many there are.
using Writer = std::function<size_t(const void* bytes, size_t size)>;
using Reader = std::function<size_t(uint64_t position, void* bytes, size_t size)>;
void save_value(const IValue& value, const Writer& writer);
IValue load_value(const Reader& reader, const std::function<size_t()>& size);
// Named tensors in safetensors' format.
void save_safetensors(const OrderedDict<std::string, Tensor>& tensors, const std::string& filename);
OrderedDict<std::string, Tensor> load_safetensors(const std::string& filename);

namespace serialize {

// Values by name. A module's archive becomes what Python's state_dict() is: names with dots, in order.
class OutputArchive {
 public:
  void write(const std::string& key, const IValue& value);
  void write(const std::string& key, const Tensor& tensor, bool is_buffer = false);
  void write(const std::string& key, OutputArchive& nested);
  void save_to(const std::string& filename) const;
  void save_to(std::ostream& stream) const;
  void save_to(const Writer& writer) const;
  const OrderedDict<std::string, IValue>& entries() const { return entries_; }

 private:
  OrderedDict<std::string, IValue> entries_{"Entry"};
};

class InputArchive {
 public:
  void read(const std::string& key, IValue& value);
  bool try_read(const std::string& key, IValue& value);
  // Into a defined tensor of that shape, or as it is.
  void read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  bool try_read(const std::string& key, Tensor& tensor, bool is_buffer = false);
  void read(const std::string& key, InputArchive& nested);
  bool try_read(const std::string& key, InputArchive& nested);
  std::vector<std::string> keys() const { return entries_.keys(); }
  void load_from(const std::string& filename, const std::optional<Device>& device = std::nullopt);
  void load_from(std::istream& stream, const std::optional<Device>& device = std::nullopt);
  void load_from(const char* data, size_t size, const std::optional<Device>& device = std::nullopt);
  void load_from(const Reader& reader, const std::function<size_t()>& size,
                 const std::optional<Device>& device = std::nullopt);
  void load_dict(const IValue& dict);

 private:
  void take(IValue value, const std::optional<Device>& device);
  OrderedDict<std::string, IValue> entries_{"Entry"};
  std::string place_;  // the names that lead here, for messages: "encoder.layers."
};

OutputArchive& operator<<(OutputArchive& archive, const Tensor& tensor);
InputArchive& operator>>(InputArchive& archive, Tensor& tensor);

}  // namespace serialize

// A module, an optimizer, or anything with operator<<: save(net, "net.pt").
template <class Value, class... To>
void save(const Value& value, To&&... to) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<To>(to)...);
}
template <class Value, class... From>
void load(Value& value, From&&... from) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<From>(from)...);
  archive >> value;
}
// A tensor, and a list of tensors, are saved as such.
template <class To>
void save(const Tensor& tensor, To&& to) {
  save_value(tensor, std::forward<To>(to));
}
template <class To>
void save(const std::vector<Tensor>& tensors, To&& to) {
  save_value(tensors, std::forward<To>(to));
}
template <class... From>
void load(Tensor& tensor, From&&... from) {
  tensor = load_value(std::forward<From>(from)...).toTensor();
}
template <class From>
void load(Tensor& tensor, From&& from, const Device& device) {
  load(tensor, std::forward<From>(from));
  tensor = tensor.to(device);
}
template <class... From>
void load(std::vector<Tensor>& tensors, From&&... from) {
  for (Tensor& t : load_value(std::forward<From>(from)...).toTensorVector()) tensors.push_back(t);
}
std::vector<char> pickle_save(const IValue& value);
IValue pickle_load(const std::vector<char>& bytes);

}  // namespace rushlight
