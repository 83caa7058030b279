#include "core/host/thread.h"

#include "core/host/windows/system.h"

namespace rushlight::host {

// The system does not tell: the thread that loads this library counts as the main one.
static const DWORD main_thread = GetCurrentThreadId();

int64_t thread_id() { return GetCurrentThreadId(); }
bool on_main_thread() { return GetCurrentThreadId() == main_thread; }

// Windows 10 has had both since 2016, older headers have not.
template <class F>
static F* kernel_function(const char* name) {
  const FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), name);
  return reinterpret_cast<F*>(reinterpret_cast<void*>(found));
}

void set_thread_name(const std::string& name) {
  static auto* const set = kernel_function<HRESULT WINAPI(HANDLE, PCWSTR)>("SetThreadDescription");
  if (set) set(GetCurrentThread(), wide(name).c_str());
}

std::string thread_name() {
  static auto* const get = kernel_function<HRESULT WINAPI(HANDLE, PWSTR*)>("GetThreadDescription");
  PWSTR name = nullptr;
  if (!get || FAILED(get(GetCurrentThread(), &name))) return "";
  const std::string result = narrow(name);
  LocalFree(name);
  return result;
}

}  // namespace rushlight::host
