#include "core/host/library.h"

#include <dlfcn.h>

namespace rushlight::host {

void* load_library(const std::string& path, std::string* failure) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (const char* error = library || !failure ? nullptr : dlerror()) *failure = error;
  return library;
}

void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

std::string library_file(const std::string& name) {
#ifdef __APPLE__
  return "lib" + name + ".dylib";
#else
  return "lib" + name + ".so";
#endif
}

std::string folder_of(const void* function) {
  Dl_info found;
  if (!dladdr(function, &found) || !found.dli_fname) return "";
  const std::string file = found.dli_fname;
  return file.substr(0, file.rfind('/') + 1);
}

}  // namespace rushlight::host
