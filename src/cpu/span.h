// A range of rows, columns or other parts.
#pragma once
#include <cstdint>

namespace rushlight::cpu {

struct Span {
  int64_t begin, end;
};

}  // namespace rushlight::cpu
