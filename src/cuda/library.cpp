#include "cuda/library.h"

#include "core/error.h"
#include "core/host/library.h"

namespace rushlight::cuda {
namespace {

// Where pip puts packages, seen from this library: .../site-packages/rushlight/lib.
std::string packages() {
  const std::string folder = host::folder_of(reinterpret_cast<const void*>(&packages));
  return folder.empty() ? folder : folder + "../../";
}

}  // namespace

Library::Library(const char* title, std::initializer_list<const char*> folders,
                 std::initializer_list<const char*> names, const char* package)
    : title_(title), package_(package) {
  for (const char* folder : folders)
    for (const char* name : names)
      if (!handle_) handle_ = host::load_library(str(packages(), "nvidia/", folder, "/lib/", name));
  for (const char* name : names)
    if (!handle_) handle_ = host::load_library(name);
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

void* Library::address_if_there(const char* name) {
  return handle_ ? host::find_symbol(handle_, name) : nullptr;
}

}  // namespace rushlight::cuda
