#include "cuda/library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace rushlight::cuda {
namespace {

// Where pip puts packages, seen from this library: .../site-packages/rushlight/lib.
std::string packages() {
  Dl_info here;
  if (!dladdr(reinterpret_cast<const void*>(&packages), &here) || !here.dli_fname) return "";
  const std::string own = here.dli_fname;
  return own.substr(0, own.rfind('/')) + "/../../";
}

}  // namespace

Library::Library(const char* title, std::initializer_list<const char*> folders,
                 std::initializer_list<const char*> names, const char* package)
    : title_(title), package_(package) {
  for (const char* folder : folders)
    for (const char* name : names)
      if (!handle_) handle_ = dlopen(str(packages(), "nvidia/", folder, "/lib/", name).c_str(), RTLD_NOW);
  for (const char* name : names)
    if (!handle_) handle_ = dlopen(name, RTLD_NOW);
  if (!handle_) failure_ = str(title_, " was not found: pip install ", package_);
}

void Library::require(const char* wish) const { RL_CHECK(found(), wish, " on CUDA need ", failure_); }

void* Library::address(const char* name) {
  void* found = address_if_there(name);
  if (handle_ && !found)
    failure_ =
        str(title_, ", which has no ", name, " here: a newer one is needed, pip install -U ", package_);
  return found;
}

void* Library::address_if_there(const char* name) { return handle_ ? dlsym(handle_, name) : nullptr; }

}  // namespace rushlight::cuda
