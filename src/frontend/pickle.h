// The pickle of a .pt file.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "rushlight/ivalue.h"

namespace rushlight::frontend {

// The pickle of a value; the storages it names are appended to `storages` in order.
std::string write_pickle(const IValue& value, std::vector<Tensor>& storages);
// Reads tensors, numbers, strings and containers; anything else is an error, and nothing is ever executed.
IValue read_pickle(std::string_view bytes,
                   const std::function<Tensor(const std::string& key, ScalarType, int64_t)>& storage);

}  // namespace rushlight::frontend
