// The two layers of a .pt file: records in a zip archive, and the pickle that names them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "rushlight/ivalue.h"

namespace rushlight::frontend {

using Records = std::map<std::string, std::string_view>;  // views into the archive's bytes

// Stored, aligned to 64 bytes, as PyTorch writes them; in the given order.
std::string write_zip(const std::vector<std::pair<std::string, std::string>>& records);
// Every record without the archive's folder; fails on anything that is not a sound archive of stored records.
Records read_zip(std::string_view bytes);

// The pickle of a value; the storages it names are appended to `storages` in order.
std::string write_pickle(const IValue& value, std::vector<Tensor>& storages);
// Reads tensors, numbers, strings and containers; anything else is an error, and nothing is ever executed.
IValue read_pickle(std::string_view bytes,
                   const std::function<Tensor(const std::string& key, ScalarType, int64_t)>& storage);

}  // namespace rushlight::frontend
