#include "cpu/moves.h"

#include "core/error.h"
#include "core/parallel.h"
#include "cpu/copy_run.h"

namespace rushlight::cpu {
namespace {

struct SixteenBytes {
  uint64_t half[2];
};

template <class Word>
void take_words(const void* source, const int64_t* positions, int64_t n, void* out) {
  const auto* from = static_cast<const Word*>(source);
  auto* to = static_cast<Word*>(out);
  parallel_for(0, n, kGrainSize / 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[positions[i]];
  });
}

}  // namespace

void take(const void* source, const int64_t* positions, int64_t n, size_t itemsize, void* out) {
  switch (itemsize) {
    case 1:
      return take_words<uint8_t>(source, positions, n, out);
    case 2:
      return take_words<uint16_t>(source, positions, n, out);
    case 4:
      return take_words<uint32_t>(source, positions, n, out);
    case 8:
      return take_words<uint64_t>(source, positions, n, out);
    default:
      RL_ASSERT(itemsize == 16, "elements of ", itemsize, " bytes");
      return take_words<SixteenBytes>(source, positions, n, out);
  }
}

void roll(const void* source, int64_t lines, int64_t length, int64_t start, void* out) {
  const auto* from = static_cast<const char*>(source);
  auto* to = static_cast<char*>(out);
  const auto head = static_cast<size_t>(start), tail = static_cast<size_t>(length - start);
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize * 4 / length), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      copy_run(to + i * length + head, from + i * length, tail);
      if (head) copy_run(to + i * length, from + i * length + tail, head);
    }
  });
}

}  // namespace rushlight::cpu
