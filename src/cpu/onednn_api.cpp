#include "cpu/onednn_api.h"

#ifdef RUSHLIGHT_WITH_ONEDNN
#include <dlfcn.h>

#include "core/error.h"

namespace rushlight::cpu {

void* onednn_symbol(const char* name) {
  // Never closed: threads may be running its code when the process ends.
  static void* const library = [] {
    // This library's path leads to libdnnl, but not on to what libdnnl needs: that has to be there before.
    for (const char* needed : {"libintlc.so.5", "libimf.so"}) dlopen(needed, RTLD_NOW | RTLD_LOCAL);
    void* opened = dlopen("libdnnl.so.3", RTLD_NOW | RTLD_LOCAL);
    RL_CHECK(opened, "oneDNN, which comes with this package, cannot be loaded: ", dlerror());
    return opened;
  }();
  void* const found = dlsym(library, name);
  RL_CHECK(found, "oneDNN lacks a function: ", dlerror());
  return found;
}

}  // namespace rushlight::cpu
#endif
