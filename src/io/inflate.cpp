#include "io/inflate.h"

#include <array>
#include <cstdint>
#include <span>

#include "core/error.h"

namespace rushlight::io {
namespace {

constexpr int kMaxBits = 15;

// Codes by length: how many there are of each, and the symbols in the order of their codes.
struct Codes {
  std::array<uint16_t, kMaxBits + 1> count{};
  std::array<uint16_t, 288> symbol{};

  explicit Codes(std::span<const uint8_t> lengths) {
    for (const uint8_t n : lengths) ++count[n];
    count[0] = 0;
    std::array<uint16_t, kMaxBits + 2> at{};
    for (int n = 1; n <= kMaxBits; ++n) at[n + 1] = static_cast<uint16_t>(at[n] + count[n]);
    for (size_t s = 0; s < lengths.size(); ++s)
      if (lengths[s]) symbol[at[lengths[s]]++] = static_cast<uint16_t>(s);
  }
};

class Inflater {
 public:
  Inflater(std::string_view packed, size_t size) : in_(packed), size_(size) {}

  std::string run() {
    bool last;
    do {
      last = bits(1);
      switch (bits(2)) {
        case 0:
          stored();
          break;
        case 1:
          fixed();
          break;
        case 2:
          dynamic();
          break;
        default:
          damaged();
      }
    } while (!last);
    if (out_.size() != size_) damaged();
    return std::move(out_);
  }

 private:
  [[noreturn]] static void damaged() { RL_FAIL_AS(Value, "the compressed data is damaged"); }
  uint32_t bits(int n) {
    while (held_ < n) {
      if (at_ == in_.size()) damaged();
      buffer_ |= static_cast<uint32_t>(static_cast<uint8_t>(in_[at_++])) << held_;
      held_ += 8;
    }
    const uint32_t v = buffer_ & ((uint32_t{1} << n) - 1);
    buffer_ >>= n, held_ -= n;
    return v;
  }
  uint16_t symbol(const Codes& codes) {
    int code = 0, first = 0, index = 0;
    for (int n = 1; n <= kMaxBits; ++n) {
      code |= static_cast<int>(bits(1));
      const int count = codes.count[static_cast<size_t>(n)];
      if (code - count < first) return codes.symbol[static_cast<size_t>(index + code - first)];
      index += count, first = (first + count) << 1, code <<= 1;
    }
    damaged();
  }
  void put(char c) {
    if (out_.size() == size_) damaged();
    out_ += c;
  }
  void stored() {
    buffer_ = 0, held_ = 0;  // it begins at a byte
    if (in_.size() - at_ < 4) damaged();
    const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<uint8_t>(in_[at_ + i])); };
    const size_t n = byte(0) | byte(1) << 8;
    if (n != (~(byte(2) | byte(3) << 8) & 0xffff)) damaged();
    at_ += 4;
    if (in_.size() - at_ < n || size_ - out_.size() < n) damaged();
    out_ += in_.substr(at_, n);
    at_ += n;
  }
  void fixed() {
    std::array<uint8_t, 288> lengths;
    for (size_t i = 0; i < lengths.size(); ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    std::array<uint8_t, 30> distances;
    distances.fill(5);
    compressed(Codes(lengths), Codes(distances));
  }
  void dynamic() {
    static constexpr uint8_t order[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const size_t literals = bits(5) + 257, distances = bits(5) + 1, given = bits(4) + 4;
    if (literals > 286 || distances > 30) damaged();
    std::array<uint8_t, 19> of_lengths{};
    for (size_t i = 0; i < given; ++i) of_lengths[order[i]] = static_cast<uint8_t>(bits(3));
    const Codes codes(of_lengths);
    std::array<uint8_t, 286 + 30> lengths{};
    for (size_t i = 0; i < literals + distances;) {
      const uint16_t s = symbol(codes);
      if (s < 16) {
        lengths[i++] = static_cast<uint8_t>(s);
        continue;
      }
      if (s == 16 && i == 0) damaged();
      const uint8_t repeated = s == 16 ? lengths[i - 1] : 0;
      for (size_t n = s == 16 ? 3 + bits(2) : s == 17 ? 3 + bits(3) : 11 + bits(7); n > 0; --n) {
        if (i == literals + distances) damaged();
        lengths[i++] = repeated;
      }
    }
    const std::span<const uint8_t> all(lengths);
    compressed(Codes(all.first(literals)), Codes(all.subspan(literals, distances)));
  }
  void compressed(const Codes& literals, const Codes& distances) {
    static constexpr uint16_t length_base[] = {3,  4,  5,  6,   7,   8,   9,   10,  11, 13,
                                               15, 17, 19, 23,  27,  31,  35,  43,  51, 59,
                                               67, 83, 99, 115, 131, 163, 195, 227, 258};
    static constexpr uint8_t length_bits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                              2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static constexpr uint16_t distance_base[] = {
        1,   2,   3,   4,   5,   7,    9,    13,   17,   25,   33,   49,   65,    97,    129,
        193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    while (true) {
      const uint16_t s = symbol(literals);
      if (s == 256) return;
      if (s < 256) {
        put(static_cast<char>(s));
        continue;
      }
      if (s > 285) damaged();
      const size_t length = length_base[s - 257] + bits(length_bits[s - 257]);
      const uint16_t d = symbol(distances);
      if (d > 29) damaged();
      const size_t distance = distance_base[d] + bits(d < 4 ? 0 : d / 2 - 1);
      if (distance > out_.size()) damaged();
      for (size_t i = 0; i < length; ++i) put(out_[out_.size() - distance]);
    }
  }

  std::string_view in_;
  size_t size_, at_ = 0;
  uint32_t buffer_ = 0;
  int held_ = 0;
  std::string out_;
};

}  // namespace

std::string inflate(std::string_view packed, size_t size) { return Inflater(packed, size).run(); }

}  // namespace rushlight::io
