// Files: mapped, replaced as a whole, told from one another.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

namespace rushlight::host {

struct MappedBytes {
  const std::byte* data = nullptr;
  size_t size = 0;
};
/// A whole file in memory, read-only; an Error that names it where that fails. Empty ones have no address.
MappedBytes map_file(const std::string& path);
void unmap_file(const MappedBytes& bytes) noexcept;

/// A file written beside another, which it replaces when it is whole: after a failure or a loss of power
/// there is the former one or the new one. A link stays one; what is no file of the disk (a pipe) is written
/// itself.
class FileReplacement {
 public:
  FileReplacement() = default;
  ~FileReplacement();  // removes what was not committed
  FileReplacement(const FileReplacement&) = delete;
  std::error_code open(const std::string& path);
  std::error_code write(std::string_view bytes);
  std::error_code commit();

 private:
  void remove() const;

  std::string target_, fresh_;
  intptr_t file_ = -1;
};

bool file_exists(const std::string& path);
/// What tells that a file is another one than before; a size of -1 if there is none.
struct FileStamp {
  uint64_t volume = 0, number = 0;
  int64_t size = -1;
  int64_t changed = 0;  // nanoseconds
  bool operator==(const FileStamp&) const = default;
};
FileStamp file_stamp(const std::string& path);

}  // namespace rushlight::host
