// Pieces of several tensors side by side, many tensors in a launch.
#include "cpu/cat.h"
#include "cuda/launch.h"
#include "cuda/layers.h"
#include "cuda/memory.h"
#include "cuda/multi_tensor.h"

namespace rushlight::cuda {
namespace {

constexpr int kMostPieces = 128;
constexpr int64_t kPerBlock = int64_t{kBlockThreads} * 8;

template <class Word>
struct JoinPieces {
  TensorBlocks<kMostPieces> blocks;
  const Word* in[kMostPieces];
  int64_t words[kMostPieces];  // of a row
  int64_t begin[kMostPieces];  // in a row of the result
  int64_t row, rows;
  Word* out;
  RL_BOTH void operator()(const Block& block) const {
    const int t = blocks.owner(block.index);
    const int64_t first = (block.index - blocks.first_block[t]) * kPerBlock, all = words[t] * rows,
                  end = first + kPerBlock < all ? first + kPerBlock : all;
    for (int64_t i = first + block.thread; i < end; i += block.threads) {
      const int64_t at = rows == 1 ? 0 : quotient(i, words[t]);
      out[at * row + begin[t] + (i - at * words[t])] = in[t][i];
    }
  }
};
static_assert(sizeof(JoinPieces<SixteenBytes>) < 4000);

}  // namespace

void join(int device, std::span<const cpu::CatPiece> pieces, int64_t rows, void* out) {
  size_t common = reinterpret_cast<uintptr_t>(out) | 16;
  int64_t row = 0;
  for (const cpu::CatPiece& p : pieces) {
    common |= reinterpret_cast<uintptr_t>(p.data) | static_cast<size_t>(p.bytes_per_row);
    row += p.bytes_per_row;
  }
  visit_word(common & -common, [&](auto tag) {
    using Word = typename decltype(tag)::type;
    constexpr auto kSize = static_cast<int64_t>(sizeof(Word));
    JoinPieces<Word> kernel{};
    kernel.row = row / kSize, kernel.rows = rows, kernel.out = static_cast<Word*>(out);
    int64_t begin = 0;
    auto launch = [&] {
      for_each_block({device, "cat"}, kernel.blocks.blocks(), kernel);
      kernel.blocks = {};
    };
    for (const cpu::CatPiece& p : pieces) {
      const int n = kernel.blocks.count;
      kernel.in[n] = reinterpret_cast<const Word*>(p.data);
      kernel.words[n] = p.bytes_per_row / kSize, kernel.begin[n] = begin;
      begin += kernel.words[n];
      kernel.blocks.add((kernel.words[n] * rows + kPerBlock - 1) / kPerBlock);
      if (kernel.blocks.is_full()) launch();
    }
    launch();
  });
}

}  // namespace rushlight::cuda
