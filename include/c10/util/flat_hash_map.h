// For programs that name the type of an optimizer's state.
#pragma once
#include <unordered_map>

#include "torch/names.h"

namespace ska {
template <class Key, class Value>
using flat_hash_map = std::unordered_map<Key, Value>;
}  // namespace ska
