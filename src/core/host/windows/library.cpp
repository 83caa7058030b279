#include "core/host/library.h"

#include <algorithm>

#include "core/host/windows/system.h"

namespace rushlight::host {

void* load_library(const std::string& path, std::string* failure) {
  // A library that is named with its folder finds its own needs there.
  const DWORD how = path.find_first_of("/\\") == path.npos ? 0 : LOAD_WITH_ALTERED_SEARCH_PATH;
  std::string name = path;
  std::replace(name.begin(), name.end(), '/', '\\');
  const HMODULE library = LoadLibraryExW(wide(name).c_str(), nullptr, how);
  if (!library && failure) *failure = last_error().message();
  return reinterpret_cast<void*>(library);
}

void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<void*>(GetProcAddress(reinterpret_cast<HMODULE>(library), name));
}

std::string library_file(const std::string& name) { return name + ".dll"; }

std::string folder_of(const void* function) {
  HMODULE module = nullptr;
  constexpr DWORD kHow =
      GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  if (!GetModuleHandleExW(kHow, static_cast<LPCWSTR>(function), &module)) return "";
  std::wstring file(32768, L'\0');
  file.resize(GetModuleFileNameW(module, file.data(), static_cast<DWORD>(file.size())));
  std::string path = narrow(file);
  std::replace(path.begin(), path.end(), '\\', '/');
  return path.substr(0, path.rfind('/') + 1);
}

}  // namespace rushlight::host
