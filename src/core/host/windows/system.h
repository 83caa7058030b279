// What the files of this folder share.
#pragma once
#ifndef NOMINMAX
#define NOMINMAX
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#undef _WIN32_WINNT
#define _WIN32_WINNT 0x0A00  // Windows 10
#include <winsock2.h>
// After winsock2.h, which windows.h would include in its older form.
#include <windows.h>

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace rushlight::host {

inline std::error_code last_error() { return {static_cast<int>(GetLastError()), std::system_category()}; }

// Texts are UTF-8, the system's UTF-16.
inline std::wstring wide(std::string_view text) {
  const int n = static_cast<int>(text.size());
  std::wstring result(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text.data(), n, nullptr, 0)),
                      L'\0');
  MultiByteToWideChar(CP_UTF8, 0, text.data(), n, result.data(), static_cast<int>(result.size()));
  return result;
}
inline std::string narrow(std::wstring_view text) {
  const int n = static_cast<int>(text.size());
  const int bytes = WideCharToMultiByte(CP_UTF8, 0, text.data(), n, nullptr, 0, nullptr, nullptr);
  std::string result(static_cast<size_t>(bytes), '\0');
  WideCharToMultiByte(CP_UTF8, 0, text.data(), n, result.data(), bytes, nullptr, nullptr);
  return result;
}

class Handle {
 public:
  explicit Handle(HANDLE handle) : handle_(handle) {}
  ~Handle() { close(); }
  Handle(const Handle&) = delete;
  explicit operator bool() const { return handle_ && handle_ != INVALID_HANDLE_VALUE; }
  HANDLE get() const { return handle_; }
  void close() {
    if (*this) CloseHandle(std::exchange(handle_, nullptr));
  }

 private:
  HANDLE handle_;
};

}  // namespace rushlight::host
