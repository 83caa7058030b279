#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include <cstdlib>
#include <memory>

#include "core/host/library.h"

namespace rushlight::host {

std::string demangled(const char* name) {
#if __has_include(<cxxabi.h>)
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                    std::free);
  return text && status == 0 ? text.get() : name;
#else
  return name;
#endif
}

}  // namespace rushlight::host
