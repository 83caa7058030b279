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

namespace {

// Lines of a few words, without a call for each part.
template <class Word>
void roll_words(const void* source, int64_t lines, int64_t length, int64_t start, void* out) {
  parallel_for(0, lines, std::max<int64_t>(1, kGrainSize / length), [&](int64_t begin, int64_t end) {
    const auto* from = static_cast<const Word*>(source) + begin * length;
    auto* to = static_cast<Word*>(out) + begin * length;
    for (int64_t i = begin; i < end; ++i, from += length, to += length) {
      for (int64_t j = start; j < length; ++j) to[j] = from[j - start];
      for (int64_t j = 0; j < start; ++j) to[j] = from[length - start + j];
    }
  });
}

}  // namespace

void roll(const void* source, int64_t lines, int64_t length, int64_t start, void* out) {
  constexpr int64_t kShort = 64;
  if (start == 0) length *= lines, lines = 1;
  if (length <= kShort && (length | start) % 8 == 0)
    return roll_words<uint64_t>(source, lines, length / 8, start / 8, out);
  if (length <= kShort && (length | start) % 4 == 0)
    return roll_words<uint32_t>(source, lines, length / 4, start / 4, out);
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
