// What code that no compiler has lowered asks of values.
#pragma once
#include "frontend/torchscript/arguments.h"

namespace rushlight::jit {

// One part of what stands in brackets: a value, `a:b:c`, or `...`.
struct Place {
  enum class Kind : uint8_t { Value, Slice, Rest };
  Kind kind = Kind::Value;
  IValue value, stop, step;  // of a slice, `value` is where it starts
};

// The items of what a loop goes through; of a number, all below it.
IValue::List items_of(const IValue& value);
IValue read_places(const IValue& base, const std::vector<Place>& places);
void write_places(const IValue& base, const std::vector<Place>& places, const IValue& value);
// `target += value`, where `name` is "add": in place where the value can be changed.
IValue augmented(const std::string& name, const IValue& target, const IValue& value);

}  // namespace rushlight::jit
