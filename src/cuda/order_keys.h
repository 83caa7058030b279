// Elements as unsigned keys whose order is theirs, and back. Kernels know the width of elements; what they
// are is in a rule.
#pragma once
#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "cuda/geometry.h"

namespace rushlight::cuda {

// W: the word of an element in memory. Those of up to 4 bytes have keys of 32 bits, of which `bits` are used.
template <class W>
struct KeyRule {
  using K = std::conditional_t<sizeof(W) == 8, uint64_t, uint32_t>;
  int bits = 8 * static_cast<int>(sizeof(W));
  K mask, sign, flipped = 0, infinity = 0, down;
  bool floating = false;

  KeyRule(DType dtype, bool descending) {
    if (dtype == DType::Bool) bits = 1;
    mask = static_cast<K>(~uint64_t{0} >> (64 - bits)), sign = K(1) << (bits - 1);
    down = descending ? mask : 0;
    switch (dtype) {
      case DType::Int8:
      case DType::Int16:
      case DType::Int32:
      case DType::Int64:
        flipped = sign;
        break;
      case DType::Float16:
        floating = true, infinity = 0x7c00u;
        break;
      case DType::BFloat16:
        floating = true, infinity = 0x7f80u;
        break;
      case DType::Float32:
        floating = true, infinity = 0x7f800000u;
        break;
      case DType::Float64:
        floating = true, infinity = static_cast<K>(uint64_t{0x7ff} << 52);
        break;
      default:
        break;
    }
  }

  // Ascending, NaN has all bits set. The two zeros are one.
  RL_BOTH K key(W word) const {
    const K raw = word;
    if (!floating) return raw ^ flipped ^ down;
    const K size = raw & (sign - 1);
    K key = raw & sign ? raw ^ mask : raw | sign;
    if (size == 0) key = sign;
    if (size > infinity) key = mask;
    return key ^ down;
  }
  RL_BOTH bool is_nan(K key) const { return floating && (key ^ down) == mask; }
  // The word of a key: false where several have it.
  RL_BOTH bool word(K key, W* out) const {
    key ^= down;
    if (!floating) {
      *out = static_cast<W>(key ^ flipped);
      return true;
    }
    *out = static_cast<W>(key & sign ? key ^ sign : key ^ mask);
    return key != sign && key != mask;
  }
};

template <class W>
struct WordTag {
  using type = W;
};
// f(WordTag<W>{}) for the words of a dtype.
template <class F>
void visit_key_words(DType dtype, F&& f) {
  switch (element_size(dtype)) {
    case 1:
      return f(WordTag<uint8_t>{});
    case 2:
      return f(WordTag<uint16_t>{});
    case 4:
      return f(WordTag<uint32_t>{});
    default:
      return f(WordTag<uint64_t>{});
  }
}

}  // namespace rushlight::cuda
