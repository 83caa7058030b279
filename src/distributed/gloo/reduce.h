// How two buffers become one: the functions that collectives call on pieces of them.
#pragma once
#include <cstddef>
#include <string_view>

namespace rushlight::distributed {

// Writes the reduction of `count` elements of a and b to out, which may be one of them.
struct Reduction {
  void (*function)(void* out, const void* a, const void* b, size_t count);
  size_t element_size;
};

// By the names of dtype ("float32") and operation ("SUM"); function is null where there is none.
Reduction find_reduction(std::string_view dtype, std::string_view operation);

}  // namespace rushlight::distributed
