// A file in memory, read-only, for as long as somebody looks into it.
#pragma once
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/constant_memory.h"
#include "core/host/file.h"
#include "core/storage.h"

namespace rushlight::io {

class MappedFile final : public RefCounted {
 public:
  static Ref<MappedFile> open(const std::string& path);
  // Bytes that are in memory already, and stay as long as `owner`.
  static Ref<MappedFile> in_memory(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
  static void destroy(MappedFile* file) { delete file; }
  const std::byte* data() const { return bytes_.data; }
  size_t size() const { return bytes_.size; }
  bool is_mapped() const { return !owner_; }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(data()), size()}; }
  // Calls f(bytes) for parts of a range, one after another, each a multiple of 32 bytes long but for the
  // last. Where there are many they leave memory again: a range that is only looked through needs no room as
  // a whole.
  template <class F>
  void read_through(size_t offset, size_t nbytes, F&& f) const {
    for (size_t done = 0; done < nbytes; done += kPart) {
      const std::span<const std::byte> part(data() + offset + done, std::min(kPart, nbytes - done));
      if (is_mapped()) fetch(part);
      f(part);
      if (nbytes > kPart && is_mapped()) leave_memory(part.data(), part.size());
    }
  }
  // A read-only storage of a part of the file, which keeps the file.
  Storage storage(size_t offset, size_t nbytes);

 private:
  static constexpr size_t kPart = size_t{4} << 20;
  static void fetch(std::span<const std::byte> part);  // all pages at once
  explicit MappedFile(const host::MappedBytes& bytes, std::shared_ptr<const void> owner = nullptr)
      : bytes_(bytes), owner_(std::move(owner)) {}
  ~MappedFile();
  const host::MappedBytes bytes_;
  const std::shared_ptr<const void> owner_;  // of memory that is no mapping
};

}  // namespace rushlight::io
