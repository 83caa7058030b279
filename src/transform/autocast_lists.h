// Which operators autocast their operands to what.
#pragma once
#include <string>
#include <unordered_set>

namespace rushlight {

// Names as "matmul", "linalg::inv", also with an overload: "lstm.input".
struct AutocastLists {
  std::unordered_set<std::string> to_half, to_float, to_widest;
};
const AutocastLists& cuda_autocast_lists();

}  // namespace rushlight
