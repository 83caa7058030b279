#include "core/host/file.h"

#include <atomic>

#include "core/error.h"
#include "core/host/windows/system.h"

namespace rushlight::host {
namespace {

constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

/// Without reading: for what is asked about a file. Folders can be asked, too.
Handle open_to_ask(const std::string& path) {
  return Handle(CreateFileW(wide(path).c_str(), 0, kShared, nullptr, OPEN_EXISTING,
                            FILE_FLAG_BACKUP_SEMANTICS, nullptr));
}

HANDLE handle_of(intptr_t file) { return reinterpret_cast<HANDLE>(file); }

}  // namespace

MappedBytes map_file(const std::string& path) {
  const Handle file(CreateFileW(wide(path).c_str(), GENERIC_READ, kShared, nullptr, OPEN_EXISTING,
                                FILE_ATTRIBUTE_NORMAL, nullptr));
  RL_CHECK(file, "cannot open '", path, "': ", last_error().message());
  LARGE_INTEGER size{};
  RL_CHECK(GetFileType(file.get()) == FILE_TYPE_DISK && GetFileSizeEx(file.get(), &size), "'", path,
           "' is not a file");
  if (size.QuadPart == 0) return {};
  const Handle mapping(CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  const void* data = mapping ? MapViewOfFile(mapping.get(), FILE_MAP_READ, 0, 0, 0) : nullptr;
  RL_CHECK(data, "cannot map '", path, "': ", last_error().message());
  return {static_cast<const std::byte*>(data), static_cast<size_t>(size.QuadPart)};
}

void unmap_file(const MappedBytes& bytes) noexcept {
  if (bytes.data) UnmapViewOfFile(bytes.data);
}

std::error_code FileReplacement::open(const std::string& path) {
  target_ = path;
  bool replaced = true;
  if (const Handle known = open_to_ask(path)) {
    replaced = GetFileType(known.get()) == FILE_TYPE_DISK;
    std::wstring real(32768, L'\0');
    const DWORD n = GetFinalPathNameByHandleW(known.get(), real.data(), static_cast<DWORD>(real.size()), 0);
    if (replaced && n > 0 && n < real.size()) target_ = narrow(real.substr(0, n));
  }
  static std::atomic<uint64_t> count{0};
  fresh_ = replaced ? str(target_, ".", uint64_t{GetCurrentProcessId()}, ".", ++count, ".tmp") : target_;
  const HANDLE file = CreateFileW(wide(fresh_).c_str(), GENERIC_WRITE, FILE_SHARE_READ, nullptr,
                                  replaced ? CREATE_ALWAYS : OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) return last_error();
  file_ = reinterpret_cast<intptr_t>(file);
  return {};
}

FileReplacement::~FileReplacement() {
  if (file_ == -1) return;
  CloseHandle(handle_of(file_));
  remove();
}

void FileReplacement::remove() const {
  if (fresh_ != target_) DeleteFileW(wide(fresh_).c_str());
}

std::error_code FileReplacement::write(std::string_view bytes) {
  while (!bytes.empty()) {
    constexpr size_t kMost = size_t{1} << 30;
    DWORD n = 0;
    if (!WriteFile(handle_of(file_), bytes.data(), static_cast<DWORD>(std::min(bytes.size(), kMost)), &n,
                   nullptr))
      return last_error();
    bytes.remove_prefix(n);
  }
  return {};
}

std::error_code FileReplacement::commit() {
  // The name must not reach the disk before the contents do. A pipe has no disk.
  if (fresh_ != target_ && !FlushFileBuffers(handle_of(file_))) return last_error();
  const bool closed = CloseHandle(handle_of(std::exchange(file_, -1)));
  constexpr DWORD kHow = MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH;
  if (closed && (fresh_ == target_ || MoveFileExW(wide(fresh_).c_str(), wide(target_).c_str(), kHow)))
    return {};
  const std::error_code error = last_error();
  remove();
  return error;
}

bool file_exists(const std::string& path) {
  return GetFileAttributesW(wide(path).c_str()) != INVALID_FILE_ATTRIBUTES;
}

FileStamp file_stamp(const std::string& path) {
  const Handle file = open_to_ask(path);
  BY_HANDLE_FILE_INFORMATION info;
  if (!file || !GetFileInformationByHandle(file.get(), &info)) return {};
  const auto both = [](DWORD high, DWORD low) { return uint64_t{high} << 32 | low; };
  return {info.dwVolumeSerialNumber, both(info.nFileIndexHigh, info.nFileIndexLow),
          static_cast<int64_t>(both(info.nFileSizeHigh, info.nFileSizeLow)),
          static_cast<int64_t>(both(info.ftLastWriteTime.dwHighDateTime, info.ftLastWriteTime.dwLowDateTime) *
                               100)};
}

}  // namespace rushlight::host
