// Byte-pair encoding: words become tokens by merges in the order of their ranks.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/json.h"

namespace rushlight::generation {

class BytePairs {
 public:
  explicit BytePairs(const io::Json& model);

  void encode(std::string_view word, std::vector<int64_t>& ids) const;
  int64_t id_of(std::string_view token) const;
  const std::string* token_of(int64_t id) const;
  size_t size() const { return ids_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view s) const { return std::hash<std::string_view>()(s); }
  };
  struct Merge {
    uint32_t rank = 0, id = 0;
  };
  struct Symbol {
    uint32_t id;
    int32_t before, after;  // -1: none
    bool gone = false;
  };
  void read_merges(const io::Json& merges);
  uint32_t known(std::string_view token) const;
  std::vector<Symbol> symbols_of(std::string_view word) const;
  const Merge* merge_of(const std::vector<Symbol>& symbols, int32_t left) const;

  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> ids_;
  std::unordered_map<uint32_t, std::string> tokens_;
  std::unordered_map<uint64_t, Merge> merges_;
  int64_t unknown_ = -1;
  bool fuse_unknown_ = false, ignore_merges_ = false;
  int64_t bytes_[256];  // <0x41>, where they stand for what has no token
};

}  // namespace rushlight::generation
