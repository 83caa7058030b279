// The pickle of a .pt file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "io/archive.h"
#include "rushlight/ivalue.h"

namespace rushlight::frontend {

// What "FloatStorage" holds.
std::optional<ScalarType> storage_dtype(std::string_view name);
// The storages of an archive as flat tensors, each read once.
class StorageRecords {
 public:
  explicit StorageRecords(const io::Archive& archive, std::string folder = "data")
      : archive_(archive), folder_(std::move(folder)) {}
  Tensor operator()(const std::string& key, ScalarType dtype, int64_t numel);

 private:
  const io::Archive& archive_;
  std::string folder_;
  std::unordered_map<std::string, Tensor> loaded_;
};
// A tensor as a pickle describes it; an error where it would reach beyond its storage.
Tensor tensor_on_storage(const Tensor& storage, int64_t offset, IntArrayRef sizes, IntArrayRef strides,
                         bool requires_grad);

// Appends the records of a value: its pickle and the storages that it names. With `objects`, those of
// TorchScript programs are written too.
void write_values(io::ArchiveWriter& writer, std::string& out, const IValue& value, bool objects = false);
// A file with these parts, through a neighbour that takes the name at the end: no reader sees half a file.
void write_file(const std::string& filename, const std::vector<std::string_view>& parts);
// Reads tensors, numbers, strings and containers; anything else is an error, and nothing is ever executed.
IValue read_pickle(std::string_view bytes,
                   const std::function<Tensor(const std::string& key, ScalarType, int64_t)>& storage);

}  // namespace rushlight::frontend
