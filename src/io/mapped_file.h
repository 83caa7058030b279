// A file in memory, read-only, for as long as somebody looks into it.
#pragma once
#include <string>
#include <string_view>

#include "core/storage.h"

namespace rushlight::io {

class MappedFile final : public RefCounted {
 public:
  static Ref<MappedFile> open(const std::string& path);
  static void destroy(MappedFile* file) { delete file; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // A read-only storage of a part of the file, which keeps the file.
  Storage storage(size_t offset, size_t nbytes);

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}
  ~MappedFile();
  const std::byte* data_;
  size_t size_;
};

}  // namespace rushlight::io
